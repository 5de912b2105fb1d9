"""The inside of a model in the terminal."""
