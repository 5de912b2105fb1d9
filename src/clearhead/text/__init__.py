"""Strings to token ids and back.

tokenizer.py            Tokenizer: encode, decode, special tokens; load, train, save
tokenizer_training.py   how the four kinds of tokenizers are trained
tokenizer_formats.py    the files of other tokenizers: Hugging Face's, GPT-2's, BERT's
bpe.py                  byte-pair encoding, slow and readable
cutting.py              long texts in parts, many texts in chunks
sentences.py            a text in sentences that a model can read
dialogue.py, chat.py    conversations, and how they are encoded
words.py                the words of a corpus, to warn about words that a run has never seen
"""
