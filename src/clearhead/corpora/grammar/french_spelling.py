"""French spelling between words: elision (l'arbre, j'aime, qu'il) and contraction (au, aux, du, des)."""

from __future__ import annotations

from functools import cache

from clearhead.corpora.grammar.lexicon import FRENCH

VOWELS = "aâàeéèêiîoôuœ"
ELIDED = {word: word[:-1] + "'" for word in ("le", "la", "je", "me", "te", "se", "ne", "de", "que", "ce")}
CONTRACTED = ((" à le ", " au "), (" à les ", " aux "), (" de le ", " du "), (" de les ", " des "))
ASPIRATED = frozenset(
    form
    for noun in FRENCH["noun"].values()
    if noun.get("aspirated", False)
    for form in noun.get("masculine", []) + noun.get("feminine", [])
)


@cache
def starts_with_vowel(word: str) -> bool:
    """Whether the preceding word is elided: before arbre, homme, y; not before hibou, huit, onze, yaourt."""
    first = word[:1].lower()
    if first == "h":
        return word not in ASPIRATED and word != "huit"
    return word == "y" or (first != "" and first in VOWELS and word != "onze")


def spell(text: str) -> str:
    """Apply elision and contraction: "le arbre" becomes "l'arbre", "à le marché" "au marché", "si il" "s'il"."""
    words = text.split()
    for position, word in enumerate(words[:-1]):
        if word in ELIDED and starts_with_vowel(words[position + 1]):
            words[position] = ELIDED[word]
        elif word == "si" and words[position + 1] in ("il", "ils"):  # but "si elle"
            words[position] = "s'"
    written = " ".join(words).replace("' ", "'")
    for apart, together in CONTRACTED:  # after elision, so that "à l'arbre" stays
        if apart in written:
            written = written.replace(apart, together)
    return written
