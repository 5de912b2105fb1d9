"""What the page says about its numbers is true of decoding on a CPU."""

from __future__ import annotations

import pytest

from clearhead.fast.cpu.matrices import ReorderedLinear, pack
from clearhead.fast.torch_private import has_reordered_product
from clearhead.inspect.web.facts import describe
from tiny_runs import tiny_run


@pytest.mark.skipif(not has_reordered_product(), reason="this torch has no reordered matrices")
@pytest.mark.parametrize(("d_model", "reordered"), [(288, False), (296, True)])
def test_the_page_says_whether_decoding_multiplies_in_another_order(d_model: int, reordered: bool) -> None:
    run = tiny_run("decoder-only", d_model=d_model, layers=1)
    assert ("multiplies large matrices in another order" in describe(run)["arithmetic"]) == reordered
    pack(run.model)
    assert any(isinstance(module, ReorderedLinear) for module in run.model.modules()) == reordered
