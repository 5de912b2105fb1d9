"""Strings to ids to batches. Nothing here knows the model."""
