"""The corpora we wrote ourselves: each is generated from a seed."""
