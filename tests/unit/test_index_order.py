"""Index files whose names are not in the log's order, as after a copy or a wrong clock."""

from __future__ import annotations

from pathlib import Path

from mqindex.engines import LocalEngine
from mqindex.rocketmq import verify
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import index_paths


def test_a_broker_may_index_again_what_comes_after_the_last_name(tmp_path: Path) -> None:
    """After an unclean end it goes on where the last file by name ends: nearly all was indexed twice."""
    root = make_small_store(tmp_path / "store")
    first, *_, last = index_paths(root)
    first.rename(first.with_name("20990101000000000"))
    last.rename(last.with_name("20200101000000000"))
    report = verify(root, engine=LocalEngine(1), **OPTIONS)
    (order,) = (one for one in report.findings if one.kind == "index-order")
    assert (report.ok, order.severity) == (True, "warning")
    assert "after an unclean end it would index again what comes after the last one by name" in str(order.hint)
