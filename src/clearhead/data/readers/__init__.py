"""Files of one's own, and data sets of others, as corpora."""
