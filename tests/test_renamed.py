"""Public names that have changed still work, and warn with the new name."""

from __future__ import annotations

import importlib

import pytest

OLD_NAMES = [
    ("clearhead.decode.translate", "Searching", "SearchSettings"),
    ("clearhead.decode.sampling", "Choice", "SamplingSettings"),
    ("clearhead.decode.search", "Writing", "TokenSearch"),
    ("clearhead.decode.steps", "Ending", "StopCriteria"),
    ("clearhead.inspect.trace", "Named", "NamedTensor"),
]


@pytest.mark.parametrize(("name", "old", "new"), OLD_NAMES)
def test_an_old_name_is_the_new_class_and_warns(name: str, old: str, new: str) -> None:
    module = importlib.import_module(name)
    with pytest.warns(DeprecationWarning, match=f"{name}.{old} is now {name}.{new}") as warned:
        assert getattr(module, old) is getattr(module, new)
    assert warned[0].filename == __file__


def test_an_old_name_can_be_imported() -> None:
    with pytest.warns(DeprecationWarning, match="is now clearhead.decode.translate.SearchSettings"):
        from clearhead.decode.translate import Searching
    assert Searching(beam=2).beam == 2


@pytest.mark.parametrize("name", sorted({name for name, *_ in OLD_NAMES}))
def test_names_that_never_existed_are_attribute_errors(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'Nothing'"):
        _ = importlib.import_module(name).Nothing
