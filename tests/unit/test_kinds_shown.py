"""Each kind of finding is shown by a store or a log dir; what it says of a repair and of a start holds there.

Where nothing can be shown so, the table says why, and which tests show it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mqindex import kafka, rocketmq
from mqindex.kafka import catalogue as of_kafka
from mqindex.report import Report
from mqindex.rocketmq import catalogue as of_rocketmq
from tests.support import kafka_kinds, rocketmq_kinds
from tests.support.repair_says import check_repair

BROKERS = ((rocketmq, of_rocketmq, rocketmq_kinds), (kafka, of_kafka, kafka_kinds))
SHOWN = [
    pytest.param(library, catalogue, name, make, id=f"{library.__name__.rpartition('.')[2]}-{name}")
    for library, catalogue, table in BROKERS
    for name, make in table.SHOWN.items()
]
TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(("library", "catalogue", "name", "make"), SHOWN)
def test_of_a_kind(library: Any, catalogue: ModuleType, name: str, make: rocketmq_kinds.Made, tmp_path: Path) -> None:
    path, options = make(tmp_path)
    verify = partial(library.verify, **options)
    before: Report = verify(path)
    found = [one for one in before.findings if one.kind == name]
    assert found
    kinds = {(kind.mended_by, kind.stops_start) for kind in catalogue.CATALOGUE[name]}
    assert {(one.mended_by, one.stops_start) for one in found} <= kinds | {(None, stops) for _, stops in kinds}
    if any(one.stops_start for one in found):
        assert before.start is not None
        stopping = {one.path: one.kind for one in before.findings if one.stops_start and one.kind != name}
        alone = {one.path for one in found} - set(stopping)
        assert alone.intersection(one.path for one in before.start.obstacles), "nothing else prevents the start"
    check_repair(path, verify, partial(library.repair, **options))


@pytest.mark.parametrize(("catalogue", "table"), [each[1:] for each in BROKERS], ids=["rocketmq", "kafka"])
def test_every_kind_is_shown(catalogue: ModuleType, table: Any) -> None:
    assert set(table.SHOWN).isdisjoint(table.ELSEWHERE)
    assert {*table.SHOWN, *table.ELSEWHERE} == set(catalogue.CATALOGUE)
    for name, why in table.ELSEWHERE.items():
        assert (TESTS / why.rpartition(": ")[2]).exists(), name
