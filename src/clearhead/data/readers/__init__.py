"""Your own files and other people's data sets as corpora.

files.py       find files, decompress them and read their lines as text
tables.py      rows of TSV, CSV, JSONL and JSON files
aligned.py     two files whose lines belong together, such as train.en and train.de
documents.py   plain text in documents, and documents in parts
fields.py      the fields of a row -> an example
folder.py      a file or folder as a corpus
hub.py         a Hugging Face data set as a corpus
"""
