"""Draw people: names, pronouns, family; possessives and the pronouns that refer back to them."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import expand_kinds
from clearhead.corpora.grammar.meaning import Both, Name, Nominal, NounPhrase, Place, Pronoun
from clearhead.corpora.grammar.noun_phrases import KINDS, MALE_NAMES, NAMES, definite, relative_of

OWN = {"i": "my", "you": "your", "he": "his", "she": "her", "we": "our", "they": "their"}
PRONOUNS = ("i", "i", "you", "you", "he", "she", "we", "we", "they")  # more often those with forms of their own
PERSON = expand_kinds("person")
KIN = expand_kinds("kin")
FIRST_TWO = (Pronoun("i"), Pronoun("you"), Pronoun("we"))


def somebody(dice: Dice, nouns: tuple[str, ...], human: bool, described: float = 0.2) -> Nominal:
    """Draw a subject: one of the nouns; if `human`, also a name, a pronoun or two people together."""
    roll = dice.random()
    if human and roll < 0.4:
        return Pronoun(dice.choice(PRONOUNS))
    if human and roll < 0.54:
        return Name(dice.choice(NAMES))
    if human and roll < 0.6:
        return two_people(dice, nouns)
    return definite(dice, dice.choice(nouns), described)


def two_people(dice: Dice, nouns: tuple[str, ...]) -> Both:
    """Draw two people: "Paul and Marie", "Paul and his sister", "the king and the queen"."""
    first = dice.choice(NAMES)
    if dice.random() < 0.4:
        return Both(Name(first), Name(dice.choice(tuple(name for name in NAMES if name != first))))
    second = dice.choice(nouns)
    if "kin" in KINDS[second]:
        return Both(Name(first), NounPhrase(second, "his" if first in MALE_NAMES else "her"))
    other = dice.choice(nouns)
    if "kin" in KINDS[other] or other == second:
        return Both(Name(first), NounPhrase(second))
    return Both(NounPhrase(second), NounPhrase(other))


def possessive_of(subject: Nominal) -> str:
    """The possessive that refers to a subject ("his" for Paul), or "" if the gender is unknown."""
    if isinstance(subject, Pronoun):
        if subject.word in ("who", "that") and subject.antecedent is not None:
            return possessive_of(subject.antecedent)
        return OWN.get(subject.word, "")
    if isinstance(subject, Name):
        return "his" if subject.name in MALE_NAMES else "her"
    if isinstance(subject, Both) or subject.plural:
        return "their"
    if subject.name:
        return possessive_of(Name(subject.name))
    kinds = KINDS[subject.noun]
    return "his" if "male" in kinds else "her" if "female" in kinds else ""


def pronoun_for(n: Nominal) -> Pronoun | None:
    """The pronoun that refers to a nominal; None for a person of unknown gender ("the doctor")."""
    if isinstance(n, Pronoun):
        return n
    possessive = possessive_of(n)
    if possessive:
        word = next(word for word, determiner in OWN.items() if determiner == possessive)
        return Pronoun(word, n)
    assert isinstance(n, NounPhrase)
    return None if "person" in KINDS[n.noun] or "infant" in KINDS[n.noun] else Pronoun("it", n)


def possessive_for_relative(subject: Nominal, noun: str) -> str:
    """The possessive of a subject for a relative; "my" if two people cannot share that relative."""
    return "my" if isinstance(subject, Both) and not can_share_relative(subject, noun) else possessive_of(subject)


def can_share_relative(two: Both, noun: str) -> bool:
    """Whether two people can share a relative: Victor and his brother share a mother, but no son."""
    if noun in ("friend", "neighbour"):
        return True
    child = noun in ("son", "daughter")
    if isinstance(two.first, Name) and isinstance(two.second, Name):
        return not child or (two.first.name in MALE_NAMES) != (two.second.name in MALE_NAMES)
    return not child and isinstance(two.second, NounPhrase) and two.second.noun in ("brother", "sister")


def family_member(dice: Dice, noun: str, subject: Nominal) -> NounPhrase:
    """Draw a relative: one of the subject, or of somebody else."""
    owner = possessive_for_relative(subject, noun)
    if owner and dice.random() < 0.6:
        return NounPhrase(noun, owner)
    found = relative_of(dice, noun)
    clash = found.determiner == possessive_of(subject) or {found.determiner, possessive_of(subject)} <= {
        "my",
        "our",
    }  # "we love my aunt"
    return found._replace(determiner=owner) if clash else found


def companion(dice: Dice, subject: Nominal) -> Place:
    """Draw a companion: "with his sister", "with me", "with Anna"."""
    return Place("with", somebody_else(dice, subject))


def somebody_else(dice: Dice, subject: Nominal) -> Nominal:
    """Draw another person than the subject: a pronoun, a name or a relative."""
    roll = dice.random()
    if roll < 0.35:
        return other_pronoun(dice, subject)
    if roll < 0.55:
        return somebody_named(dice, subject)
    return family_member(dice, dice.choice(tuple(noun for noun in KIN if noun not in nouns_in(subject))), subject)


def somebody_named(dice: Dice, subject: Nominal) -> Name:
    """Draw a name that the subject does not mention."""
    mentioned = names_in(subject)
    return Name(dice.choice(tuple(name for name in NAMES if name not in mentioned)))


def another_subject(dice: Dice, subject: Nominal) -> Nominal:
    """Draw the subject of a second clause: no third-person pronoun, which would refer to the first subject."""
    found = somebody_else(dice, subject)
    if isinstance(found, NounPhrase):
        return found._replace(determiner=possessive_for_relative(subject, found.noun) or "my", owner=None)
    return found if isinstance(found, Name) or found in FIRST_TWO else another_subject(dice, subject)


def other_pronoun(dice: Dice, subject: Nominal) -> Pronoun:
    """Draw a pronoun for another person than the subject: nobody meets himself."""
    first = subject.word if isinstance(subject, Pronoun) else ""
    same = ("i", "we") if first in ("i", "we") else (first,) if first == "you" else ()
    return Pronoun(dice.choice(tuple(word for word in PRONOUNS if word not in same)))


def names_in(n: Nominal) -> tuple[str, ...]:
    """The names that a nominal mentions."""
    if isinstance(n, Name):
        return (n.name,)
    if isinstance(n, Both):
        return names_in(n.first) + names_in(n.second)
    return (n.name, *(names_in(n.owner) if n.owner is not None else ())) if isinstance(n, NounPhrase) else ()


def nouns_in(n: Nominal) -> tuple[str, ...]:
    """The head nouns of a nominal."""
    if isinstance(n, Both):
        return nouns_in(n.first) + nouns_in(n.second)
    if isinstance(n, Pronoun) and n.antecedent is not None:
        return nouns_in(n.antecedent)
    return (n.noun,) if isinstance(n, NounPhrase) else ()
