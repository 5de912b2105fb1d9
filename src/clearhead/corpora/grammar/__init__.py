"""A small English and French grammar, shared by the built-in corpora.

- `lexicon/`: the words. `concepts.toml` says which go together, `english.toml` and `french.toml` how to say them.
- `meaning`: the meaning of a sentence as a tree of concepts, independent of language.
- `noun_phrases`, `people`, `clauses`, `qualities`, `compound`: draw meanings at random that make sense.
- `english`, `french` (with `french_nouns`, `french_verbs`, `french_spelling`): turn a meaning into a sentence.
- `templates`: sentences with slots and choices, for the corpora that are not drawn as meanings.
"""
