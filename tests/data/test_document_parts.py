"""A long document that is tokenized in pieces has the ids of the whole."""

from __future__ import annotations

import pytest

from clearhead.data.encode import encode_parts
from clearhead.data.readers import documents
from clearhead.data.readers.documents import split_document
from properties import assume, example, given, settings, st
from trained_tokenizers import KINDS, each_kind, trained

PARTS = ["cat", "a", " ", " a", "  ", ".", "'s", "é", "\t", "12", "²", "\u0301", "कि", "▁", "_"]
SPACED = {kind: trained(kind, ["cat a\n\n'a  1\n \t\n कि, é² 12_\u0301 ▁"] * 9) for kind in KINDS}


@each_kind
@given(
    text=st.lists(st.sampled_from(PARTS), min_size=100, max_size=300).map("".join)  # all in one line
    | st.lists(st.sampled_from([*PARTS, "\n"]), min_size=100, max_size=300).map("".join)
)
@example(text="a" * 31 + "৴ a b")  # the fraction is a \w to Python, but not to `tokenizers`
@settings(max_examples=100)
def test_documents_in_pieces_have_the_same_ids(kind: str, text: str) -> None:
    tokenizer = SPACED[kind]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "DOCUMENT_PART_CHARACTERS", 32)
        pieces = list(split_document(text))
    assume(len(pieces) > 1)
    (chunk, closing) = encode_parts(iter(pieces), tokenizer, closed=False)
    assert chunk["text"].values.tolist() == [tokenizer.start, *tokenizer.encode(text)]
    assert closing["text"].values.tolist() == [tokenizer.start]
