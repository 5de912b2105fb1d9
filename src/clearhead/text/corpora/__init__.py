"""Embedded corpora, written here, and readers for real ones."""
