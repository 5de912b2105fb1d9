"""The defaults of decoding, in the library and on the command line. No torch here: `clearhead X --help` reads them."""

BEAM = 4  # hypotheses kept at each step
LENGTH_PENALTY = 0.6  # the paper's alpha: log-probabilities are divided by ((5 + length) / 6)^alpha
TOKENS = 200  # new tokens of a continuation, at most
ANSWER_TOKENS = 256  # new tokens of an answer in a chat, at most
