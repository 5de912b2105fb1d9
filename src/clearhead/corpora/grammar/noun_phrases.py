"""Draw noun phrases that make sense: which adjectives, determiners and numbers go with which nouns."""

from __future__ import annotations

from clearhead.corpora.dice import Dice
from clearhead.corpora.grammar.lexicon import CONCEPTS, ENGLISH, expand_kinds
from clearhead.corpora.grammar.meaning import Name, NounPhrase, Place

KINDS: dict[str, frozenset[str]] = {noun: frozenset(kinds.split()) for noun, kinds in CONCEPTS["noun"].items()}
GROUPS: dict[str, tuple[str, ...]] = {
    name: tuple(words.split()) for name, words in CONCEPTS["group"].items() if isinstance(words, str)
}
TASTES = tuple(expand_kinds(words) for words in CONCEPTS["group"]["taste"])
ADJECTIVES: dict[str, tuple[str, ...]] = {a: expand_kinds(kinds) for a, kinds in CONCEPTS["adjective"].items()}
STATES: dict[str, tuple[str, ...]] = {a: expand_kinds(kinds) for a, kinds in CONCEPTS["state"].items()}
PREDICATES = {a: nouns for a, nouns in (ADJECTIVES | STATES).items() if a not in GROUPS["attribute"]}


def invert(table: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """For each noun, the adjectives that go with it."""
    return {noun: tuple(a for a, nouns in table.items() if noun in nouns) for noun in KINDS}


ANIMATE = expand_kinds("person infant animal")
ATTRIBUTES_OF = {
    noun: tuple(a for a in found if noun not in ANIMATE or a not in GROUPS["mood"])
    for noun, found in invert(ADJECTIVES).items()
}
PREDICATES_OF = invert(PREDICATES)
OUTER_OF = invert({a: ADJECTIVES[a] for a in GROUPS["outer"]})
INNER_OF = invert({a: ADJECTIVES[a] for a in GROUPS["inner"]})
COMPARABLE = tuple(a for a in PREDICATES if len(ENGLISH["adjective"][a]) == 2)
GRADED = frozenset(COMPARABLE + GROUPS["very"])
MALE_NAMES = tuple(name for name, sex in CONCEPTS["name"].items() if sex == "male")
FEMALE_NAMES = tuple(name for name, sex in CONCEPTS["name"].items() if sex == "female")
NAMES = MALE_NAMES + FEMALE_NAMES
CITIES = tuple(ENGLISH["city"])
COUNTRIES = tuple(ENGLISH["country"])
NUMBERS = tuple(ENGLISH["number"])
PLACES: dict[str, tuple[str, ...]] = {noun: tuple(words.split()) for noun, words in CONCEPTS["place"].items()}
OWNERS = ("my", "my", "your", "his", "her", "our", "their")
OWNING_KIN = expand_kinds("kin")
OWNING_OTHERS = tuple(noun for noun in expand_kinds("person") if noun not in OWNING_KIN)
OWNED = expand_kinds("thing pet room garden house hot_drink soup furniture")
USUALLY_ONE = (*GROUPS["seldom"], *expand_kinds("building"))  # things that people mention one at a time
WORKPLACES = tuple(noun for noun in (*expand_kinds("building"), "office") if noun != "farm")  # "in a restaurant"
MASS = tuple(noun for noun, forms in ENGLISH["noun"].items() if len(forms) == 1)  # mass nouns: no plural


def read_locations() -> dict[str, tuple[tuple[str, str], ...]]:
    """For each noun, the places where it is found: pairs of a preposition and a noun."""
    table: dict[str, tuple[tuple[str, str], ...]] = {}
    for entry in CONCEPTS["location"]:
        found = tuple((how, where) for how, names in entry.items() if how != "what" for where in names.split())
        for noun in expand_kinds(entry["what"]):
            table[noun] = table.get(noun, ()) + tuple((how, where) for how, where in found if where != noun)
    return table


LOCATIONS = read_locations()


def adjectives(dice: Dice, noun: str, often: float) -> tuple[str, ...]:
    """Draw no adjective, one, or two in English order ("small red")."""
    if dice.random() >= often:
        return ()
    if OUTER_OF[noun] and INNER_OF[noun] and dice.random() < 0.25:
        return dice.choice(OUTER_OF[noun]), dice.choice(INNER_OF[noun])
    known = ATTRIBUTES_OF[noun]
    return (dice.choice(known),) if known else ()


def appearance(dice: Dice, noun: str, often: float) -> tuple[str, ...]:
    """Draw at most one adjective of appearance: size, age or colour."""
    known = OUTER_OF[noun] + INNER_OF[noun] if dice.random() < often else ()
    return (dice.choice(known),) if known else ()


def number(dice: Dice) -> str:
    """Draw a number from two to twenty, small numbers more often."""
    return NUMBERS[int(len(NUMBERS) * dice.random() ** 2)]


def owner_of(dice: Dice, noun: str) -> Name | NounPhrase:
    """Draw the owner of a thing: "Anna's", "my grandmother's", "the teacher's"; dresses and skirts belong to women."""
    if noun not in GROUPS["feminine"] and dice.random() < 0.5:
        kin = dice.random() < 0.6
        return NounPhrase(dice.choice(OWNING_KIN if kin else OWNING_OTHERS), dice.choice(OWNERS) if kin else "the")
    return Name(dice.choice(FEMALE_NAMES if noun in GROUPS["feminine"] else NAMES))


def definite(dice: Dice, noun: str, described: float = 0.25, plural: float = 0.25) -> NounPhrase:
    """Draw a definite noun phrase: "the car", "this old car", "my car", "Anna's car"."""
    if noun in GROUPS["only_the"]:
        return NounPhrase(noun, "the", False, adjectives(dice, noun, described / 2))
    if "kin" in KINDS[noun]:
        return relative_of(dice, noun, plural)
    owned = noun in OWNED
    roll = dice.random()
    determiner = "of" if roll < 0.08 else "this" if roll < 0.2 else dice.choice(OWNERS) if roll < 0.4 else "the"
    if not owned and determiner != "this":
        determiner = "the"
    one = noun in MASS or (noun in USUALLY_ONE and determiner not in ("the", "this"))
    many = not one and ("plural" in KINDS[noun] or dice.random() < plural)
    owner = owner_of(dice, noun) if determiner == "of" else None
    return NounPhrase(noun, determiner, many, adjectives(dice, noun, described), owner)


def relative_of(dice: Dice, noun: str, plural: float = 0.15) -> NounPhrase:
    """Draw a relative or friend of somebody: "my sister", "Paul's uncle", "my friend Anna"."""
    roll = dice.random()
    if noun == "friend" and roll < 0.5:
        return NounPhrase(noun, dice.choice(OWNERS), name=dice.choice(NAMES))
    if roll < 0.15:
        return NounPhrase(noun, "of", owner=Name(dice.choice(NAMES)))
    many = dice.random() < plural and "sibling" in KINDS[noun]
    return NounPhrase(noun, dice.choice(OWNERS), many)


def indefinite(
    dice: Dice, noun: str, described: float = 0.35, plural: float = 0.25, counted: bool = False
) -> NounPhrase:
    """Draw an indefinite noun phrase: "a car", "some red cars", "two cars", "water"."""
    found = adjectives(dice, noun, described)
    if noun in MASS:
        return NounPhrase(noun, "bare", False, found)
    if "plural" in KINDS[noun]:
        return NounPhrase(noun, "bare", True, found)
    roll = dice.random()
    if counted and roll < 0.35:
        determiner = "many" if roll < 0.06 else "few" if roll < 0.12 else number(dice)
        return NounPhrase(noun, determiner, True, found)
    np = NounPhrase(noun, "some", True, found) if dice.random() < plural else NounPhrase(noun, "a", False, found)
    return np._replace(very=len(found) == 1 and found[0] in GRADED and dice.random() < 0.2)


def place_of(dice: Dice, where: str) -> Place:
    """Draw the place of an action: "in the garden", "at the old station"; or a city or country."""
    if where == "city":
        return Place("in", Name(dice.choice(CITIES)))
    if where == "country":
        return Place("in", Name(dice.choice(COUNTRIES)))
    preposition = dice.choice(PLACES[where])
    if where in GROUPS["idiom"]:
        return Place(preposition, NounPhrase(where, "all"))
    if where in WORKPLACES and dice.random() < 0.12:
        return Place("in", NounPhrase(where, "a", False, appearance(dice, where, 0.3)))
    determiner = dice.choice(("my", "your", "our")) if where in OWNED and dice.random() < 0.15 else "the"
    return place_with(preposition, NounPhrase(where, determiner, False, appearance(dice, where, 0.15)))


def location(dice: Dice, noun: str) -> Place:
    """Draw where a thing is: "under the table", "behind the old church"."""
    preposition, where = dice.choice(LOCATIONS[noun])
    roll = dice.random()
    determiner = "this" if roll < 0.08 else dice.choice(OWNERS) if roll < 0.3 and where in OWNED else "the"
    if where in GROUPS["only_the"]:
        determiner = "the"
    return place_with(preposition, NounPhrase(where, determiner, False, appearance(dice, where, 0.35)))


def place_with(preposition: str, where: NounPhrase) -> Place:
    """A place: "at the beach" in general, but "on" a specific one ("on the long beach")."""
    specific = bool(where.adjectives) or where.determiner != "the"
    if preposition == "at" and specific and "on" in PLACES.get(where.noun, ()):
        return Place("on", where)
    return Place(preposition, where)
