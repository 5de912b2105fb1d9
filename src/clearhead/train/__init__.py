"""One loop for every objective."""
