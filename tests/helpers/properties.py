"""Hypothesis, where it is installed. Elsewhere tests with `@given` are skipped, and the others of their files run."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING or find_spec("hypothesis"):
    from hypothesis import HealthCheck, assume, example, given, settings
    from hypothesis import strategies as st

    settings.register_profile(
        "clearhead", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
    )
    settings.load_profile("clearhead")
else:

    class Strategy:
        """Stands for any strategy: tests that would draw from it are skipped."""

        def __getattr__(self, name: str) -> Strategy:
            return self

        def __call__(self, *_: Any, **__: Any) -> Strategy:
            return self

        def __or__(self, _: object) -> Strategy:
            return self

    def given(*_: Any, **__: Any) -> pytest.MarkDecorator:
        return pytest.mark.skip(reason="hypothesis is not installed: pip install hypothesis")

    def example(*_: Any, **__: Any) -> Callable[[Any], Any]:
        return lambda test: test

    st = Strategy()
    assume = settings = example

__all__ = ["assume", "example", "given", "settings", "st"]
