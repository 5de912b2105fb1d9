"""Import and export of tokenizers, with their special tokens."""

from __future__ import annotations

import json
from pathlib import Path

import tokenizers
from tokenizers import processors

from clearhead.config import ModelConfig, require
from clearhead.exchange.sentencepiece import marian_backend, read_sentencepiece
from clearhead.exchange.source import Json, read_json
from clearhead.files import write_file
from clearhead.runs import Run
from clearhead.tasks import TASKS
from clearhead.text.tokenizer import Tokenizer, Tokenizers
from clearhead.text.tokenizer_formats import (
    CONFIG_FILE,
    SETTINGS,
    read_backend,
    read_special_tokens,
    special_settings,
)

ROLES = ("system", "user", "assistant")


def read_tokenizers(folder: Path, config: Json, model: ModelConfig) -> Tokenizers:
    """The tokenizers of a model, with the special tokens that its settings name."""
    known = read_special_tokens(folder)
    backends = read_backends(folder)
    sides = [Tokenizer(each, special_tokens(Tokenizer(each, known), config, model)) for each in backends]
    for side in sides:
        require(
            side.vocab <= model.vocab,
            f"the tokenizer of {folder} has {side.vocab:,} ids, and the model {model.vocab:,} embeddings (vocab_size)",
        )
    return Tokenizers(sides[0], sides[-1])


def read_backends(folder: Path) -> list[tokenizers.Tokenizer]:
    """One tokenizer, or those of source and target."""
    if (folder / "tokenizer.json").is_file() or not (folder / "source.spm").is_file():
        return [read_backend(folder)]
    ids = read_json(folder / "vocab.json")
    require(all(type(number) is int for number in ids.values()), f"{folder / 'vocab.json'} is damaged")
    targets = [token for token in ids if token.startswith(">>") and token.endswith("<<")]
    require(not targets, f"vocab.json: a model of several target languages ({targets[:2]}) cannot be expressed here")
    files = [folder / f"{side}.spm" for side in ("source", "target")]
    return [marian_backend(read_sentencepiece(file), ids) for file in files]


def special_tokens(known: Tokenizer, config: Json, model: ModelConfig) -> dict[str, str]:
    """The text of each special token; a missing padding or start token is replaced by the end token."""
    tokens = {number: token for token, number in known.backend.get_vocab().items()}
    found = dict(known.special_tokens)

    def setting(name: str) -> list[str]:
        value = config.get(name)
        return [tokens[number] for number in (value if isinstance(value, list) else [value]) if number in tokens]

    ends = setting("eos_token_id")
    if ends and model.family != "encoder-only" and found.get("end") not in ends:
        found["end"] = ends[0]
    starts = setting("decoder_start_token_id") if model.family == "encoder-decoder" else setting("bos_token_id")
    if starts and model.family != "encoder-only" and (model.family == "encoder-decoder" or "start" not in found):
        found["start"] = starts[0]
    if pads := setting("pad_token_id"):
        found.setdefault("pad", pads[0])
    complete = Tokenizer(known.backend, found)
    require(complete.has("end"), f"eos_token_id: neither config.json nor {CONFIG_FILE} says which token ends a text")
    end = tokens[complete.end]
    return {"start": end, "pad": end} | {
        name: tokens[complete.special(name)]
        for name in ("start", "end", "pad", "unknown", "mask")
        if complete.has(name)
    }


def read_chat_template(folder: Path) -> str:
    """The chat template (Jinja), empty if the model has none; it is never run."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf8")
    template = read_json(folder / CONFIG_FILE).get("chat_template")
    return template if isinstance(template, str) else ""


def is_our_chat(folder: Path, tokenizer: Tokenizer) -> bool:
    """Whether the chat template is that of `clearhead chat`."""
    return all(map(tokenizer.has, ROLES)) and read_chat_template(folder) == chat_template(tokenizer)


# --- export -----------------------------------------------------------------------------------------------------------


def write_tokenizer(run: Run, folder: Path) -> None:
    """Write the tokenizer so that `transformers` adds the special tokens that the model was trained with."""
    tokenizer = run.tokenizers.target
    family = run.recipe.model.family
    chat = TASKS[run.recipe.data.task].example == "dialogue"
    start, end = (spelling(tokenizer, name) for name in ("start", "end"))
    template = {"decoder-only": f"{start}:0 $A:0", "encoder-decoder": f"$A:0 {end}:0"}
    backend = tokenizers.Tokenizer.from_str(tokenizer.backend.to_str())
    backend.post_processor = processors.TemplateProcessing(
        single=template.get(family, f"{start}:0 $A:0 {end}:0"),
        special_tokens=[(start, tokenizer.start), (end, tokenizer.end)],
    )
    write_file(folder / "tokenizer.json", backend.to_str(pretty=True))
    names = [name for name in SETTINGS.values() if tokenizer.has(name)]
    settings: Json = special_settings({name: spelling(tokenizer, name) for name in names})
    settings |= {"cls_token": start} if family == "encoder-only" else {}
    settings |= {"chat_template": chat_template(tokenizer)} if chat else {}
    settings |= {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": run.recipe.data.max_length,
        "model_input_names": ["input_ids", "attention_mask"],
        "padding_side": "left" if family == "decoder-only" else "right",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": not chat,  # "<end>" in a text is text; a chat template writes its tokens as text
    }
    write_file(folder / CONFIG_FILE, json.dumps(settings, ensure_ascii=False, indent=1))


def spelling(tokenizer: Tokenizer, name: str) -> str:
    """The text of the special token of this name."""
    return str(tokenizer.backend.id_to_token(tokenizer.special(name)))


def chat_template(tokenizer: Tokenizer) -> str:
    """The chat template (Jinja): for each message the token of the role, the text, the end token; see text/chat.py."""
    token = {name: spelling(tokenizer, name) for name in (*ROLES, "end")}
    roles = ", ".join(f"{role!r}: {token[role]!r}" for role in ROLES)
    return (
        f"{{% for message in messages %}}{{{{ {{{roles}}}[message['role']] + message['content'] + {token['end']!r} }}}}"
        f"{{% endfor %}}{{% if add_generation_prompt %}}{{{{ {token['assistant']!r} }}}}{{% endif %}}"
    )
