"""`clearhead learn`: rebuild each part of a Transformer, have it checked, train with it; and a quiz.

A solution (solutions/) is a file as a student writes it; the skeleton that a student starts with is the same file
without the bodies of its functions. An exercise (exercises/) says how to check it, and which mistakes are recognised.
"""
