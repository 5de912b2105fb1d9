"""Examples to batches.

Read the files in this order:

    examples.py     the kinds of examples that a corpus consists of
    readers/        files, tables and Hugging Face data sets as corpora
    sources.py      which corpus the settings mean
    encode.py       examples -> columns of token ids
    store.py        those columns on disk, mapped into memory, in a cache
    plan.py         which examples share a batch: buckets of similar lengths
    batches.py      token ids -> padded batches, one function for each kind of example
    stream.py       token ids -> blocks without padding: running text, packed conversations
    datasets.py     which of these classes each task uses
    loader.py       from settings to batches, and onto the device

Beside these: names.py and subwords.py vary pairs (invented names, other segmentations), report.py counts what was left
out, background.py reads ahead in a thread, summary.py describes a corpus.
"""
