"""Using a trained run: translations, continuations, answers, classes, vectors.

    translate.py, generate.py, chat.py   text -> text
    embed.py, fill.py                    text -> class or vector; masked text -> tokens
    search.py, beam.py, sampling.py      which token comes next
    steps.py                             what a step of a search is
    batching.py, limits.py, stream.py    padding; how many tokens fit; text as it is generated
    defaults.py                          beam width, length penalty, number of tokens

The faster decoders of CPUs and GPUs are in `clearhead.fast`.

The functions here expect a run of the right task: the command line and `clearhead.load` check it first.
"""
