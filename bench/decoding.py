"""Decoding on this machine: ours against Hugging Face transformers and CTranslate2, all with the same weights.

    python bench/decoding.py [--rounds 5] [--threads 2] [--only translation|generation] [--tokens 32]

Translation: paper-base's shape (transformers' Marian), a beam of 4, 32 sources of 24 tokens, 24 new tokens.
Generation: gpt2's shape, greedily, 32 new tokens after 32, one row and 16; and how long reading its weights once takes,
which is the least that a token of one row can cost. Both with matrices in float32, float16 and int8.

Each lives in a process of its own, for in one process their threads slow each other down; they take turns, so that a
busy machine slows all of them alike. A ratio is the median over the rounds, and above 1 where ours is faster. With one
thread the processor's time is counted, which others on the machine lengthen less. Before anything is timed, the texts
of float32 are compared token by token.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.config import Weights
from clearhead.decode.packed import pack
from clearhead.decode.search import Ending, beam, greedy
from clearhead.model import DecoderOnly, EncoderDecoder, build_model
from clearhead.presets import PRESETS

Search = Callable[[], list[list[int]]]
Maker = Callable[[], Search]
END, UNKNOWN, START = 0, 1, PRESETS["paper-base"].vocab - 1
FORMS: tuple[Weights, ...] = ("float32", "float16", "int8")


class Contender:
    """A search in a process of its own, which is asked to run once and tells how long it took and what it found."""

    def __init__(self, make: Maker, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, far = context.Pipe()
        self.process = context.Process(target=serve, args=(far, make, threads), daemon=True)
        self.process.start()
        far.close()

    def __call__(self) -> tuple[float, list[list[int]]]:
        """Seconds, and the ids of each row."""
        self.pipe.send(True)
        return self.pipe.recv()

    def stop(self) -> None:
        """Let its process end."""
        self.pipe.close()
        self.process.join()


def serve(pipe: Any, make: Maker, threads: int) -> None:
    """The life of a contender."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    search, clock = make(), time.process_time if threads == 1 else time.perf_counter
    while True:
        try:
            pipe.recv()
        except EOFError:
            return
        began = clock()
        found = search()
        pipe.send((clock() - began, found))


def marian() -> Any:
    """A Marian of paper-base's shape whose weights are random; it never writes an end."""
    from transformers import MarianConfig, MarianMTModel

    vocab = PRESETS["paper-base"].vocab
    config = MarianConfig(
        vocab_size=vocab, d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048, activation_function="relu",
        scale_embedding=True, eos_token_id=END, forced_eos_token_id=None, pad_token_id=vocab - 1,
        decoder_start_token_id=vocab - 1, max_position_embeddings=128, share_encoder_decoder_embeddings=True,
    )  # fmt: skip
    peer: Any = MarianMTModel(config)
    peer.eval()
    with torch.no_grad():
        for name, parameter in peer.named_parameters():
            if parameter.dim() == 2 and "embed_positions" not in name:
                nn.init.normal_(parameter, std=0.1 if "shared" in name else parameter.size(1) ** -0.5)
        peer.model.shared.weight[[END, UNKNOWN, vocab - 1]] = 0  # never the likeliest
    return peer


def from_marian(peer: Any) -> EncoderDecoder:
    """Our model with its weights. Its waves are all sines, then all cosines: ours alternate, so channels move."""
    model = build_model(PRESETS["paper-base"]).eval()
    assert isinstance(model, EncoderDecoder)
    move = torch.arange(512).view(2, 256).T.flatten()  # our channel i is its channel move[i]
    copied: Any = [(model.encoder, peer.model.encoder), (model.decoder, peer.model.decoder)]
    with torch.no_grad():
        model.decoder.embedding.weight.copy_(peer.model.shared.weight[:, move])
        for ours, theirs in copied:
            for block, layer in zip(ours.blocks, theirs.layers, strict=True):
                copy_attention(block.attention, layer.self_attn, move)
                copy_norm(block.attention_add_norm.norm, layer.self_attn_layer_norm, move)
                if ours is model.decoder:
                    copy_attention(block.cross_attention, layer.encoder_attn, move)
                    copy_norm(block.cross_attention_add_norm.norm, layer.encoder_attn_layer_norm, move)
                copy_linear(block.feed_forward.up, layer.fc1.weight[:, move], layer.fc1.bias)
                copy_linear(block.feed_forward.down, layer.fc2.weight[move], layer.fc2.bias[move])
                copy_norm(block.feed_forward_add_norm.norm, layer.final_layer_norm, move)
    return model


def copy_attention(ours: Any, theirs: Any, move: Tensor) -> None:
    for own, its in ((ours.query, theirs.q_proj), (ours.key, theirs.k_proj), (ours.value, theirs.v_proj)):
        copy_linear(own, its.weight[:, move], its.bias)
    copy_linear(ours.out, theirs.out_proj.weight[move], theirs.out_proj.bias[move])


def copy_linear(linear: Any, weight: Tensor, bias: Tensor) -> None:
    linear.weight.copy_(weight)
    linear.bias.copy_(bias)


def copy_norm(ours: Any, theirs: Any, move: Tensor) -> None:
    copy_linear(ours, theirs.weight[move], theirs.bias[move])


class Words:
    """As much of a tokenizer as CTranslate2's converter asks for: a word is its number."""

    eos_token, unk_token = str(END), str(UNKNOWN)

    def __init__(self, count: int) -> None:
        self.count = count

    def get_vocab(self) -> dict[str, int]:
        """All words; the last is padding, which CTranslate2 leaves out."""
        return {"<pad>" if i == self.count - 1 else str(i): i for i in range(self.count)}


def translation_source() -> Tensor:
    """32 sentences of 24 tokens."""
    return torch.randint(2, 36_000, (32, 24), generator=torch.Generator().manual_seed(1))


def our_translation(form: Weights, new: int) -> Search:
    """Our beam search."""
    model, source = from_marian(marian()), translation_source()
    pack(model, form)

    def search() -> list[list[int]]:
        with torch.inference_mode():
            begun = model.start(source, torch.full((len(source), 1), START))
        return [row[0].ids for row in beam(model, begun, Ending((), START, new), 4, 0.0)]

    return search


def their_translation(new: int) -> Search:
    """The beam search of transformers."""
    peer, source = marian(), translation_source()
    settings = {"num_beams": 4, "do_sample": False, "max_new_tokens": new, "min_new_tokens": new, "length_penalty": 0.0}
    return lambda: peer.generate(source, **settings)[:, 1:].tolist()


def convert(folder: str) -> None:
    """Write Marian's weights as CTranslate2 reads them."""
    from ctranslate2.converters.transformers import MarianMTLoader

    torch.manual_seed(0)
    peer = marian()
    with torch.no_grad():
        spec = MarianMTLoader()(peer, Words(peer.config.vocab_size))
    spec.validate()
    spec.optimize()
    spec.save(folder)


def ctranslate(folder: str, form: str, new: int, threads: int) -> Search:
    """CTranslate2's beam search."""
    import ctranslate2

    translator = ctranslate2.Translator(folder, compute_type=form, intra_threads=threads)
    sentences = [[str(i) for i in row] for row in translation_source().tolist()]
    settings: dict[str, Any] = {"beam_size": 4, "length_penalty": 0.0, "min_decoding_length": new}

    def search() -> list[list[int]]:
        results = translator.translate_batch(sentences, max_decoding_length=new, **settings)
        return [[int(word) for word in result.hypotheses[0]] for result in results]

    return search


def gpt2() -> tuple[DecoderOnly, Any]:
    """Two models of gpt2's shape with the same random weights."""
    from transformers import GPT2Config, GPT2LMHeadModel

    peer: Any = GPT2LMHeadModel
    peer = peer(GPT2Config(bos_token_id=END, eos_token_id=END, pad_token_id=END)).eval()
    model = build_model(replace(PRESETS["gpt2"], dropout=0.0, attention_dropout=0.0)).eval()
    assert isinstance(model, DecoderOnly)
    body = peer.transformer
    with torch.no_grad():
        for parameter in peer.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=parameter.size(0) ** -0.5)
        nn.init.normal_(body.wte.weight, std=0.1)
        body.wte.weight[END] = 0
        model.decoder.embedding.weight.copy_(body.wte.weight)
        model.get_parameter("decoder.position.table.weight").copy_(body.wpe.weight)
        blocks: Any = model.decoder.blocks
        for block, layer in zip(blocks, body.h, strict=True):
            parts = (block.attention.query, block.attention.key, block.attention.value)
            split = zip(layer.attn.c_attn.weight.T.chunk(3), layer.attn.c_attn.bias.chunk(3), strict=True)
            for part, (weight, bias) in zip(parts, split, strict=True):
                copy_linear(part, weight, bias)
            for own, its in (
                (block.attention.out, layer.attn.c_proj),
                (block.feed_forward.up, layer.mlp.c_fc),
                (block.feed_forward.down, layer.mlp.c_proj),
            ):
                copy_linear(own, its.weight.T, its.bias)
            copy_linear(block.attention_add_norm.norm, layer.ln_1.weight, layer.ln_1.bias)
            copy_linear(block.feed_forward_add_norm.norm, layer.ln_2.weight, layer.ln_2.bias)
        copy_linear(model.decoder.norm, body.ln_f.weight, body.ln_f.bias)
    return model, peer


def prompts(rows: int) -> Tensor:
    """Rows of 32 tokens."""
    return torch.randint(2, 50_000, (rows, 32), generator=torch.Generator().manual_seed(1))


def our_generation(form: Weights, rows: int, new: int) -> Search:
    """Our greedy search."""
    model, prompt = gpt2()[0], prompts(rows)
    pack(model, form)

    def search() -> list[list[int]]:
        with torch.inference_mode():
            begun = model.start(prompt)
        return [row.ids for row in greedy(model, begun, Ending((), END, new))]

    return search


def their_generation(rows: int, new: int) -> Search:
    """The greedy search of transformers."""
    peer, prompt = gpt2()[1], prompts(rows)
    mask = torch.ones_like(prompt)
    settings = {"do_sample": False, "max_new_tokens": new, "min_new_tokens": new, "attention_mask": mask}
    return lambda: peer.generate(prompt, **settings)[:, prompt.size(1) :].tolist()


@torch.inference_mode()
def reading_time(rounds: int) -> float:
    """Seconds that reading as many weights as gpt2 multiplies with a token takes: their sum."""
    rows, size = PRESETS["gpt2"].vocab + 12 * 12 * 768, 768  # the table, and 12 blocks of 12 x 768 x 768
    weights, times = torch.ones(rows * size), []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        weights.sum()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def agreement(actual: list[list[int]], expected: list[list[int]]) -> float:
    """The share of rows that are the same."""
    return statistics.mean(a == b for a, b in zip(actual, expected, strict=True))


def compare(title: str, makers: dict[str, Maker], unit: str, amount: int, rounds: int, threads: int) -> None:
    """Let all of them take turns; print speeds, and times as multiples of ours."""
    contenders = {name: Contender(make, threads) for name, make in makers.items()}
    texts = {name: contender()[1] for name, contender in contenders.items()}  # warms up, too
    same = {name: agreement(text, texts["clearhead float32"]) for name, text in texts.items()}
    for name, share in same.items():
        assert share == 1 or name.endswith(FORMS[1:]), f"{name} writes something else in {1 - share:.0%} of the rows"
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            times[name].append(contender()[0])
    for contender in contenders.values():
        contender.stop()
    print(f"\n{title}, {threads} threads, torch {torch.__version__}")
    ours = [name for name in contenders if name.startswith("clearhead")]
    for name, spent in times.items():
        ratios = [statistics.median(a / b for a, b in zip(spent, times[own], strict=True)) for own in ours]
        compared = "   ".join(f"time / {own} {ratio:5.2f}" for own, ratio in zip(ours, ratios, strict=True))
        print(f"  {name:22} {amount / statistics.median(spent):7.1f} {unit}/s   {compared}   same {same[name]:4.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=32, help="new tokens of a generated text")
    parser.add_argument("--only", choices=["translation", "generation"])
    arguments = parser.parse_args()
    rounds, threads = arguments.rounds, arguments.threads
    if arguments.only != "generation":
        with tempfile.TemporaryDirectory() as folder:
            convert(folder)
            makers: dict[str, Maker] = {
                **{f"clearhead {form}": partial(our_translation, form, 24) for form in FORMS},
                "transformers Marian": partial(their_translation, 24),
                **{f"CTranslate2 {form}": partial(ctranslate, folder, form, 24, threads) for form in FORMS[::2]},
            }
            title = "paper-base, beam 4, 32 sentences of 24 tokens, 24 new tokens"
            compare(title, makers, "sentences", 32, rounds, threads)
    if arguments.only != "translation":
        new = arguments.tokens
        for rows in (1, 16):
            makers = {
                **{f"clearhead {form}": partial(our_generation, form, rows, new) for form in FORMS},
                "transformers GPT2": partial(their_generation, rows, new),
            }
            compare(f"gpt2, greedy, {rows} x {new} new tokens", makers, "tokens", new * rows, rounds, threads)
        torch.set_num_threads(threads)
        least = reading_time(rounds)
        print(f"\nreading its float32 weights once: {1000 * least:.1f} ms, so one row at most {1 / least:.1f} tokens/s")


if __name__ == "__main__":
    main()
