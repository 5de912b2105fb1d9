"""Import models of other libraries as runs, and export runs for other libraries.

`huggingface.py` reads and writes folders of Hugging Face's `transformers`. `targets.py` lists what `clearhead export`
can write: another target is one entry there, and one file here.
"""
