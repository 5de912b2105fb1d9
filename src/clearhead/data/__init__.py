"""Examples to batches."""
