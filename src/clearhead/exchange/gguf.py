"""Llama-shaped runs as GGUF, the file format of llama.cpp; weights are in float32."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from clearhead.config import ModelConfig, UserError, require
from clearhead.exchange.architecture import choose_architecture
from clearhead.exchange.huggingface import without_scale
from clearhead.exchange.source import Json
from clearhead.exchange.tables import ARCHITECTURES
from clearhead.exchange.tokenizers import chat_template
from clearhead.files import new_folder
from clearhead.model.stack import RotaryPosition
from clearhead.runs import Run, open_run
from clearhead.tasks import TASKS
from clearhead.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from gguf import GGUFWriter

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}  # splits as GPT-2 does
SPACES = [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]


def export(run_folder: Path, folder: Path) -> list[str]:
    """Write a run as `model.gguf`, which llama.cpp opens."""
    require(find_spec("gguf") is not None, "--to gguf needs gguf: pip install 'clearhead[gguf]'")
    run = open_run(run_folder)
    with new_folder(folder) as hidden:
        try:
            write_run(run, hidden / "model.gguf")
        except UserError as error:
            raise UserError(f"{run_folder} cannot be exported for llama.cpp: {error}") from error
    return []


def write_run(run: Run, path: Path) -> None:
    """Write settings, tokenizer and weights into one file."""
    from gguf import MODEL_ARCH_NAMES, GGUFWriter, get_tensor_name_map

    config, parameters = without_scale(run)
    family = config.family
    require(family == "decoder-only", f"model.family = {family!r}: only decoder-only models can be; try --to onnx")
    known = [ARCHITECTURES[name] for name in ("llama", "qwen2", "qwen3")]
    architecture = choose_architecture(known, config, "language")
    llama = architecture.model_type == "llama"
    kinds = {name: kind for kind, name in MODEL_ARCH_NAMES.items()}
    names = get_tensor_name_map(kinds[architecture.model_type], config.layers)
    writer = GGUFWriter(path, architecture.model_type)
    write_settings(writer, run, config)
    write_vocabulary(writer, run.tokenizers.target, config.vocab)
    write_tokens(writer, run)
    for theirs, tensor in architecture.write_weights(parameters, config, "language").items():
        name = names.get_name(theirs, try_suffixes=(".weight", ".bias"))
        assert name is not None, theirs
        if llama and ("q_proj" in theirs or "k_proj" in theirs):
            tensor = in_pairs(tensor, config.head_size)
        writer.add_tensor(name, tensor.detach().float().contiguous().numpy())
    if config.rotary_length:
        require(llama, f"a {architecture.model_type} model has no model.rotary_length there")
        slowed = RotaryPosition(config).slowed(torch.device("cpu"), torch.float32)
        writer.add_tensor("rope_freqs.weight", (1 / slowed[0]).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_settings(writer: GGUFWriter, run: Run, config: ModelConfig) -> None:
    """Write the sizes of the model, and its positions."""
    from gguf import RopeScalingType

    writer.add_name(run.recipe.name or run.folder.name)
    writer.add_context_length(config.max_length)
    writer.add_embedding_length(config.d_model)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.d_ff)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.kv_heads or config.heads)
    writer.add_key_length(config.head_size)
    writer.add_value_length(config.head_size)
    writer.add_layer_norm_rms_eps(config.norm_epsilon)
    writer.add_rope_dimension_count(config.head_size)
    writer.add_rope_freq_base(config.rotary_base)
    if config.rotary_factor != 1 and not config.rotary_length:
        writer.add_rope_scaling_type(RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(config.rotary_factor)


def in_pairs(tensor: Tensor, head_size: int) -> Tensor:
    """Reorder the outputs of a head: llama.cpp rotates channels 0 and 1, 2 and 3, ...; we rotate 0 and K/2, ..."""
    return tensor.view(-1, 2, head_size // 2, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)


# --- the tokenizer ----------------------------------------------------------------------------------------------------


def write_vocabulary(writer: GGUFWriter, tokenizer: Tokenizer, size: int) -> None:
    """Write tokens and merges: byte-level BPE as in GPT-2, or SentencePiece's BPE."""
    state: Json = json.loads(tokenizer.backend.to_str())
    merges = [pair if isinstance(pair, list) else pair.split(" ") for pair in state["model"].get("merges", [])]
    normalizers = parts(state["normalizer"], "normalizers")
    splitters = parts(state["pre_tokenizer"], "pretokenizers")
    tokens = [tokenizer.backend.id_to_token(number) or f"<unused {number}>" for number in range(size)]
    if not normalizers and [BYTE_LEVEL.items() <= each.items() for each in splitters] == [True]:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_merges([" ".join(pair) for pair in merges])
    else:
        known = state["model"].get("byte_fallback") and normalizers == SPACES and not splitters
        require(bool(known), "llama.cpp has byte-level BPE (tokenizer.kind = 'bpe') and SentencePiece's BPE only")
        ranks = {"".join(pair): rank for rank, pair in reversed([*enumerate(merges)])}
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_scores([-float(ranks.get(token, 0)) for token in tokens])  # the highest is merged first
    writer.add_token_list(tokens)
    writer.add_token_types([token_type(tokenizer, number) for number in range(size)])


def parts(component: Json | None, name: str) -> list[Json]:
    """The components of a sequence, or the only one."""
    return [] if component is None else component.get(name, [component])


def token_type(tokenizer: Tokenizer, number: int) -> int:
    """The type of a token in llama.cpp: normal, control, byte, ..."""
    from gguf import TokenType

    token = tokenizer.backend.id_to_token(number)
    if token is None:
        return TokenType.UNUSED
    if tokenizer.has("unknown") and number == tokenizer.unknown:
        return TokenType.UNKNOWN
    if number in tokenizer.backend.get_added_tokens_decoder():
        return TokenType.CONTROL
    return TokenType.BYTE if len(token) == 6 and token.startswith("<0x") else TokenType.NORMAL


def write_tokens(writer: GGUFWriter, run: Run) -> None:
    """Write the special tokens; a chat run has its template, and no start token."""
    tokenizer = run.tokenizers.target
    chat = TASKS[run.recipe.data.task].example == "dialogue"
    writer.add_bos_token_id(tokenizer.start)
    writer.add_eos_token_id(tokenizer.end)
    writer.add_pad_token_id(tokenizer.pad)
    if tokenizer.has("unknown"):
        writer.add_unk_token_id(tokenizer.unknown)
    writer.add_add_bos_token(not chat)
    writer.add_add_eos_token(False)
    if chat:
        writer.add_chat_template(chat_template(tokenizer))
