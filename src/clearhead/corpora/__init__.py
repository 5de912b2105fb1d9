"""The built-in corpora: generated from a seed, so they need no download and are the same on every machine.

Where to start reading:

- `catalogue`: all corpora by name.
- `generated`: what a corpus is: a function that draws one example at a time, and the rule that assigns it to a split.
- `dice`: the random choices, reproducible on every machine and Python version.
- `phrasebook`: English sentences with their French (translation).
- `stories`: short English stories (language modelling).
- `reviews`: reviews and whether they are positive (classification).
- `headlines`: a paragraph of local news and its headline (summarisation).
- `instructions`: conversations with correct answers (chat).
- `paraphrases`: sentence pairs of equal meaning, with hard negatives (similarity).
- `grammar`: what they share: the lexicon, sentence templates, and an English and a French grammar.

The text of a corpus is pinned by tests. A change that draws random numbers in another order, or that changes a key or a
word combination, changes the corpus, and with it the results of every model trained on it.
"""
