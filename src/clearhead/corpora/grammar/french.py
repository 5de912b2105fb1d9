"""Express a meaning in French: agreement, the place of adjectives, negation around the verb, pronouns, questions.

"I", "you", "we" and a "they" without an antecedent are masculine; "you" is "tu"; a noun that can have either gender
("teacher") is masculine. The past is the passé composé; of states and of ongoing actions it is the imperfect.
Only `sentence` applies elision and contraction: the other functions return "de le" and "que il", which `spell` joins.
"""

from __future__ import annotations

from clearhead.corpora.grammar.french_words import (
    ADJECTIVES,
    FEMININE,
    MASCULINE,
    VERBS,
    Verb,
    agreement,
    describe,
    determine,
    spell,
)
from clearhead.corpora.grammar.lexicon import CONCEPTS, FRENCH
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

PREPOSITIONS: dict[str, str] = FRENCH["preposition"]
PLACES: dict[str, dict[str, str]] = FRENCH["place"]  # nouns that need another preposition than English has
CONJUNCTIONS: dict[str, str] = FRENCH["conjunction"]
CITIES: dict[str, str] = FRENCH["city"]
COUNTRIES: dict[str, dict[str, str]] = FRENCH["country"]
ADVERBS: dict[str, str] = FRENCH["time"] | FRENCH["frequency"] | FRENCH["manner"] | FRENCH["degree"] | {"": ""}
FELT = {concept: entry["avoir"] for concept, entry in FRENCH["adjective"].items() if "avoir" in entry}  # "il a faim"
LASTING = frozenset(v for v, facts in CONCEPTS["verb"].items() if "state" in facts.get("flags", "").split()) | {"be"}

SUBJECTS = {"i": "je", "you": "tu", "we": "nous", "this": "ce", "who": "qui", "that": "qui", "who?": "qui"}
THIRD = ("il", "elle", "ils", "elles")
DIRECT = {"i": "me", "you": "te", "we": "nous"}
DIRECT_THIRD = ("le", "la", "les", "les")
INDIRECT_THIRD = ("lui", "lui", "leur", "leur")
STRONG = {"i": "moi", "you": "toi", "we": "nous"}
STRONG_THIRD = ("lui", "elle", "eux", "elles")
REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")
DENIAL = {"": ("", ""), "not": ("ne", "pas"), "never": ("ne", "jamais")}
QUESTION_WORDS = {"": "", "what": "que", "where": "où", "when": "quand", "why": "pourquoi", "whom": "qui"}
BE_QUESTIONS = {"colour": "de quelle couleur", "who_is": "qui"}
EXISTENCE = {"present": "a", "past": "avait", "future": "aura"}
BEFORE_PARTICIPLE = ("well",)  # adverbs: "il a bien dormi"
AFTER_VERB = ("soon",)  # times that directly follow the verb: "il prendra bientôt le train"


def sentence(meaning: Sentence) -> str:
    """A whole sentence, lower-case, without a final period."""
    if isinstance(meaning, Clause):
        return spell(clause(meaning))
    if isinstance(meaning, Interrogative):
        return spell(question(meaning)) + " ?"
    if isinstance(meaning, There):
        return spell(there(meaning))
    return spell(joined(meaning))


def clause(c: Clause) -> str:
    """A statement, or a relative clause."""
    person, form = agreement(c.subject)
    subject = "ce" if presents(c) else nominal(c.subject)
    if is_relative(c.object):
        subject = f"que {subject}"
    text = f"{subject} {verb_phrase(c, person, form)} {_rest(c, form)}"
    return f"{ADVERBS[c.time]}, {text}" if c.time_first else text


def presents(c: Clause) -> bool:
    """Whether a clause says who somebody is: "c'est mon voisin" for "he is my neighbour", but "il est médecin"."""
    role = isinstance(c.predicate, NounPhrase) and c.predicate.determiner not in ("a", "bare")
    return role and isinstance(c.subject, Pronoun) and c.subject.word in ("he", "she", "they")


def question(q: Interrogative) -> str:
    """A question, without the question mark."""
    if isinstance(q.about, There):
        if not q.ask:
            return f"est-ce que {there(q.about)}"
        counted = noun_phrase(q.about.what._replace(determiner="how_many", plural=True))
        return f"{counted} y a-t-il {place(q.about.place)}"
    c = q.about
    if q.ask == "who":
        return clause(c)
    if q.ask == "age":
        return f"quel âge {inverted('have', c)}"
    if q.ask == "where" and c.verb == "be":
        return f"où {inverted('be', c)}"
    if q.ask in BE_QUESTIONS:
        return f"{BE_QUESTIONS[q.ask]} {inverted('be', c)}"
    if q.ask == "how_many":
        assert isinstance(c.object, Pronoun)
        assert isinstance(c.object.antecedent, NounPhrase)
        return f"{noun_phrase(c.object.antecedent._replace(determiner='how_many'))} est-ce {clause(c)}"
    return f"{QUESTION_WORDS[q.ask]} est-ce que {clause(c)}"


def inverted(verb: str, c: Clause) -> str:
    """The verb before its subject, then the time: "est la voiture", "étais-tu hier", "a-t-il"."""
    form = conjugated(VERBS[verb], verb, c.tense)[agreement(c.subject)[0]]
    if not isinstance(c.subject, Pronoun):
        return f"{form} {nominal(c.subject)} {ADVERBS[c.time]}"
    return f"{form}{'-t-' if form[-1] in 'ae' else '-'}{nominal(c.subject)} {ADVERBS[c.time]}"


def there(t: There) -> str:
    """There is, was or will be something somewhere."""
    verb = f"ne y {EXISTENCE[t.tense]} pas" if t.what.determiner == "no" else f"y {EXISTENCE[t.tense]}"
    return f"il {verb} {noun_phrase(t.what)} {place(t.place)}"


def joined(j: Joined) -> str:
    """Two clauses and their conjunction."""
    conjunction = CONJUNCTIONS[j.conjunction]
    first, second = clause(j.first), clause(j.second)
    if j.fronted:
        return f"{conjunction} {first.rstrip()}, {second}"
    return f"{first.rstrip()}{',' if j.conjunction == 'but' else ''} {conjunction} {second}"


def verb_phrase(c: Clause, person: int, form: int) -> str:
    """The verb with its pronouns and its negation: "ne le voit pas", "ne l'a jamais vue", "veut la voir"."""
    verb = verb_of(c)
    ne, pas = DENIAL[c.polarity]
    pronouns = pronouns_before(c, verb, person)
    if c.modal or c.tense == "going":
        finite = conjugated(VERBS[c.modal or "go"], c.modal or "go", c.tense)[person]
        return f"{ne} {finite} {pas} {pronouns} {verb.infinitive}"
    if c.tense == "past" and c.verb not in LASTING:
        auxiliary = VERBS["be" if verb.auxiliary == "être" else "have"].present[person]
        adverb = ADVERBS[c.manner] if c.manner in BEFORE_PARTICIPLE else ""
        return f"{ne} {pronouns} {auxiliary} {pas} {adverb} {verb.participle[participle_form(c, verb, form)]}"
    adverb = ADVERBS[c.time] if c.time in AFTER_VERB and not c.time_first else ADVERBS[c.frequency]
    return f"{ne} {pronouns} {conjugated(verb, c.verb, c.tense)[person]} {pas} {adverb}"


def verb_of(c: Clause) -> Verb:
    """The French verb: "avoir" for "be hungry" and "be ten years old", "faire" for the weather."""
    if c.verb == "be":
        if isinstance(c.predicate, Age) or (isinstance(c.predicate, Quality) and c.predicate.adjective in FELT):
            return VERBS["have"]
        if isinstance(c.subject, Pronoun) and c.subject.word == "weather":
            return VERBS["make"]
    return VERBS[c.verb]


def conjugated(verb: Verb, concept: str, tense: str) -> tuple[str, ...]:
    """The six forms of a simple tense."""
    if tense in ("future", "upcoming"):
        return verb.future
    if tense == "background" or (tense == "past" and concept in LASTING):
        return verb.imperfect
    return verb.present


def participle_form(c: Clause, verb: Verb, subject_form: int) -> int:
    """The agreement of the participle: with the subject after être, with a preceding direct object after avoir."""
    if verb.auxiliary == "être":
        return subject_form
    return agreement(c.object)[1] if isinstance(c.object, Pronoun) and not verb.link else MASCULINE


def is_relative(n: Nominal | None) -> bool:
    """Whether an object is the pronoun "that" of a relative clause."""
    return isinstance(n, Pronoun) and n.word == "that"


def pronouns_before(c: Clause, verb: Verb, person: int) -> str:
    """The pronoun before the verb, if there is one: me, te, se, le, la, lui, les, leur."""
    if verb.reflexive:
        return REFLEXIVE[person]
    if isinstance(c.recipient, Pronoun):
        return DIRECT.get(c.recipient.word) or INDIRECT_THIRD[agreement(c.recipient)[1]]
    if isinstance(c.object, Pronoun) and not is_relative(c.object):
        third = INDIRECT_THIRD if verb.link else DIRECT_THIRD
        return DIRECT.get(c.object.word) or third[agreement(c.object)[1]]
    return ""


def _rest(c: Clause, form: int) -> str:
    """What follows the verb: manner, object, recipient, predicate, places, time."""
    words: list[str] = []
    if c.manner and not (c.manner in BEFORE_PARTICIPLE and c.tense == "past"):
        words.append(ADVERBS[c.manner])
    if c.object is not None and not isinstance(c.object, Pronoun):
        words.append(f"{VERBS[c.verb].link} {nominal(c.object, denied=c.polarity != '')}")
    if c.recipient is not None and not isinstance(c.recipient, Pronoun):
        words.append(f"à {nominal(c.recipient)}")
    if c.predicate is not None:
        words.append(predicate(c.predicate, c.subject, form))
    words.extend(place(p) for p in c.places)
    if c.time and not c.time_first and c.time not in AFTER_VERB:
        words.append(ADVERBS[c.time])
    return " ".join(words)


def predicate(p: Quality | Age | NounPhrase | Place, subject: Nominal, form: int) -> str:
    """What follows "être": an adjective that agrees with the subject, a profession without article, a place."""
    if isinstance(p, Quality):
        if p.adjective in FELT:
            return f"{ADVERBS[p.degree]} {FELT[p.adjective]}"
        adjective = ADJECTIVES[p.adjective].forms[form]
        return f"plus {adjective} que {stressed(p.than)}" if p.than is not None else f"{ADVERBS[p.degree]} {adjective}"
    if isinstance(p, Age):
        return f"{FRENCH['number'][p.years]} ans"
    if isinstance(p, Place):
        return place(p)
    presented = isinstance(subject, Pronoun) and subject.word == "this"  # "c'est un médecin"
    if presented:
        return noun_phrase(p)
    if p.determiner in ("a", "bare"):  # a profession
        return describe(p, form & FEMININE)
    return noun_phrase(p, gender=form & FEMININE)  # "la fille est mon amie"


def place(p: Place) -> str:
    """A preposition and what follows it: "sur le tapis", "à Paris", "en France", "au Japon"."""
    n = p.nominal
    if isinstance(n, Name) and n.name in CITIES:
        return f"{'à' if p.preposition in ('in', 'to') else PREPOSITIONS[p.preposition]} {CITIES[n.name]}"
    if isinstance(n, Name) and n.name in COUNTRIES:
        return country(p.preposition, COUNTRIES[n.name])
    if isinstance(n, NounPhrase) and n.noun == "farm" and p.preposition == "on" and specific(n):
        return f"dans {noun_phrase(n)}"  # "à la ferme" is fixed
    if isinstance(n, NounPhrase) and n.noun in PLACES:
        return f"{PLACES[n.noun].get(p.preposition, PREPOSITIONS[p.preposition])} {noun_phrase(n)}"
    return f"{PREPOSITIONS[p.preposition]} {stressed(n)}"


def specific(np: NounPhrase) -> bool:
    """Whether a place is more than "the farm": "this farm", "the small farm"."""
    return np.determiner != "the" or bool(np.adjectives)


def stressed(n: Nominal) -> str:
    """A nominal after a preposition or "que": moi, toi, lui, elle, nous, eux, elles."""
    if isinstance(n, Pronoun):
        return STRONG.get(n.word) or STRONG_THIRD[agreement(n)[1]]
    return nominal(n)


def country(preposition: str, entry: dict[str, str]) -> str:
    """In, to and from a country: "en France", "au Japon", "de France", "du Japon"."""
    if "feminine" in entry:
        return f"{'de' if preposition == 'from' else 'en'} {entry['feminine']}"
    return f"{'de' if preposition == 'from' else 'à'} le {entry['masculine']}"


def nominal(n: Nominal, denied: bool = False) -> str:
    """A noun phrase, a name or a subject pronoun; `denied`: the object of a negated verb ("pas de pain")."""
    if isinstance(n, NounPhrase):
        return noun_phrase(n, denied)
    if isinstance(n, Name):
        return n.name
    if isinstance(n, Both):
        return f"{nominal(n.first)} et {nominal(n.second)}"
    return SUBJECTS.get(n.word) or THIRD[agreement(n)[1]]


def noun_phrase(np: NounPhrase, denied: bool = False, gender: int | None = None) -> str:
    """Determiner, adjectives, noun and modifiers; `gender`: that of the person meant, if it is known."""
    text = determine(np, denied, gender)
    if np.owner is not None:
        text = f"{text} de {nominal(np.owner)}"
    if np.place is not None:
        text = f"{text} {place(np.place)}"
    if np.relative is not None:
        text = f"{text} {clause(np.relative)}"
    return text
