"""The explorer answers with the library's own numbers, to its own page only, and within bounds."""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import torch

from browsing import served
from clearhead.config import DataConfig, UserError
from clearhead.corpora.catalogue import built_in_corpus
from clearhead.data.sources import open_corpus
from clearhead.glass import passes
from clearhead.glass.passes import shrunk
from clearhead.glass.patch import from_json, knock_out
from clearhead.glass.trace import capture, trace
from clearhead.glass.web import pictures, share
from clearhead.glass.web.explorer import LONGEST_TEXT, Explorer
from clearhead.glass.web.facts import describe, first_texts
from clearhead.glass.web.merges import replay
from clearhead.glass.web.server import LARGEST_REQUEST, Server, finite, page_files
from clearhead.glass.web.share import write_page
from clearhead.runs import Run, load_weights, open_run
from clearhead.text.dialogue import Dialogue
from command_line import Verb
from explored_runs import KINDS, STEPS, folder_of, opened, snapshot_path
from tiny_runs import TEXT, tiny_run, tokenizers

WEIGHTS = "encoder.blocks.1.attention.weights"


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return Explorer([folder_of("translator")])


def begin(explorer: Explorer, text: str = TEXT, **query: str) -> dict[str, Any]:
    found = explorer.answer("trace", {"run": "0", "text": text, **query})
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def server(explorer: Explorer) -> Iterator[Server]:
    with served(explorer) as running:
        yield running


def send(
    server: Server, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """One request as a browser, or somebody else, could send it."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    headers = {"Host": f"127.0.0.1:{server.server_port}", **headers}
    if body is not None:
        headers.setdefault("Content-Length", str(len(body)))
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders(body)
    response = connection.getresponse()
    found = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_tensor_is_the_librarys(kind: str) -> None:
    explorer, run = Explorer([folder_of(kind)]), opened(kind)
    found, traced = begin(explorer), trace(run, TEXT)
    assert found["target"] == traced.target_text
    assert set(found["names"]) == set(traced.names())
    for name in found["names"]:
        value = traced.named(name)
        expected = value.value.select(value.axes.index("batch"), 0) if "batch" in value.axes else value.value
        assert torch.equal(explorer.tensor(found["id"], name), expected.float())


def test_a_part_of_a_tensor_is_cut_out_of_it(explorer: Explorer) -> None:
    number = begin(explorer)["id"]
    whole = explorer.tensor(number, WEIGHTS)
    assert torch.equal(explorer.tensor(number, WEIGHTS, "2"), whole[2])
    assert torch.equal(explorer.tensor(number, WEIGHTS, "2,1"), whole[2, 1])
    assert torch.equal(explorer.tensor(number, WEIGHTS, small="1"), whole)  # small enough as it is
    other = WEIGHTS.replace("blocks.1", "blocks.0")
    several = explorer.tensors(number, f"{other},{WEIGHTS}", "2;3,1")
    assert torch.equal(several[0], explorer.tensor(number, other, "2"))
    assert torch.equal(several[1], whole[3, 1])
    with pytest.raises(UserError, match="indices '2;1': 2 for 3 tensors"):
        explorer.tensors(number, f"{WEIGHTS},{other},encoder.sum", "2;1")
    with pytest.raises(UserError, match="index = '9': expected 0 to 3"):
        explorer.tensor(number, WEIGHTS, "9")


def test_shrinking_keeps_the_largest_of_each_patch() -> None:
    value = torch.rand(3, 40, 7)
    small = shrunk(value, 10)
    assert small.shape == (3, 10, 7)
    assert torch.equal(small[:, 0], value[:, :4].amax(1))
    assert torch.equal(shrunk(value, 40), value)


@pytest.mark.parametrize("kind", ["translator", "writer"])
def test_a_pass_too_large_for_memory_gives_the_same_numbers_block_by_block(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Explorer([folder_of(kind)])
    number, names = begin(whole)["id"], begin(whole)["names"]
    expected = {name: whole.tensor(number, name) for name in names}
    cells = {name: whole.cell(number, name, ",".join("0" * expected[name].dim())) for name in names}
    monkeypatch.setattr(passes, "WHOLE_PASS_LIMIT", 0)
    monkeypatch.setattr(passes, "MEMORY_LIMIT", 1)
    monkeypatch.setattr(passes, "THUMBNAIL_SIZE", 3)
    pieces = Explorer([folder_of(kind)])
    assert begin(pieces)["id"] == number
    for name in names:
        assert torch.equal(pieces.tensor(number, name), expected[name])
        assert pieces.cell(number, name, ",".join("0" * expected[name].dim())) == cells[name]
        assert len(pieces.passes.parts) == 1  # no room for a second
    thumbnails = pieces.passes.thumbnails(number, names)
    traced = trace(opened(kind), TEXT)
    for name in names:
        assert thumbnails[name].dim() < 3 or torch.equal(thumbnails[name], shrunk(traced[name], 3))


def test_a_block_of_a_large_pass_is_computed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "WHOLE_PASS_LIMIT", 0)
    explorer = Explorer([folder_of("translator")])
    number = begin(explorer)["id"]
    off = json.dumps({"decoder.blocks.1.feed_forward": [{"kind": "scale", "value": 0}]})
    blocks = dict(explorer.runs[0].model.named_modules())
    computed: list[str] = []
    for name in ("encoder.blocks.0", "encoder.blocks.1", "decoder.blocks.0", "decoder.blocks.1"):
        blocks[f"{name}.attention"].register_forward_hook(lambda *_, name=name: computed.append(name))
    explorer.tensor(number, "decoder.blocks.1.attention.weights", small="1")
    assert computed == ["decoder.blocks.1"]  # the outputs of the others are known since the first pass
    explorer.tensors(number, f"{WEIGHTS},decoder.blocks.1.attention.weights")
    assert computed[1:] == ["encoder.blocks.1"]  # the other one is kept
    begin(explorer, changes=off)
    assert computed[2:] == ["decoder.blocks.1"]  # the change is in the last block


def test_memory_is_bounded_and_closing_frees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = Explorer([folder_of("translator")])
    first = begin(explorer)["id"]
    one = explorer.passes.bytes()
    monkeypatch.setattr(passes, "MEMORY_LIMIT", 3 * one)
    for text in ("a cat", "a dog", "the house", "the car", "a red car"):
        begin(explorer, text)
        assert explorer.passes.bytes() <= 3 * one
    assert explorer.tensor(first, WEIGHTS).shape[0] == 4  # forgotten, and computed again
    explorer.close([*explorer.passes.by_id])
    assert explorer.passes.bytes() == 0


def test_changes_are_the_librarys(explorer: Explorer) -> None:
    name = "encoder.blocks.0.attention.head_outputs"
    changes = json.dumps({name: [{"kind": "scale", "value": 0, "at": {"head": [1]}}]})
    number = begin(explorer, changes=changes)["id"]
    before = trace(opened("translator"), TEXT)
    expected = before.again({name: knock_out(head=1)})  # the same tokens, whatever the changed model would write
    assert torch.equal(explorer.tensor(number, "head.logits"), expected["head.logits"][0])
    assert not torch.equal(expected["head.logits"], before["head.logits"])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("decoder.blocks.0.attention.mask", {"kind": "scale", "value": 0, "at": {"query": [2], "key": [1]}}),
        ("decoder.blocks.1.cross_attention.mask", {"kind": "scale", "value": 0, "at": {"query": [3], "key": [0]}}),
        ("decoder.position", {"kind": "shuffle", "value": 1, "at": {}}),
        ("encoder.blocks.0.attention.mask", {"kind": "scale", "value": 0, "at": {"query": [4], "key": [0]}}),
        ("decoder.blocks.1.cross_attention", {"kind": "scale", "value": 0, "at": {}}),
    ],
)
def test_a_change_keeps_the_tokens_and_says_what_would_be_written(
    explorer: Explorer, name: str, change: dict[str, Any]
) -> None:
    before, run = begin(explorer), opened("translator")
    after = begin(explorer, changes=json.dumps({name: [change]}))
    assert after["tokens"] == before["tokens"]
    assert (before["before"], after["before"]) == ("", before["id"])
    assert (before["unchanged"], after["unchanged"]) == (before["id"], before["id"])
    effect = explorer.answer("effect", {"trace": after["id"]})
    changes = from_json({name: [change]})
    traced = trace(run, TEXT)
    logits = traced.again(changes)["head.logits"][0].log_softmax(-1)
    assert isinstance(effect, dict)
    for part, choice in zip(effect["parts"], traced.ids["target"][1:], strict=False):
        assert part["after"] == pytest.approx(logits[part["row"], choice].exp().item(), abs=1e-6)
    ids = traced.ids["target"]
    for _ in ids:  # a whole pass at a time: each makes one more token right
        inputs = replace(traced.inputs, ids={**traced.ids, "target": ids})
        best = capture(run, inputs, changes, ["head.logits"], gradients=False)["head.logits"][0].argmax(-1).tolist()
        ids = (ids[0], *best[:-1])
    written = [*ids[1:], run.tokenizers.target.end]
    expected = run.tokenizers.target.decode(written[: written.index(run.tokenizers.target.end)])
    assert effect["writes"].startswith(expected)
    assert effect["wrote"].startswith(before["target"])


def test_the_effect_of_a_change_on_other_outputs() -> None:
    off = json.dumps({"encoder.blocks.0.attention": [{"kind": "scale", "value": 0}]})
    for kind, key in (("classifier", "parts"), ("guesser", "parts"), ("embedder", "cosine")):
        explorer = Explorer([folder_of(kind)])
        effect = explorer.answer("effect", {"trace": begin(explorer, changes=off)["id"]})
        assert isinstance(effect, dict)
        assert effect[key]
        assert "writes" not in effect


def test_numbers_that_overflow_are_refused_with_a_remedy(server: Server) -> None:
    changes = json.dumps({"encoder.blocks.0.feed_forward": [{"kind": "scale", "value": 1e38}]})
    status, _, body = send(server, f"/api/trace?{urlencode({'run': '0', 'text': TEXT, 'changes': changes})}")
    assert (status, "smaller factor" in json.loads(body)["error"]) == (400, True)
    assert finite({"a": [1.0, math.inf, math.nan]}) == {"a": [1.0, None, None]}


@pytest.mark.parametrize("kind", ["translator", "writer", "classifier"])
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("part", ["attention.head_outputs", "attention.query.weight", "feed_forward"])
def test_blocks_before_a_change_are_not_computed_again(kind: str, layer: int, part: str) -> None:
    explorer, stack = Explorer([folder_of(kind)]), "encoder" if kind == "classifier" else "decoder"
    name, query = f"{stack}.blocks.{layer}.{part}", {"target": "a cat"} if kind == "translator" else {}
    before = explorer.passes.part(begin(explorer, **query)["id"], "pooled" if kind == "classifier" else "head.logits")
    changes = {name: [{"kind": "scale", "value": 0.5}]}
    number = begin(explorer, changes=json.dumps(changes), **query)["id"]
    expected = trace(opened(kind), TEXT, query.get("target"), from_json(changes))
    after = explorer.passes.part(number, *expected)
    assert all(torch.equal(after[n], expected[n]) for n in expected)
    kept = {n.split(".")[2] for n in expected if n.startswith(f"{stack}.blocks") and after[n] is before[n]}
    assert kept == {"0"} - {str(layer)}


@pytest.mark.parametrize("step", STEPS)
def test_snapshots_are_those_of_the_run(explorer: Explorer, step: int) -> None:
    run = open_run(folder_of("translator"))
    load_weights(run.model, snapshot_path(folder_of("translator"), step))
    found = begin(explorer, target="a cat", snapshot=str(step))
    number = found["id"]
    assert found["unchanged"] == number  # importance is that of this step
    assert torch.equal(explorer.tensor(number, WEIGHTS), trace(run, TEXT, "a cat")[WEIGHTS][0])


def test_only_one_snapshot_stays_in_memory(explorer: Explorer) -> None:
    for step in STEPS:
        begin(explorer, snapshot=str(step))
    models = {id(part.run.model) for part in explorer.passes.parts.values()}
    assert len(models - {id(run.model) for run in explorer.runs}) == 1


@pytest.mark.parametrize(
    ("path", "query", "message"),
    [
        ("nothing", {}, "there is no request 'nothing'"),
        ("trace", {"run": "0"}, "missing a required argument: 'text'"),
        ("trace", {"run": "0", "text": "a", "more": "b"}, "unexpected keyword argument 'more'"),
        ("trace", {"run": "1", "text": "a"}, "run = '1': expected 0 to 0"),
        ("trace", {"run": "-1", "text": "a"}, "run = '-1'"),
        ("trace", {"run": "0", "text": "a" * (LONGEST_TEXT + 1)}, "text has 20,001 characters"),
        ("trace", {"run": "0", "text": "x" * LONGEST_TEXT}, "tokens; at most 2,000 can be shown"),
        ("trace", {"run": "0", "text": "a", "target": "x" * LONGEST_TEXT}, "tokens; at most 2,000 can be shown"),
        ("trace", {"run": "0", "text": "a", "snapshot": "../0"}, "snapshot '../0': of this run there are [0, 7, 20]"),
        ("trace", {"run": "0", "text": "a", "changes": "{"}, "expected JSON"),
        ("trace", {"run": "0", "text": "a", "changes": "[" * 9999}, "expected JSON"),
        ("trace", {"run": "0", "text": "a", "changes": '{"encoder.sums": []}'}, "no 'encoder.sums'"),
        ("tensor", {"trace": "0", "name": WEIGHTS}, "trace '0' is not known any more"),
        ("lengths", {"trace": "0", "stack": "encoder"}, "trace '0' is not known any more"),
        ("waves", {"run": "0", "stack": "middle", "count": "8"}, "stack 'middle'"),
        ("waves", {"run": "0", "stack": "encoder", "count": "99999"}, "count = '99999'"),
        ("merges", {"run": "0", "side": "left", "text": "a"}, "side 'left'"),
    ],
)
def test_what_cannot_be_answered_gets_a_sentence(
    explorer: Explorer, server: Server, path: str, query: dict[str, str], message: str
) -> None:
    status, _, body = send(server, f"/api/{path}?{urlencode(query)}")
    assert status == 400
    assert message in json.loads(body)["error"]


@pytest.mark.parametrize("request_of", ["cell", "story", "tensor"])
def test_an_unknown_tensor_is_named(explorer: Explorer, server: Server, request_of: str) -> None:
    query = {"trace": begin(explorer)["id"], "name": "encoder.nothing"} | (
        {"index": "0"} if request_of == "cell" else {}
    )
    status, _, body = send(server, f"/api/{request_of}?{urlencode(query)}")
    assert (status, "'encoder.nothing'" in json.loads(body)["error"]) == (400, True)


def test_merges_end_in_the_tokens_of_the_text() -> None:
    tokenizer = tokenizers().source
    words = replay(tokenizer, "the red house <end>")
    assert [piece for steps in words for piece in steps[-1]] == [p for p, _ in tokenizer.pieces("the red house <end>")]
    assert all(len(after) == len(before) - 1 for steps in words for before, after in pairwise(steps))


def test_the_map_of_words_has_the_sentence_in_it(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_WORDS", 20)
    found = explorer.words(begin(explorer)["id"], "encoder")
    assert isinstance(found, dict)
    ids, table = trace(opened("translator"), TEXT).ids["source"], opened("translator").model.encoder.embedding.weight
    assert {*ids} <= {*found["ids"]}
    assert len(found["points"]) == len(found["words"]) == len(found["ids"]) < 60
    cosines = torch.cosine_similarity(table[ids[1]], table)
    cosines[ids[1]] = -1
    near = explorer.near(begin(explorer)["id"], "encoder")
    assert isinstance(near, dict)
    assert near[str(ids[1])][0][1] == pytest.approx(cosines.max().item(), abs=1e-5)


def test_lengths_are_those_of_the_stream(explorer: Explorer) -> None:
    found, traced = explorer.lengths(begin(explorer)["id"], "decoder"), trace(opened("translator"), TEXT)
    assert isinstance(found, dict)
    assert "decoder.blocks.1.cross_attention_add_norm" in found
    for name, lengths in found.items():
        assert lengths == pytest.approx(traced[name][0].norm(dim=-1).tolist())


def test_the_map_spreads_words_as_far_as_two_directions_can() -> None:
    points = torch.randn(300, 20) * torch.linspace(3, 1, 20)
    covariance = points.T @ points
    directions = pictures.leading_directions(points)
    largest = torch.linalg.eigvalsh(covariance)[-2:].flip(0)
    assert torch.allclose(directions.T @ covariance @ directions, largest.diag(), atol=1e-2 * largest[0].item())
    assert torch.allclose(directions.T @ directions, torch.eye(2), atol=1e-5)


def test_the_beam_tree_ends_in_the_best_hypotheses(explorer: Explorer) -> None:
    found = explorer.answer("beam", {"trace": begin(explorer)["id"], "width": "3"})
    assert isinstance(found, dict)
    ranked = sorted((node for node in found["nodes"] if node["rank"] >= 0), key=lambda node: node["rank"])
    assert [node["score"] for node in ranked] == sorted((node["score"] for node in ranked), reverse=True)
    for node in found["nodes"]:
        parent = found["nodes"][node["parent"]] if node["parent"] >= 0 else {"depth": 0, "total": 0.0}
        assert parent["depth"] == node["depth"] - 1
        assert node["total"] <= parent["total"] + 1e-5


def test_a_beam_of_one_writes_what_decoding_shows(explorer: Explorer) -> None:
    number = begin(explorer)["id"]
    steps = explorer.answer("decode", {"trace": number})
    tree = explorer.answer("beam", {"trace": number, "width": "1"})
    assert isinstance(steps, dict)
    assert isinstance(tree, dict)
    assert [step["words"][0] for step in steps["steps"]] == [node["word"] for node in tree["nodes"]]


def test_the_page_is_served_with_a_strict_policy(server: Server) -> None:
    for path, kind in (
        ("/", "text/html"),
        ("/main.js", "text/javascript"),
        ("/style.css", "text/css"),
        ("/views.css", "text/css"),
    ):
        status, headers, body = send(server, path)
        assert status == 200
        assert headers["Content-Type"].startswith(kind)
        assert headers["Content-Security-Policy"].startswith("default-src 'self'")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert body == page_files()[path.removeprefix("/")].read_bytes()


@pytest.mark.parametrize(
    "path",
    ["/../server.py", "/views/../../server.py", "/%2e%2e/server.py", "//etc/passwd", "/run.toml", "/views", "/views/"],
)
def test_nothing_but_the_page_can_be_read(server: Server, path: str) -> None:
    assert send(server, path)[0] == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_other_sites_cannot_ask_by_way_of_a_browser(server: Server, headers: dict[str, str]) -> None:
    for path in ("/", "/api/run"):
        status, _, body = send(server, path, **headers)
        assert status == 403
        assert "own page" in json.loads(body)["error"]
    assert send(server, "/api/close", "POST", b"[]", **headers)[0] == 403


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/api/close", b"[]", {}, 200),
        ("/api/close", b'["no such trace"]', {}, 200),
        ("/api/close", b"{}", {}, 400),
        ("/api/close", b"[1]", {}, 400),
        ("/api/close", b"\xff", {}, 400),
        ("/api/run", b"[]", {}, 400),
        ("/api/close", b"", {"Content_Length": str(LARGEST_REQUEST + 1)}, 413),
        ("/api/close", b"", {"Content_Length": "many"}, 413),
    ],
)
def test_only_a_list_of_traces_can_be_sent(
    server: Server, path: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    assert send(server, path, "POST", body, **headers)[0] == status


def test_an_endless_address_is_refused(server: Server) -> None:
    assert send(server, "/api/run?" + "a" * (LARGEST_REQUEST + 1))[0] == 414


def test_other_methods_do_not_exist(server: Server) -> None:
    assert send(server, "/", "PUT", b"")[0] == 501


def test_closing_over_http_frees_the_trace(explorer: Explorer, server: Server) -> None:
    number = begin(explorer)["id"]
    assert any(key == number for key, _ in explorer.passes.parts)
    send(server, "/api/close", "POST", json.dumps([number]).encode())
    assert all(key != number for key, _ in explorer.passes.parts)


def test_a_taken_port_is_named(explorer: Explorer, server: Server) -> None:
    with pytest.raises(UserError, match=f"--port {server.server_port}: Address already in use; choose another --port"):
        Server(explorer, port=server.server_port)


def test_a_port_that_cannot_be_is_refused(explorer: Explorer) -> None:
    with pytest.raises(UserError, match="--port 80000: expected 0 to 65535"):
        Server(explorer, port=80_000)


READ = {"phrasebook": "source", "stories": "text", "reviews": "text", "paraphrases": "first"}


@pytest.mark.parametrize("corpus", [*READ, "instructions"])
def test_without_samples_the_examples_are_those_of_validation(corpus: str) -> None:
    data = DataConfig(task=built_in_corpus(corpus).task, corpus=corpus, size=500)
    found = first_texts(reading(data))
    for text, example in zip(found, islice(open_corpus(data).read("valid"), 3), strict=True):
        if isinstance(example, Dialogue):
            assert next(each.content for each in example.messages if each.role == "user") in text
        else:
            assert 0 < len(text) <= 120
            assert " ".join(getattr(example, READ[corpus]).split()).startswith(text)


def test_without_samples_and_corpus_there_are_no_examples(tmp_path: Path) -> None:
    assert first_texts(reading(DataConfig(path=str(tmp_path / "gone")))) == []


@pytest.mark.parametrize(("words", "first"), [("a car fast is red the", TEXT), ("a car fast is the", "a cat runs")])
def test_a_translator_starts_with_a_text_whose_words_it_knows(words: str, first: str, tmp_path: Path) -> None:
    run = replace(tiny_run(), folder=tmp_path)
    (tmp_path / "words.txt").write_text("\n".join(words.split()))
    (tmp_path / "metrics.jsonl").write_text('{"kind": "sample", "step": 1, "source": "a cat runs"}\n')
    assert describe(run)["examples"][0] == first


def reading(data: DataConfig) -> Run:
    run = tiny_run()
    return replace(run, recipe=replace(run.recipe, data=data))


def test_only_runs_of_one_kind_are_compared() -> None:
    with pytest.raises(UserError, match="only runs of one family and head can be compared, not "):
        Explorer([folder_of("translator"), folder_of("writer")])


def test_a_file_needs_a_text_and_a_place(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs a text"):
        write_page(folder_of("embedder"), "", tmp_path / "out.html")
    with pytest.raises(UserError, match="nowhere; make it first"):
        write_page(folder_of("embedder"), TEXT, tmp_path / "nowhere" / "out.html")


def test_a_text_too_large_for_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "LARGEST", 1000)
    with pytest.raises(UserError, match="the tensors of this text take"):
        write_page(folder_of("embedder"), TEXT, tmp_path / "out.html")


def test_the_verb_refuses_what_is_no_run(tmp_path: Path, verb: Verb) -> None:
    _, error, code = verb("explore", tmp_path, "--no-open")
    assert code == 1
    assert "is not a run" in error


def test_a_public_explorer_is_reached_by_addresses_not_by_names_of_others(server: Server) -> None:
    with Server(server.explorer, "0.0.0.0") as public:
        assert public.gate.accepts("10.0.0.7:8642", None, None)
        assert not public.gate.accepts("rebound.example:8642", None, None)
