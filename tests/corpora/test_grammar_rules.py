"""Each rule of the two grammars: a meaning, its English and its French."""

import pytest

from clearhead.corpora.grammar import english, french
from clearhead.corpora.grammar.meaning import (
    Age,
    Both,
    Clause,
    Joined,
    Name,
    Nominal,
    Place,
    Pronoun,
    Quality,
    Sentence,
    There,
    combinations,
)
from clearhead.corpora.grammar.meaning import Interrogative as Ask
from clearhead.corpora.grammar.meaning import NounPhrase as N

ME, YOU, HE, SHE, WE, THEY = (Pronoun(word) for word in ("i", "you", "he", "she", "we", "they"))
RAIN, TO_MARKET = Pronoun("weather"), (Place("to", N("market")),)


def is_(subject: Nominal, adjective: str, tense: str = "present", time: str = "") -> Clause:
    return Clause(subject, "be", tense, predicate=Quality(adjective), time=time)


CAR, FLOWERS, GIRL, GIRLS = N("car"), N("flower", plural=True), N("girl"), N("girl", plural=True)
SINGING = GIRL._replace(relative=Clause(Pronoun("who", GIRL), "sing", "progressive"))
RULES: list[tuple[Sentence, str, str]] = [
    # agreement with the subject, however far away
    (is_(CAR, "red"), "the car is red", "la voiture est rouge"),
    (is_(N("book"), "green"), "the book is green", "le livre est vert"),
    (is_(FLOWERS, "white"), "the flowers are white", "les fleurs sont blanches"),
    (
        is_(FLOWERS._replace(place=Place("in", N("vase"))), "white"),
        "the flowers in the vase are white",
        "les fleurs dans le vase sont blanches",
    ),
    (is_(Both(Name("Anna"), GIRL), "happy"), "Anna and the girl are happy", "Anna et la fille sont heureuses"),
    (is_(Both(Name("Anna"), Name("Paul")), "happy"), "Anna and Paul are happy", "Anna et Paul sont heureux"),
    (is_(ME, "tired"), "I am tired", "je suis fatigué"),
    (is_(WE, "tired"), "we are tired", "nous sommes fatigués"),
    (is_(SHE, "proud"), "she is proud", "elle est fière"),
    (is_(N("shoe", plural=True), "brown"), "the shoes are brown", "les chaussures sont marron"),
    # the place and the forms of adjectives
    (There(N("car", "a", adjectives=("small", "red")), Place("in", N("street"))),
     "there is a small red car in the street", "il y a une petite voiture rouge dans la rue"),
    (is_(N("tree", "a", adjectives=("beautiful",)), "round"), "a beautiful tree is round", "un bel arbre est rond"),
    (is_(N("man", "this", adjectives=("old",)), "kind"), "this old man is kind", "ce vieil homme est gentil"),
    (is_(N("hotel", "the", adjectives=("new",)), "quiet"), "the new hotel is quiet", "le nouvel hôtel est tranquille"),
    (is_(N("owl", adjectives=("old",)), "calm"),
     "the old owl is calm", "le vieux hibou est calme"),
    (There(N("house", "some", True, ("old",)), Place("near", N("lake"))),
     "there are some old houses near the lake", "il y a de vieilles maisons près du lac"),
    (There(N("horse", "two", True, ("white",)), Place("in", N("field"))),
     "there are two white horses in the field", "il y a deux chevaux blancs dans le champ"),
    # elision and the aspirated h
    (is_(N("tree"), "old"), "the tree is old", "l'arbre est vieux"),
    (is_(N("clock"), "old"), "the clock is old", "l'horloge est vieille"),
    (is_(N("hedgehog"), "small"), "the hedgehog is small", "le hérisson est petit"),
    (Clause(ME, "like", object=N("apple", "all", True)), "I like apples", "j'aime les pommes"),
    (Clause(HE, "like", polarity="not", object=N("tea", "all")), "he does not like tea", "il n'aime pas le thé"),
    (Joined("because", Clause(HE, "sleep", "progressive"), is_(HE, "tired")),
     "he is sleeping because he is tired", "il dort parce qu'il est fatigué"),
    (Joined("if", Clause(RAIN, "rain"), Clause(SHE, "stay", "future", places=(Place("in", N("house")),)), True),
     "if it rains, she will stay in the house", "s'il pleut, elle restera dans la maison"),
    (Joined("if", is_(SHE, "sad"), Clause(SHE, "cry", "future"), True),
     "if she is sad, she will cry", "si elle est triste, elle pleurera"),
    # contraction, and none before l'
    (Clause(WE, "go", "past", places=TO_MARKET), "we went to the market", "nous sommes allés au marché"),
    (Clause(HE, "go", "future", places=(Place("to", N("hotel")),)), "he will go to the hotel", "il ira à l'hôtel"),
    (Clause(ME, "talk_to", "past", object=N("child", plural=True)), "I talked to the children",
     "j'ai parlé aux enfants"),
    (Clause(ME, "talk_about", "past", object=N("film")), "I talked about the film", "j'ai parlé du film"),
    (is_(N("house", place=Place("near", N("river"))), "big"), "the house near the river is big",
     "la maison près de la rivière est grande"),
    (is_(N("dog", "of", owner=N("boy")), "black"), "the boy's dog is black", "le chien du garçon est noir"),
    (is_(N("dog", "of", owner=Name("Anna")), "black"), "Anna's dog is black", "le chien d'Anna est noir"),
    (Clause(SHE, "play_music", "progressive", object=N("piano")), "she is playing the piano", "elle joue du piano"),
    (Clause(SHE, "play_game", "progressive", object=N("football", "all")), "she is playing football",
     "elle joue au football"),
    (Clause(WE, "play_game", "past", object=N("cards", "all", True)), "we played cards", "nous avons joué aux cartes"),
    # cities and countries
    (Clause(ME, "live", places=(Place("in", Name("London")),)), "I live in London", "j'habite à Londres"),
    (Clause(HE, "go", "past", places=(Place("to", Name("Italy")),)), "he went to Italy", "il est allé en Italie"),
    (Clause(HE, "go", "past", places=(Place("to", Name("Japan")),)), "he went to Japan", "il est allé au Japon"),
    (Clause(SHE, "come", places=(Place("from", Name("Spain")),)), "she comes from Spain", "elle vient d'Espagne"),
    (Clause(SHE, "come", places=(Place("from", Name("Brazil")),)), "she comes from Brazil", "elle vient du Brésil"),
    (Clause(HE, "work", "progressive", places=(Place("on", N("farm")),)), "he is working on the farm",
     "il travaille à la ferme"),
    # negation
    (Clause(GIRL, "sleep", "progressive", "not"), "the girl is not sleeping", "la fille ne dort pas"),
    (Clause(GIRL, "go", "past", "not", places=TO_MARKET), "the girl did not go to the market",
     "la fille n'est pas allée au marché"),
    (Clause(THEY, "eat", "present", "never", object=N("meat", "bare")), "they never eat meat",
     "ils ne mangent jamais de viande"),
    (Clause(SHE, "have", polarity="not", object=N("car", "a")), "she does not have a car",
     "elle n'a pas de voiture"),
    (Clause(HE, "eat", "past", "not", object=N("orange", "some", True)), "he did not eat any oranges",
     "il n'a pas mangé d'oranges"),
    (Clause(HE, "see", "past", "not", object=N("orange", "this")), "he did not see this orange",
     "il n'a pas vu cette orange"),
    (There(N("milk", "no"), Place("in", N("fridge"))), "there is no milk in the fridge",
     "il n'y a pas de lait dans le réfrigérateur"),
    (Clause(SHE, "sleep", polarity="not", modal="can"), "she cannot sleep", "elle ne peut pas dormir"),
    # tenses
    (Clause(HE, "eat", "past", object=N("apple", "the")), "he ate the apple", "il a mangé la pomme"),
    (Clause(ME, "buy", "future", object=N("bread", "bare")), "I will buy bread", "j'achèterai du pain"),
    (Clause(WE, "see", "going", object=N("film", "a")), "we are going to see a film", "nous allons voir un film"),
    (Clause(HE, "have", "past", object=N("dog", "a")), "he had a dog", "il avait un chien"),
    (is_(GIRLS, "tall", tense="past"), "the girls were tall", "les filles étaient grandes"),
    (Joined("when", Clause(HE, "read", "background"), Clause(GIRL, "arrive", "past")),
     "he was reading when the girl arrived", "il lisait quand la fille est arrivée"),
    (Joined("when", Clause(SHE, "arrive", "upcoming"), Clause(WE, "eat", "future"), True),
     "when she arrives, we will eat", "quand elle arrivera, nous mangerons"),
    (Clause(HE, "go", "past", places=TO_MARKET, time="yesterday", time_first=True),
     "yesterday, he went to the market", "hier, il est allé au marché"),
    # participles
    (Clause(GIRLS, "leave", "past"), "the girls left", "les filles sont parties"),
    (Clause(N("woman"), "get_up", "past"), "the woman got up", "la femme s'est levée"),
    (Clause(ME, "wake_up", "past"), "I woke up", "je me suis réveillé"),
    (Clause(ME, "see", "past", object=SHE), "I saw her", "je l'ai vue"),
    (Clause(ME, "see", "past", object=THEY), "I saw them", "je les ai vus"),
    (is_(N("letter", relative=Clause(HE, "write", "past", object=Pronoun("that", N("letter")))), "long"),
     "the letter that he wrote is long", "la lettre qu'il a écrite est longue"),
    (Clause(ME, "talk_to", "past", object=SHE), "I talked to her", "je lui ai parlé"),
    (Clause(SHE, "sleep", "past", manner="well"), "she slept well", "elle a bien dormi"),
    # pronouns
    (Clause(SHE, "see", object=ME), "she sees me", "elle me voit"),
    (Clause(HE, "love", polarity="not", object=YOU), "he does not love you", "il ne t'aime pas"),
    (Clause(HE, "give", "past", object=N("book", "a"), recipient=SHE), "he gave her a book", "il lui a donné un livre"),
    (Clause(HE, "give", "past", object=N("book", "a"), recipient=THEY), "he gave them a book",
     "il leur a donné un livre"),
    (Clause(HE, "give", "past", object=N("book", "a"), recipient=GIRL), "he gave a book to the girl",
     "il a donné un livre à la fille"),
    (Clause(HE, "help", modal="want", object=THEY), "he wants to help them", "il veut les aider"),
    (Clause(ME, "get_up", modal="must"), "I must get up", "je dois me lever"),
    (Clause(SHE, "come", "progressive", places=(Place("with", THEY),)), "she is coming with them",
     "elle vient avec eux"),
    (Joined("but", is_(CAR, "old"), is_(Pronoun("it", CAR), "fast")), "the car is old, but it is fast",
     "la voiture est vieille, mais elle est rapide"),
    (Joined("and", is_(N("window"), "dirty"), Clause(HE, "clean", "past", object=Pronoun("it", N("window")))),
     "the window is dirty and he cleaned it", "la fenêtre est sale et il l'a nettoyée"),
    # determiners
    (is_(N("friend", "my", name="Anna"), "kind"), "my friend Anna is kind", "mon amie Anna est gentille"),
    (is_(N("friend", "my", name="Paul"), "kind"), "my friend Paul is kind", "mon ami Paul est gentil"),
    (is_(N("scarf", "her"), "red"), "her scarf is red", "son écharpe est rouge"),
    (is_(N("dress", "her"), "red"), "her dress is red", "sa robe est rouge"),
    (is_(N("school", "your", adjectives=("old",)), "closed"), "your old school is closed",
     "ta vieille école est fermée"),
    (is_(N("child", "this"), "shy"), "this child is shy", "cet enfant est timide"),
    (is_(N("shoe", "this", True), "new"), "these shoes are new", "ces chaussures sont nouvelles"),
    (There(N("bird", "many", True), Place("in", N("forest"))), "there are many birds in the forest",
     "il y a beaucoup d'oiseaux dans la forêt"),
    (There(N("cup", "few", True), Place("on", N("table"))), "there are a few cups on the table",
     "il y a quelques tasses sur la table"),
    (There(N("star", "twenty", True), Place("in", N("painting"))), "there are twenty stars in the painting",
     "il y a vingt étoiles dans le tableau"),
    (Clause(SHE, "drink", "progressive", object=N("water", "bare")), "she is drinking water", "elle boit de l'eau"),
    (Clause(SHE, "drink", "progressive", object=N("coffee", "bare")), "she is drinking coffee", "elle boit du café"),
    (There(N("cat", "a"), Place("on", N("mat"))), "there is a cat on the mat", "il y a un chat sur le tapis"),
    # to have hunger and years, to make cold, to be of a trade
    (is_(SHE, "hungry", tense="past"), "she was hungry", "elle avait faim"),
    (Clause(SHE, "be", predicate=Quality("thirsty", "very")), "she is very thirsty", "elle a très soif"),
    (Clause(HE, "be", predicate=Age("eleven")), "he is eleven years old", "il a onze ans"),
    (is_(RAIN, "cold", time="today"), "it is cold today", "il fait froid aujourd'hui"),
    (Clause(SHE, "be", predicate=N("musician", "a")), "she is a musician", "elle est musicienne"),
    (Clause(N("sister", "my", True), "be", predicate=N("baker", "bare", True)), "my sisters are bakers",
     "mes sœurs sont boulangères"),
    (Clause(Pronoun("this", N("brother", "my")), "be", predicate=N("brother", "my")), "this is my brother",
     "c'est mon frère"),
    (Clause(Pronoun("this", N("key", "my", True)), "be", "present", "not", predicate=N("key", "my", True)),
     "these are not my keys", "ce ne sont pas mes clés"),
    (Clause(CAR, "be", predicate=Quality("fast", than=N("bus"))), "the car is faster than the bus",
     "la voiture est plus rapide que le bus"),
    (Clause(CAR, "be", predicate=Quality("expensive", than=N("plane"))), "the car is more expensive than the plane",
     "la voiture est plus chère que l'avion"),
    # questions
    (Ask("", Clause(HE, "eat", "past", object=N("apple", "some", True))), "did he eat any apples?",
     "est-ce qu'il a mangé des pommes ?"),
    (Ask("", is_(CAR, "red")), "is the car red?", "est-ce que la voiture est rouge ?"),
    (Ask("where", Clause(CAR, "be")), "where is the car?", "où est la voiture ?"),
    (Ask("where", Clause(THEY, "work", "progressive")), "where are they working?",
     "où est-ce qu'ils travaillent ?"),
    (Ask("when", Clause(SHE, "leave", "future")), "when will she leave?", "quand est-ce qu'elle partira ?"),
    (Ask("why", Clause(YOU, "cry", "progressive", "not")), "why are you not crying?",
     "pourquoi est-ce que tu ne pleures pas ?"),
    (Ask("who", Clause(Pronoun("who?"), "eat", "past", object=N("cake", "the"))), "who ate the cake?",
     "qui a mangé le gâteau ?"),
    (Ask("what", Clause(HE, "eat", "present", frequency="often")), "what does he often eat?",
     "qu'est-ce qu'il mange souvent ?"),
    (Ask("how_many", There(N("egg"), Place("in", N("fridge")))), "how many eggs are there in the fridge?",
     "combien d'œufs y a-t-il dans le réfrigérateur ?"),
    (Ask("colour", Clause(FLOWERS, "be")), "what colour are the flowers?", "de quelle couleur sont les fleurs ?"),
    (Ask("age", Clause(Name("Paul"), "be")), "how old is Paul?", "quel âge a Paul ?"),
    # adverbs
    (Clause(HE, "read", "present", frequency="often", object=N("book", "bare", True)), "he often reads books",
     "il lit souvent des livres"),
    (Clause(HE, "wash", "past", object=N("car"), manner="slowly"), "he washed the car slowly",
     "il a lavé lentement la voiture"),
    (Clause(HE, "take", "future", object=N("bus"), time="soon"), "he will take the bus soon",
     "il prendra bientôt le bus"),
    # relative clauses
    (is_(GIRL._replace(relative=Clause(Pronoun("who", GIRL), "sing", "progressive")), "tall"),
     "the girl who is singing is tall", "la fille qui chante est grande"),
    (is_(N("dog", plural=True, relative=Clause(Pronoun("that", N("dog", plural=True)), "sleep", "progressive")), "old"),
     "the dogs that are sleeping are old", "les chiens qui dorment sont vieux"),
    (Clause(SINGING, "be", predicate=N("friend", "my")),
     "the girl who is singing is my friend", "la fille qui chante est mon amie"),
    (Clause(N("boy", relative=Clause(Pronoun("who", N("boy")), "lose", "past", object=N("key", "his"))), "cry",
            "progressive"),
     "the boy who lost his key is crying", "le garçon qui a perdu sa clé pleure"),
    (Clause(ME, "know", object=SINGING), "I know the girl who is singing", "je connais la fille qui chante"),
    (Ask("where", Clause(SINGING, "be")), "where is the girl who is singing?", "où est la fille qui chante ?"),
    # two clauses with different subjects
    (Joined("and", is_(ME, "hungry"), is_(SHE, "thirsty")), "I am hungry and she is thirsty",
     "j'ai faim et elle a soif"),
    (Joined("and", is_(CAR._replace(adjectives=("red",)), "fast"), is_(N("dog"), "big")),
     "the red car is fast and the dog is big", "la voiture rouge est rapide et le chien est grand"),
    # who somebody is
    (Clause(SHE, "be", predicate=N("neighbour", "my")), "she is my neighbour", "c'est ma voisine"),
    (Clause(THEY, "be", predicate=N("friend", "bare", True)), "they are friends", "ils sont amis"),
    (Clause(Name("Paul"), "be", predicate=N("brother", "her")), "Paul is her brother", "Paul est son frère"),
    (Ask("", Clause(HE, "be", predicate=N("uncle", "your"))), "is he your uncle?", "est-ce que c'est ton oncle ?"),
    (Ask("who_is", Clause(N("girl", "this"), "be")), "who is this girl?", "qui est cette fille ?"),
    # questions of number and of existence
    (Ask("how_many", Clause(YOU, "have", object=Pronoun("that", N("book", plural=True)))),
     "how many books do you have?", "combien de livres est-ce que tu as ?"),
    (Ask("how_many", Clause(HE, "eat", "past", object=Pronoun("that", N("apple", plural=True)))),
     "how many apples did he eat?", "combien de pommes est-ce qu'il a mangées ?"),
    (Ask("how_many", Clause(HE, "drink", "present", object=Pronoun("that", N("water")))),
     "how much water does he drink?", "combien d'eau est-ce qu'il boit ?"),
    (Ask("who", Clause(N("child", "how_many", True), "play", "progressive")),
     "how many children are playing?", "combien d'enfants jouent ?"),
    (Ask("", There(N("hotel", "a"), Place("near", N("sea")))), "is there a hotel near the sea?",
     "est-ce qu'il y a un hôtel près de la mer ?"),
    (Ask("whom", Clause(YOU, "meet", "past")), "who did you meet?", "qui est-ce que tu as rencontré ?"),
    (Ask("age", Clause(YOU, "be")), "how old are you?", "quel âge as-tu ?"),
    (Ask("age", Clause(SHE, "be")), "how old is she?", "quel âge a-t-elle ?"),
    (Ask("age", Clause(YOU, "be", "past")), "how old were you?", "quel âge avais-tu ?"),
    (Ask("age", Clause(HE, "be", time="now")), "how old is he now?", "quel âge a-t-il maintenant ?"),
    (Ask("where", Clause(YOU, "be", "past", time="yesterday")), "where were you yesterday?", "où étais-tu hier ?"),
    # what one wants to do, and to whom
    (Ask("what", Clause(YOU, "drink", modal="want")), "what do you want to drink?",
     "qu'est-ce que tu veux boire ?"),
    (Ask("", Clause(YOU, "help", modal="can", object=ME)), "can you help me?", "est-ce que tu peux m'aider ?"),
    (Clause(SHE, "talk_to", "past", object=Name("Paul")), "she talked to Paul", "elle a parlé à Paul"),
    (Ask("where", Clause(THEY, "be")), "where are they?", "où sont-ils ?"),
    # comparison with a pronoun; "very" before an adjective; the farm
    (Clause(SHE, "be", predicate=Quality("young", than=ME)), "she is younger than me", "elle est plus jeune que moi"),
    (Clause(ME, "read", "past", object=N("letter", "a", adjectives=("long",), very=True)),
     "I read a very long letter", "j'ai lu une très longue lettre"),
    (is_(N("cow"), "old")._replace(predicate=Place("near", N("farm", adjectives=("small",)))),
     "the cow is near the small farm", "la vache est près de la petite ferme"),
    (Clause(HE, "live", places=(Place("on", N("farm", "this")),)), "he lives on this farm",
     "il habite dans cette ferme"),
]  # fmt: skip


@pytest.mark.parametrize(("meaning", "said", "dit"), RULES, ids=[rule[1] for rule in RULES])
def test_a_meaning_in_both_languages(meaning: Sentence, said: str, dit: str) -> None:
    assert english.sentence(meaning) == said
    assert french.sentence(meaning) == dit


def test_combinations_are_read_off_the_meaning() -> None:
    small_car = N("car", "a", adjectives=("small", "red"))
    assert combinations(Clause(GIRL, "drive", object=small_car)) == ("girl drive", "small car", "red car", "drive car")
    assert combinations(is_(Pronoun("it", CAR), "fast")) == ("fast car",)
    assert combinations(Clause(SHE, "play_game", object=N("football", "all"))) == ()
    assert combinations(Ask("", Clause(Both(GIRL, N("boy")), "sleep"))) == ("girl sleep", "boy sleep")
