"""Express a meaning in English: articles, plurals, third person, irregular pasts, do-support, word order."""

from __future__ import annotations

from clearhead.corpora.grammar.lexicon import ENGLISH
from clearhead.corpora.grammar.meaning import (
    Age,
    Both,
    Clause,
    Interrogative,
    Joined,
    Name,
    Nominal,
    NounPhrase,
    Place,
    Pronoun,
    Quality,
    Sentence,
    There,
)

NOUNS: dict[str, list[str]] = ENGLISH["noun"]
VERBS: dict[str, list[str]] = ENGLISH["verb"]
ADJECTIVES: dict[str, list[str]] = ENGLISH["adjective"]
PREPOSITIONS: dict[str, str] = ENGLISH["preposition"]
CONJUNCTIONS: dict[str, str] = ENGLISH["conjunction"]
NAMES: dict[str, str] = ENGLISH["name"] | ENGLISH["city"] | ENGLISH["country"]
ADVERBS: dict[str, str] = ENGLISH["time"] | ENGLISH["frequency"] | ENGLISH["manner"] | ENGLISH["degree"] | {"": ""}

ME, HE, THEY = 0, 1, 2  # the three persons that English verbs distinguish: am, is, are
PERSONS = {"i": ME, "he": HE, "she": HE, "it": HE, "weather": HE, "who?": HE, "you": THEY, "we": THEY, "they": THEY}
SUBJECTS = {"i": "I", "weather": "it", "who?": "who"}  # other pronouns are their own subject form
OBJECTS = {"i": "me", "you": "you", "he": "him", "she": "her", "it": "it", "we": "us", "they": "them"}
BE_PRESENT = ("am", "is", "are")
BE_PAST = ("was", "was", "were")
DO = ("do", "does", "do")
QUESTION_WORDS = {"": "", "what": "what", "where": "where", "when": "when", "why": "why", "whom": "who"}
BE_QUESTIONS = {"colour": "what colour", "age": "how old", "who_is": "who"}


def sentence(meaning: Sentence) -> str:
    """A whole sentence, lower-case, without a final period."""
    if isinstance(meaning, Clause):
        return clause(meaning)
    if isinstance(meaning, Interrogative):
        return question(meaning) + "?"
    if isinstance(meaning, There):
        return there(meaning)
    return joined(meaning)


def clause(c: Clause) -> str:
    """A statement, or a relative clause."""
    auxiliary, main = verb_group(c, person_of(c.subject), support=c.polarity == "not")
    subject = nominal(c.subject)
    if isinstance(c.object, Pronoun) and c.object.word == "that":
        subject = f"that {subject}"
    if c.polarity == "not":
        auxiliary = "cannot" if auxiliary == "can" else f"{auxiliary} not"
    elif c.polarity:
        auxiliary = f"{auxiliary} {c.polarity}".strip()
    words = (subject, auxiliary, ADVERBS[c.frequency], main, _rest(c, "any" if c.polarity else "some"))
    text = " ".join(filter(None, words))
    return f"{ADVERBS[c.time]}, {text}" if c.time_first else text


def question(q: Interrogative) -> str:
    """A question, without the question mark."""
    if isinstance(q.about, There):
        return question_of_existence(q.ask, q.about)
    c = q.about
    person = person_of(q.about.subject)
    if q.ask == "who":
        return clause(c)
    if q.ask in BE_QUESTIONS:
        verb = (BE_PAST if c.tense == "past" else BE_PRESENT)[person]
        return f"{BE_QUESTIONS[q.ask]} {verb} {nominal(c.subject)} {ADVERBS[c.time]}".rstrip()
    auxiliary, main = verb_group(c, person, support=True)
    adverb = c.polarity or ADVERBS[c.frequency]
    some = "any" if c.polarity or not q.ask else "some"
    word = counted(c) if q.ask == "how_many" else QUESTION_WORDS[q.ask]
    words = (word, auxiliary, nominal(c.subject), adverb, main, _rest(c, some))
    return " ".join(filter(None, words))


def question_of_existence(ask: str, t: There) -> str:
    """Whether there is something, or how many there are."""
    if ask == "how_many":
        return f"{noun_phrase(t.what._replace(determiner='how_many', plural=True))} are there {place(t.place)}"
    return f"{BE_PRESENT[THEY if t.what.plural else HE]} there {noun_phrase(t.what, 'any')} {place(t.place)}"


def counted(c: Clause) -> str:
    """The counted object at the beginning of a question: "how many books"."""
    assert isinstance(c.object, Pronoun)
    assert isinstance(c.object.antecedent, NounPhrase)
    return noun_phrase(c.object.antecedent._replace(determiner="how_many"))


def there(t: There) -> str:
    """There is, was or will be something somewhere."""
    person = THEY if t.what.plural else HE
    verb = "will be" if t.tense == "future" else BE_PAST[person] if t.tense == "past" else BE_PRESENT[person]
    return f"there {verb} {noun_phrase(t.what)} {place(t.place)}"


def joined(j: Joined) -> str:
    """Two clauses and their conjunction."""
    conjunction = CONJUNCTIONS[j.conjunction]
    first, second = clause(j.first), clause(j.second)
    if j.fronted:
        return f"{conjunction} {first}, {second}"
    return f"{first}{',' if j.conjunction == 'but' else ''} {conjunction} {second}"


def verb_group(c: Clause, person: int, support: bool) -> tuple[str, str]:
    """The auxiliary and the rest of the verb; with `support`, "do" is the auxiliary where there is no other."""
    forms = VERBS[c.verb]
    tense = c.tense
    infinitive = ""  # after "want"
    if c.modal in ("can", "must"):
        return c.modal, forms[0]
    if c.modal == "want":
        infinitive = f" to {forms[0]}"
        forms = VERBS["want"]
    if tense == "future":
        return "will", forms[0]
    if tense == "progressive":
        return BE_PRESENT[person], forms[3]
    if tense == "background":
        return BE_PAST[person], forms[3]
    if tense == "going":
        return BE_PRESENT[person], f"going to {forms[0]}"
    past = tense == "past"
    if c.verb == "be" and not infinitive:
        return (BE_PAST if past else BE_PRESENT)[person], ""
    if support:
        return ("did" if past else DO[person]), forms[0] + infinitive
    return "", (forms[2] if past else forms[1] if person == HE else forms[0]) + infinitive


def _rest(c: Clause, some: str) -> str:
    """What follows the verb: object, recipient, predicate, manner, places, time."""
    words: list[str] = []
    recipient_first = isinstance(c.recipient, Pronoun)  # "gives him a book", but "gives a book to Paul"
    if recipient_first:
        words.append(nominal(c.recipient, objective=True))
    if c.object is not None and not (isinstance(c.object, Pronoun) and c.object.word == "that"):
        words.append(nominal(c.object, objective=True, some=some))
    if c.recipient is not None and not recipient_first:
        words.append(f"to {nominal(c.recipient)}")
    if c.predicate is not None:
        words.append(predicate(c.predicate))
    if c.manner:
        words.append(ADVERBS[c.manner])
    words.extend(place(p) for p in c.places)
    if c.time and not c.time_first:
        words.append(ADVERBS[c.time])
    return " ".join(words)


def predicate(p: Quality | Age | NounPhrase | Place) -> str:
    """What follows "to be": a quality, an age, a place or a noun phrase."""
    if isinstance(p, Quality):
        if p.than is not None:
            return f"{ADJECTIVES[p.adjective][1]} than {nominal(p.than, objective=True)}"
        return f"{ADVERBS[p.degree]} {p.adjective}" if p.degree else p.adjective
    if isinstance(p, Age):
        return f"{p.years} years old"
    return place(p) if isinstance(p, Place) else noun_phrase(p)


def place(p: Place) -> str:
    """A preposition and what follows it."""
    return f"{PREPOSITIONS[p.preposition]} {nominal(p.nominal, objective=True)}"


def nominal(n: Nominal | None, objective: bool = False, some: str = "some") -> str:
    """A noun phrase, a name or a pronoun; `objective`: as an object or after a preposition."""
    if isinstance(n, NounPhrase):
        return noun_phrase(n, some)
    if isinstance(n, Name):
        return NAMES.get(n.name, n.name)
    if isinstance(n, Both):
        return f"{nominal(n.first)} and {nominal(n.second)}"
    assert n is not None
    return OBJECTS[n.word] if objective else pronoun(n)


def pronoun(p: Pronoun) -> str:
    """A pronoun as a subject."""
    if p.word == "this" and isinstance(p.antecedent, NounPhrase) and p.antecedent.plural:
        return "these"
    return SUBJECTS.get(p.word, p.word)


def noun_phrase(np: NounPhrase, some: str = "some") -> str:
    """Determiner, adjectives, noun and modifiers; `some` is the word for "some": "any" after a negation."""
    forms = NOUNS[np.noun]
    text = forms[1] if np.plural else forms[0]
    if np.adjectives:
        text = f"{'very ' if np.very else ''}{' '.join(np.adjectives)} {text}"
    text = determine(np, text, some)
    if np.name:
        text = f"{text} {np.name}"
    if np.place is not None:
        text = f"{text} {place(np.place)}"
    if np.relative is not None:
        text = f"{text} {clause(np.relative)}"
    return text


def determine(np: NounPhrase, text: str, some: str) -> str:
    """Add the determiner in front of the other words of a noun phrase."""
    determiner = np.determiner
    if determiner in ("bare", "all"):
        return text
    if determiner == "a":
        return f"{'an' if text[0] in 'aeiouAEIOU' else 'a'} {text}"
    if determiner == "some":
        return f"{some} {text}"
    if determiner == "this" and np.plural:
        return f"these {text}"
    if determiner == "how_many":
        return f"how {'many' if np.plural else 'much'} {text}"
    if determiner == "few":
        return f"a few {text}"
    if determiner == "of":
        return f"{nominal(np.owner)}'s {text}"
    return f"{determiner} {text}"


def person_of(n: Nominal) -> int:
    """The person of a subject, which decides the form of the verb: ME, HE or THEY."""
    if isinstance(n, NounPhrase):
        return THEY if n.plural else HE
    if isinstance(n, Pronoun):
        return PERSONS[n.word] if n.antecedent is None else person_of(n.antecedent)
    return THEY if isinstance(n, Both) else HE
