"""Every trick for speed, and only here: the same numbers as the plain code; see README.md."""
