"""The verbs of the command line: one file for each, named as the verb."""
