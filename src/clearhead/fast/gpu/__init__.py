"""Decoding on a GPU."""
