"""Plots about rescues, races, gardens, secrets and thieves.

The letters in templates are roles, see `draw_cast`.
"""

from __future__ import annotations

from clearhead.corpora.stories.world import Narration


def rescue(t: Narration) -> None:
    """An animal is stuck; two friends free it, and it gets a home or returns to its owner."""
    t.go("h", "p", "{when}, {h} was [on the way|walking] to {p} when something {a.called}.")
    t.say("It was a [small|young|tiny] {a}, caught in [a hole in the fence|an old net|a thorny hedge].")
    t.say(
        '"[Do not be afraid|Keep still]," {h} said [softly|quietly], but alone {h.he} could not [free it|get it out].'
    )
    t.new_paragraph()
    t.go("h", "q", "[So {h} ran|{h} ran] to {q} and [fetched|called] {f}.")
    t.say(
        "[{F} held the {a} while {h} pulled|{h} held the {a} while {f} cut], and [at last|after a while] it was free."
    )
    t.say("[They gave it {a.food}, and it ate everything.|{F} gave it {a.food}, which was gone in a moment.]")
    t.new_paragraph()
    if t.dice.chance(0.5):
        t.say('"[Nobody is looking for it|It has no home]," said {n}. "You may keep it, {h}."')
        t.say("[Now the {a} lives with {h} and sleeps by the stove.|So {h} took the {a} home that same evening.]")
        t.say("[Every morning it wakes {h.him}, hungry for {a.food}.|And nothing makes it happier than {a.food}.]")
    else:
        t.say('"That is my {a}!" cried {n}, who had [looked for it everywhere|been searching since breakfast].')
        t.say("[{N} took the {a} home|The {a} went home with {n}], and {h} and {f} [were invited to tea|went along].")
        t.say("[When {h} passes by, the {a} still comes running.|The {a} has never forgotten who heard it first.]")


def race(t: Narration) -> None:
    """Two children race; the one in front turns back to help."""
    t.have("e", "x", "{E} had promised a {x.full} to [the winner of|whoever won] the [summer|village|school] race.")
    t.say("{when}, {h} and {f} stood [at the start|side by side], [ready to run|waiting for the whistle].")
    t.go("h", "p", "[The way led|They had to run] to {p} and back, [a whole mile|over two hills|through the woods].")
    t.say("{h} was soon in front [and could already see the finish|and did not look back once].")
    t.new_paragraph()
    t.say("Then [there was|{h} heard] a cry behind {h.him}. {F} had fallen and was holding {f.his} [foot|ankle|knee].")
    t.say("{h} stopped. [All the others ran past|Two others ran past], but {h.he} turned round.")
    t.say('"[Lean on me|Put your arm around me]," {h.he} said, and [step by step|slowly] they went on together.')
    t.new_paragraph()
    t.say("They were the last to arrive, yet [everybody clapped|the whole village cheered].")
    t.say('"[Others were faster|There are faster runners]," said {e}, "but nobody [was kinder|deserves this more]."')
    t.give(
        "e", "h", "x", "[And {e.he} gave the {x} to {h}|So it was {h} who got the {x}], and {h} let {f} {x.do} first."
    )


def garden(t: Narration) -> None:
    """A seed is planted, cared for and shared."""
    t.say('{E} gave {h} a seed. "[Plant it with care|Give it water and time]," {e.he} said[, "and wait."|.]')
    t.say("{when}, {h} [dug a hole|knelt down] and planted it {b}.")
    t.say("[Day after day|Every evening] {h.he} brought water, but [nothing happened|nothing grew].")
    t.say('"[It is only a stone|Nothing will come of it]," said {f}, but {h} [went on all the same|did not give up].')
    t.new_paragraph()
    t.say("Then, [after a night of rain|one warm morning], [a green tip|a tiny leaf] had come up {b}.")
    t.say("[It grew and grew|It grew higher every week], and [soon|in the end] everyone could see it: a {s}!")
    t.say("[Now {f} wanted to help, and carried water, too.|Even {f} had to say that {h} had been right.]")
    t.new_paragraph()
    t.say("[A year later|When the time came], {h} knocked at a door with {s.harvest} in {h.his} arms.")
    t.say("It was {e}'s door.")
    t.say('"[This is from your seed|You gave me the seed]!" said {h}. "[I have not forgotten it|You see, I waited]."')


def secret_note(t: Narration) -> None:
    """A note in an old book leads to a box that somebody hid long ago."""
    t.say("{when}, {h} was [reading in bed|helping {e} to dust the shelves|looking for something to read].")
    t.say('A [yellow|folded] note fell out of an old atlas: "Go to {q}, and look {q.spot}."')
    t.say('"[A joke|Nonsense]," said {f} when {h} showed {f.him} the note, but {f.his} eyes [shone|were bright].')
    t.new_paragraph()
    t.go("h", "q", "[They went to {q} at once.|Before supper they were both {q.at}.|The two of them ran to {q}.]")
    t.lie("x", "q", "And [indeed|really], {q.spot} was a [small|rusty|dusty] box, and in the box lay a {x.full}.")
    t.take("h", "x", "[Carefully|With both hands] {h} took out the {x}[ and wiped off the dust|].")
    t.new_paragraph()
    t.say('"[But that was my {x}|I know that {x}]!" said {e} that evening. "I hid it [as a child|when I was your age].')
    t.say('[Keep it|It is yours now], {h}."')
    t.say("[So {h} kept the {x}|{h} {x.did_so} until bedtime], and put the note back for the next child.")


def lost_child(t: Narration) -> None:
    """A small child gets lost and waits where it was told to wait."""
    t.go("h", "p", "{when}, {k} took {h} to {p}, [which was full of people|where there was a great crowd].")
    t.say('"[If we lose each other|If you cannot see me]," said {k}, "wait for me {p.spot}."')
    t.have("h", "x", "{h} [nodded|promised] and held on to {h.his} {x.full}.")
    t.new_paragraph()
    t.say("Then [a band marched|a man with a monkey came] past, and {h} followed [for a while|a little way].")
    t.say("When {h.he} [turned round|looked up], {k} was [nowhere to be seen|gone].")
    t.say('"[Are you lost|Are you alone]?" asked [a girl with a tray of cakes|a tall stranger]. {h} tried not to cry.')
    t.say("[Then {h.he} remembered what {k} had said.|Then {h.he} remembered the promise.]")
    t.new_paragraph()
    t.say("[So {h} sat down {p.spot}|{h} pushed through the crowd and stood {p.spot}], {x.did_so} and waited.")
    t.say('[Before long|Five minutes later] {k} came running. "[There you are|You remembered]!"')
    t.say("[They went home hand in hand, {h} and {k} and the {x}.|{K} carried {h} home, and {h} carried the {x}.]")


def mix_up(t: Narration) -> None:
    """Two people take each other's parcel by mistake, and swap back."""
    t.have("h", "x", "{when}, {h} was waiting for the [bus|train|ferry] with a parcel for {e}: a {x.full}.")
    t.have("f", "y", "Beside {h.him} stood {f}, with a parcel just like it, but in that one was a {y.full}.")
    t.say("[A dog ran by|A gust of wind came], and both parcels fell to the ground.")
    t.give("h", "f", "x", "In the [hurry|muddle], {f} took the wrong one and left with the {x}.")
    t.give("f", "h", "y", "{h} picked up the other, [never thinking that it was|which held] the {y}.")
    t.new_paragraph()
    t.go("h", "p", "[At {p}, where {e} was waiting, {h} opened it|{h} met {e} [{p.at}|near {p}] and opened it].")
    t.say('"[But this is a {y}|I asked for no {y}]!" [cried|laughed] {e}, and {h} turned red.')
    t.go(
        "h",
        "q",
        "{h} ran back, and [found {f} [{q.at}|near {q}]|on the way, [{q.at}|near {q}], met {f}], out of breath.",
    )
    t.new_paragraph()
    t.give("f", "h", "x", '"[This must be yours|I think this is yours]," said {f}, and held out the {x}.')
    t.give("h", "f", "y", '"And this is yours," said {h}, and gave back the {y}.')
    t.give("h", "e", "x", "[So in the end {e} got the {x} after all.|And {e} got the {x}, only an hour late.]")


def thief(t: Narration) -> None:
    """Things vanish one by one, and turn up in one hiding place."""
    t.cast["spoil"] = t.dice.choice(("spoon", "shoe", "ribbon", "glove"))
    t.lie(
        "x",
        "p",
        "{when}, {h} [looked everywhere for {h.his} {x.full}, but it was|found that {h.his} {x.full} was] gone.",
    )
    t.lie("y", "p", "[The next day|On Tuesday] {e}'s {y.full} was missing, too, and then a {spoil}.")
    t.say('"[There is a thief about|We have a thief here]!" people [said|whispered], and locked their doors.')
    t.say("{F} [found the only clue|saw it first]: a trail of [crumbs|feathers|straw] on the path to {p}.")
    t.new_paragraph()
    t.go(
        "h",
        "p",
        "{h} and {f} followed it[ on tiptoe|] until they were {p.at}. [Something rustled.|Something {a.called}.]",
    )
    t.say("{P.spot} sat a {a}, [looking very pleased|proud of its treasure], on a heap of stolen things.")
    t.take("h", "x", "[There was the {x}, and {h} picked it up with joy.|{h} saw the {x} at once and pulled it out.]")
    t.take("h", "y", "[Beside it|Under it] lay the {y}, and {h} took that, too.")
    t.say('"[Clever {a}|So you are the thief]!" said {f}, and [offered it|gave it] {a.food}[ instead|].')
    t.new_paragraph()
    t.give("h", "e", "y", "[That evening|By nightfall] {e} had the {y} back, and {h} {x.did_so} [as before|again].")
    t.say("[The {a} kept the {spoil}, and nobody minded.|Only the {spoil} stayed with the {a}, as a present.]")
