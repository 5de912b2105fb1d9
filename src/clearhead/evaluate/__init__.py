"""Evaluation: how good a run is on a split of its corpus.

- `measures`: pure functions from outputs and references to a number: BLEU, ROUGE-L, F1, correlation.
- `likelihood`: how likely a text is under a model; `dialogues`: answers in conversations.
- `evaluation`: one evaluation, with its run, split and options.
- `scores`: `evaluate`, and one scorer for each task.
- `results`: what an evaluation returns.
- `report`: results as a table, as JSON and as files, which `html_report` and `image_report` draw.
"""
