"""From logits to ids to text."""
