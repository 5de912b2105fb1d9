"""The templates of reviews: judgements of one aspect, verdicts, and shapes that say which judgement counts.

Slots of clauses and sentences: {it} what is judged, {was} its verb, {adjective}; a positive adjective is {hoped} for
and {promised}, a negative one is feared and warned of. Index False: the polarity of the adjective is kept; True: it is
inverted.
"""

from __future__ import annotations

CLAUSES = (
    (
        "{it} {was} {adjective}",
        "{it} {was} [very|really|truly] {adjective}",
        "{it} {was} as {adjective} as could be",
        "{it} {was} every bit as {adjective} as I had {hoped}",
        "nobody could deny that {it} {was} {adjective}",
        "{it} {was} nothing if not {adjective}",
        "{it} {was} without doubt {adjective}",
    ),
    (
        "{it} {was} not {adjective} at all",
        "{it} {was} not [in the least|in any way] {adjective}",
        "{it} {was} anything but {adjective}",
        "{it} {was} far from {adjective}",
        "{it} {was} by no means {adjective}",
        "{it} {was} nowhere near as {adjective} as I had {hoped}",
        "I would not call {it} {adjective}",
        "nobody could call {it} {adjective}",
        "{it} could not have been less {adjective}",
    ),
)
STRONG_CLAUSES = (
    ("{it} {was} {adjective}", "{it} {was} [simply|absolutely|really] {adjective}", "I found {it} {adjective}"),
    ("{it} {was} anything but {adjective}", "{it} {was} far from {adjective}", "nobody could call {it} {adjective}"),
)
SENTENCES = (
    (
        "[My sister|A friend|My neighbour] [says|told me] that {it} {was} {adjective}, and [I agree|that is true].",
        "I had {hoped} that {it} would be {adjective}. [I was right|So it turned out].",
        "[People|The reviews] {promised} me that {it} would be {adjective}, and they were right.",
        '"{It} {was} {adjective}," [said my brother|wrote the newspaper]. [I can only agree|How true].',
        "[Some say|Some people think] that {it} {was} not {adjective}. [I disagree|They are wrong|I cannot agree].",
    ),
    (
        "[My sister|A friend|My neighbour] [says|told me] that {it} {was} {adjective}, but I [disagree|cannot agree].",
        "I had {hoped} that {it} would be {adjective}. [I was wrong|It turned out otherwise].",
        "[People|The reviews] {promised} me that {it} would be {adjective}, but they were wrong.",
        '"{It} {was} {adjective}," [said my brother|wrote the newspaper]. [I cannot agree|That is not true].',
        "If {it} {was} {adjective}, [I did not notice|nobody noticed|we never saw it].",
    ),
)
# index False: verdicts of a negative review; True: of a positive one, in almost the same words
VERDICTS = (
    (
        "I would [not|never] {again}.",
        "I would rather wait ten years than {again}.",
        "I cannot recommend this {noun}.",
        "I recommend this {noun} to nobody.",
        "it was [not worth|hardly worth] a penny.",
        "I [regret every minute|wish I had never heard of it].",
        "[I was disappointed|I was not happy].",
        "it was [much worse than I had hoped|no better than I had feared].",
        "would I {again}? [Never|I doubt it|Certainly not].",
        "I expected a lot and got little.",
        "I wanted to like this {noun}, but I could not.",
        "I have never known a worse {noun}.",
        "I would not wish this {noun} on anybody.",
        "any other {noun} would have been better.",
    ),
    (
        "I would [gladly {again}|{again} any time].",
        "I cannot wait to {again}.",
        "I cannot recommend this {noun} enough.",
        "I recommend this {noun} to anybody.",
        "it was worth every penny.",
        "I [do not regret a minute|wish I had heard of it sooner].",
        "[I was not disappointed|I was happy].",
        "it was [much better than I had feared|no worse than the best].",
        "would I {again}? [Any time|No doubt|Certainly].",
        "I expected little and got a lot.",
        "I wanted to dislike this {noun}, but I could not.",
        "I have never known a better {noun}.",
        "I would not miss this {noun} for anything.",
        "no other {noun} would have been better.",
    ),
)
# verdicts that allow no exception: only where all judgements agree
TOTALS = (
    (
        "I have nothing but complaints.",
        "There is nothing to praise.",
        "I want my money back.",
        "They can do nothing right.",
        "Nothing was as it should be.",
    ),
    (
        "I have nothing but praise.",
        "There is nothing to complain about.",
        "I do not want my money back.",
        "They can do nothing wrong.",
        "Nothing was as I had feared.",
    ),
)
# {pro} a clause that supports the verdict, {con} one that contradicts it, {say} a whole sentence that supports it,
# {thing} something that contradicts it; {wish} "like" in a negative review, "dislike" in a positive one
SHAPES = (
    "{Pro}. {say}",
    "{Pro}, and {pro}. [{total}|{Verdict}]",
    "{say} {Pro}. [{total}|{Verdict}]",
    "{Pro}. {say} [{total}|{Verdict}]",
    "[True|Yes|Granted], {con}. [Still|Even so|All the same], {verdict}",
    "{Con}, and {con}. [And yet|But in the end] {verdict}",
    "[Although|Even though|While] {con}, {pro}, and [that is what counts|that mattered more]. {Verdict}",
    "{Con}, but {pro}, and [that is what counts|that is all that matters|nothing else matters].",
    "{Verdict} [True|Yes|Granted], {con}, but {pro}.",
    "{Verdict} {Pro}[, even if {con}|].",
    "I wanted to {wish} this {noun}, but {pro}, and {pro}.",
    "I wanted to {wish} this {noun}, and {con}. But then {pro}. {Verdict}",
    "Everybody else {wish}s this {noun}. I do not. {Pro}.",
    "Despite {thing}, {pro}. {Verdict}",
    "[Forget|Never mind] {thing}. {say} {Verdict}",
)
