"""An exported translator, converted for CTranslate2: the same translations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clearhead.decode.translate import SearchSettings, translate
from clearhead.exchange.huggingface import export
from clearhead.recipes import load_recipe
from clearhead.runs import open_run
from clearhead.train.run import train
from peer_models import transformers
from tiny_runs import SENTENCES

ctranslate2 = pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed: pip install 'clearhead[bench]'")
converters = pytest.importorskip("ctranslate2.converters.transformers")


class Loader(converters.MarianMTLoader):  # type: ignore[misc, name-defined]
    """Marian's, but the decoder begins with the start token, not with zeros, and padding is not the last token."""

    def set_decoder(self, spec: Any, decoder: Any) -> None:
        super().set_decoder(spec, decoder)
        spec.start_from_zero_embedding = False

    def _remove_pad_weights(self, spec: Any) -> None:
        pass

    def set_config(self, config: Any, model: Any, tokenizer: Any) -> None:
        super().set_config(config, model, tokenizer)
        config.decoder_start_token = tokenizer.bos_token


@pytest.mark.long
@pytest.mark.slow
def test_a_trained_translator_translates_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = "data.size=2000 tokenizer.vocab=600 model.d_model=64 model.d_ff=128 train.steps=250 train.samples=0 "
    small += "train.schedule=cosine train.learning_rate=3e-3 train.warmup=20 train.average=none"
    train(load_recipe("phrasebook-paper", [*small.split(), f"data.cache={tmp_path}"]), tmp_path / "run", quiet=True)
    export(tmp_path / "run", tmp_path / "exported")
    monkeypatch.setitem(converters._MODEL_LOADERS, "MarianConfig", Loader())
    converters.TransformersConverter(str(tmp_path / "exported")).convert(str(tmp_path / "converted"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "exported")
    texts = [text for text in SENTENCES if text.startswith(("the", "a"))]
    sources = [tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"]) for text in texts]
    translator = ctranslate2.Translator(str(tmp_path / "converted"))
    found = translator.translate_batch(
        sources, beam_size=4, length_penalty=0, max_decoding_length=30, min_decoding_length=0
    )
    theirs = [tokenizer.decode(tokenizer.convert_tokens_to_ids(each.hypotheses[0])) for each in found]
    encoded = tokenizer(texts, padding=True, return_tensors="pt")
    peer = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "exported").eval()
    written = peer.generate(**encoded, length_penalty=0.0, max_new_tokens=30)
    assert theirs == tokenizer.batch_decode(written, skip_special_tokens=True)
    how = SearchSettings(beam=4, length_penalty=0.0, longest=30)
    assert theirs == [best.text for best, *_ in translate(open_run(tmp_path / "run"), texts, how)]
    assert all(theirs)
