"""Decoding on a CPU."""
