"""Plots about things: lost, borrowed, swapped, hidden, given and fought over.

The letters in templates are roles, see `draw_cast`.
"""

from __future__ import annotations

from clearhead.corpora.stories.world import Narration


def lost(t: Narration) -> None:
    """A thing is left at one of two places and found where it was left."""
    t.have("h", "x", "[{h} had a {x.full} and took it everywhere.|{h} loved {h.his} {x.full} more than anything else.]")
    t.go("h", "p", "{when}, {h.he} [went|ran|walked] to {p} [to meet {f}|with {f}].")
    left_early = t.dice.chance(0.5)
    if left_early:
        t.leave("h", "x", "[When they grew hungry,|While they talked,] {h} [put|laid] the {x} {p.spot}.")
    else:
        t.say("[The two of them {x.did} until noon.|They took turns to {x.do}.|{F} asked to {x.do}, too.]")
    t.go("h", "q", "[Later|After that|In the afternoon] {h} [went on|hurried on|walked on] to {q}[ alone|].")
    if not left_early:
        t.leave("h", "x", "[There {h.he} put the {x} {q.spot} and sat down to rest.|{h.He} laid the {x} {q.spot}.]")
    t.new_paragraph()
    t.go("h", "home", "[Only at home did {h} notice|Back home, {h} noticed] that the {x} was [gone|missing].")
    t.say('"Where did you [have it last|see it last]?" [asked {f}|{f} asked].')
    t.cast["r"] = t.cast["p" if left_early else "q"]  # where to return to
    t.say('"{r.At}!" {h.he} [cried after a while|said at last|shouted all at once].')
    t.new_paragraph()
    t.go("h", "r", "[They ran all the way|Together they ran back|{h} ran back as fast as {h.he} could] to {r}.")
    t.take("h", "x", "[There|Sure enough, there] was the {x}, {r.spot}, just where {h} had left it.")
    t.say("[That night {h} put the {x} beside {h.his} bed.|{h} held the {x} tight all the way home.]")


def borrowed(t: Narration) -> None:
    """A borrowed thing is damaged, repaired and returned."""
    t.have("f", "x", "[{F} had a {x.full}.|{F} was proud of {f.his} {x.full}.|{F} owned a fine {x.full}.]")
    t.say('[{when}, {h} asked, "May I borrow it?"|"Could I have it for a day?" {h} asked {f.him}.]')
    t.give("f", "h", "x", '"[Yes|Of course], but take care of it," said {f}, and gave {h} the {x}.')
    t.go("h", "p", "{h} [carried it|took it straight] to {p} and {x.did} [again and again|to {h.his} heart's content].")
    t.new_paragraph()
    t.say("[Then|But then|All at once] {x.harm}.")
    t.say("[{h} went pale.|{h} felt {h.his} heart sink.|{h} did not know what to do.]")
    t.say("[{h.He} could hide the {x}, but that would be a lie.|For a moment {h.he} thought of running away.]")
    helped = t.dice.chance(0.5)
    if helped:
        t.say('"[Bring it here|Let me see]," said {e}, who [knew about such things|had watched it all].')
        t.say("[Together they|{E} showed {h} how, and {h.he}] {x.mend}.")
    else:
        t.say("[So {h.he} sat down and|So {h.he} went home, found some tools and] {x.mend}.")
    t.new_paragraph()
    t.give(
        "h",
        "f",
        "x",
        "[In the evening|Before dark|The next day] {h} brought the {x} back to {f} and told {f.him} everything.",
    )
    t.say(
        '["It is better than before," said {f}, looking at it [closely|from all sides].|'
        '"You told me the truth," said {f}, "so you may borrow it again."|'
        '"Thank you for telling me," said {f}, and they {x.did} together.]'
    )


def swaps(t: Narration) -> None:
    """One thing is swapped for another, and that for a third, until everybody has what they wanted."""
    t.have("h", "x", "{h} had a {x.full}, but [what {h.he} wanted was|{h.he} dreamed of] a {z}.")
    t.have(
        "e",
        "z",
        "The only one [around|in the village] was a {z.full}, and {e}, its owner, wanted a {y} for it.",
    )
    t.new_paragraph()
    t.go("h", "p", "{when}, {h} [set out for|went to] {p} with the {x}.")
    t.have("f", "y", "{F} was there[, too|], [carrying|holding] a {y.full}.")
    t.say('"[Shall we swap|Will you swap]?" {h} [asked|asked {f.him}].')
    t.give("h", "f", "x", "{F} [liked|admired] the {x} [very much|at once], so {h} handed it over.")
    t.give("f", "h", "y", "[In return|In exchange], {f} gave {h.him} the {y}.")
    t.new_paragraph()
    t.go("h", "q", "[Then|After that] {h} [ran|hurried] to {q}, where {e} was [waiting|working|resting].")
    t.give("h", "e", "y", "[{E} took the {y} and smiled.|{E} turned the {y} over twice and kept it.]")
    t.give(
        "e", "h", "z", '"A promise is a promise," said {e}, and [handed {h} the {z}|put the {z} into {h.his} hands].'
    )
    t.say(
        "[That evening {f} {x.did_so}, {e} {y.did_so}, and {h} {z.did_so}.|"
        "So {f} kept the {x}, {e} kept the {y}, and {h} went home with the {z}.]"
    )


def present(t: Narration) -> None:
    """A present is hidden, nearly found and finally given."""
    t.say("{F}'s birthday was [near|only three days away|on Sunday], and {h} still had no present[ for {f.him}|].")
    t.have("h", "x", "{when}, {h.he} [spent all {h.his} savings on a {x.full}|saw a {x.full} in a shop and bought it].")
    t.go("h", "q", "To keep it secret, {h.he} [took it|carried it under {h.his} coat] to {q}.")
    t.leave("h", "x", "There {h.he} [hid the {x}|wrapped up the {x} and hid it] {q.spot}.")
    t.new_paragraph()
    t.say(
        '"Let us [play {q.at}|meet {q.at}]," said {f} the next day. "[No, no|Not there|Anywhere but there]!" cried {h}.'
    )
    t.say("{F} was [puzzled|surprised|a little hurt], but [asked no more|said nothing].")
    t.new_paragraph()
    t.go("f", "q", "[When the birthday came|On the great day], {h} led {f} to {q} with {f.his} eyes [closed|shut].")
    t.take(
        "h",
        "x",
        "[There lay the {x}, {q.spot}, and {h} picked it up.|{h} bent down and took the {x} from its hiding place.]",
    )
    t.give("h", "f", "x", '"[It is for you|Happy birthday]," said {h}, and [gave it to {f}|put it into {f.his} hands].')
    t.say('["So that was your secret!"|"Now I understand!"] {f} [laughed|said], and {x.did} [at once|then and there].')


def doorstep(t: Narration) -> None:
    """Gifts appear on a doorstep; the giver is discovered and thanked."""
    t.say(
        "One [bright|cold|misty|rainy|quiet] morning, {h} found a [jar of honey|loaf of bread|bowl of plums] "
        "on the doorstep."
    )
    t.say("[The next morning there was another.|It happened again on the second day, and on the third.]")
    t.say('"Who [can it be|would do that]?" {f} [asked|wondered], but [nobody knew|{h} did not know].')
    t.new_paragraph()
    t.have(
        "h",
        "x",
        "[That night|So, before dawn,] {h} sat down at the window with a {x.full} to keep [watch|awake].",
    )
    t.say("[At sunrise|When the cock crowed] the gate creaked, and [along the path|through the fog] came {n}.")
    t.say('"[It was you|So it was you]!" [said|cried] {h}.')
    t.say(
        '"[Last winter|When I was ill|In the long frost] you [cleared my path|carried my wood|brought me soup]," '
        'said {n}. "[I have not forgotten|I never thanked you]."'
    )
    t.new_paragraph()
    t.give("h", "n", "x", "{h} [thought for a moment|smiled], and then {h.he} gave {n} the {x}.")
    t.say("Since then {n} and {h} have [had breakfast together every Sunday|been the best of neighbours].")
    t.say("And [in {n}'s house there is|if you visit {n}, you will see] a {x.full}.")


def storm(t: Narration) -> None:
    """Somebody is out in a storm; a light or a sound brings them home."""
    t.say(
        "[A storm came up from the sea|The storm began at dusk|The wind rose, and every lamp in the village went out]."
    )
    t.say("[{h} looked around the room|{h} counted the family twice]: {f} was not there.")
    t.go("f", "p", '"{f.He} went to {p}," [said {k}|{k} remembered], "and [has not come back|the road is dark]."')
    t.have(
        "h",
        "x",
        "{h} [put on a coat, took|picked up] a {x.full} and [went out|opened the door].",
    )
    t.new_paragraph()
    t.go("h", "p", "[Step by step|Through rain and mud] {h} [fought {h.his} way|made {h.his} way] to {p}.")
    t.say('"{F}!" {h.he} called. [Only the wind answered.|Nobody answered at first.]')
    t.say("Then [a small voice came|{h} heard something move]: {f} was sitting {p.spot}, wet and cold.")
    t.new_paragraph()
    t.give(
        "h",
        "f",
        "x",
        '"[Hold this|You carry this]," said {h}, and gave {f.him} the {x}. "[I know the way|I will lead you]."',
    )
    t.say("[Hand in hand|Side by side] they went home, where {k} had [made soup|lit a fire|warmed two blankets].")
    t.say("[{F} fell asleep by the stove, the {x} beside {f.him}.|{F} would not let go of the {x} all night.]")


def quarrel(t: Narration) -> None:
    """Two friends fight over a thing; the one who wins it finds that it is no fun alone."""
    t.go("h", "p", "{when}, [{h} and {f} were playing|{h} met {f}] [{p.at}|near {p}].")
    t.lie(
        "x", "p", "[They both saw it in the same moment|Both of them saw it at the same time]: {p.spot} lay a {x.full}."
    )
    t.say('["I saw it first!" cried {h}. "No, I did!"|"It is mine!" cried {h}. "No, mine!"] cried {f}.')
    t.take("h", "x", "{h} was quicker, [grabbed|snatched up] the {x} and [ran home|marched off].")
    t.new_paragraph()
    t.say("[Alone in the yard|At home], {h.he} {x.did}, [but it was no fun alone|but had nobody to share it with].")
    t.say("[{h.He} thought of {f}, who had no {x} and nobody to play with.|After an hour {h.he} wanted to cry.]")
    t.go(
        "h",
        "q",
        "[So {h.he} looked for {f} everywhere and found {f.him}|At last {h.he} went and found {f}] [{q.at}|near {q}].",
    )
    t.give("h", "f", "x", '"[You take it|Here]," said {h}, and [held out|gave {f.him}] the {x}.')
    t.new_paragraph()
    t.say(
        '["We could take turns," said {f}. "You on Mondays, I on Tuesdays."|'
        '"Let us keep it together," said {f}, "{p.at}, where we found it."]'
    )
    t.say("[They shook hands on it|And so they did], and never [quarrelled|fought] over the {x} again.")
