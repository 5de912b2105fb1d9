"""Looking inside a trained model: every tensor can be inspected, explained and changed."""
