"""Training: one loop for every task."""
