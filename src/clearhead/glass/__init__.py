"""The glass: every number of a trained model can be looked at, explained, and changed."""
