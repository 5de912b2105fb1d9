"""Using a trained run: translations, continuations, answers, classes, vectors.

The functions here expect a run of the right task: the command line and `clearhead.load` check it first.
"""
