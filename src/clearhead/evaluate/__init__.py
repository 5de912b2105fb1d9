"""How good a model is: measures, the scores of a run, and reports of them."""
