"""Hostile requests, made from the schema of the server: every one is answered, as the schema says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install 'clearhead[dev]'")

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

from clearhead.runs import Run
from patience import PATIENCE
from served_runs import served

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(named_runs: dict[str, Run]) -> Iterator[str]:
    with served(list(named_runs.values()), tokens=20) as address:
        yield address


@pytest.fixture(scope="module")
def api(address: str) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


PATHS = [
    "POST /translate",
    "POST /generate",
    "POST /classify",
    "POST /embed",
    "POST /trace",
    "POST /v1/completions",
    "POST /v1/chat/completions",
    "POST /v1/embeddings",
    "GET /v1/models",
    "GET /v1/models/{name}",
    "GET /health",
    "GET /ready",
    "GET /metrics",
]


@pytest.mark.parametrize("operation", PATHS)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_every_request_is_answered_as_the_schema_says(
    api: schemathesis.BaseSchema, operation: str, mode: GenerationMode
) -> None:
    method, path = operation.split()
    found = api[path][method]
    if mode is GenerationMode.NEGATIVE and method == "GET":
        return  # there is nothing in it that could be wrong

    @given(case=found.as_strategy(generation_mode=mode))
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    def check(case: schemathesis.Case[Any]) -> None:
        checks = [not_a_server_error, status_code_conformance, content_type_conformance]
        case.call_and_validate(checks=checks, timeout=PATIENCE)

    check()


def test_all_addresses_are_tried(api: schemathesis.BaseSchema) -> None:
    assert {operation.split()[1] for operation in PATHS} == set(api.raw_schema["paths"])
