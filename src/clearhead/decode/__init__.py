"""Using a trained run: translations, continuations, answers, classes, vectors.

    translate.py, generate.py, chat.py   text -> text
    embed.py, fill.py                    text -> class or vector; masked text -> tokens
    search.py, beam.py, sampling.py      which token comes next
    steps.py                             what a step of a search is
    batching.py, limits.py, stream.py    padding; how many tokens fit; text as it is generated
    defaults.py                          beam width, length penalty, number of tokens

The rest computes the same faster. On a CPU: direct.py, direct_block.py, packed.py, fast.py; on a GPU: recorded.py,
graphs.py, fixed.py, prefill.py, decode_step.py, fused.py.

The functions here expect a run of the right task: the command line and `clearhead.load` check it first.
"""
