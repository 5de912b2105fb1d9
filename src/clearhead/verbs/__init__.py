"""The verbs of the command line: `clearhead X` is the function X in X.py (`import_` for import).

torch, and what imports it, is imported inside the functions, so that `clearhead X --help` does not wait for it.
"""
