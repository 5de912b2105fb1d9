"""A small English and French grammar, shared by the built-in corpora.

- `lexicon/`: the words. `concepts.toml` says which go together, `english.toml` and `french.toml` how to say them; the
  other files have the words and templates of one corpus each.
- `meaning`: the meaning of a sentence as a tree of concepts, independent of language.
- `frames`: which verbs go with which nouns and places.
- `noun_phrases`, `people`, `tenses`, `clauses`, `relatives`: draw the parts of a meaning that makes sense.
- `statements`, `qualities`, `compound`, `questions`: draw whole meanings, one function a pattern.
- `invented`: replaces known names by invented ones.
- `english`, `french` (with `french_words`): turn a meaning into a sentence.
- `templates`: sentences with slots and choices, for the corpora that are not drawn as meanings.
"""
