"""Includes of the C sources go downwards only, in no circle, and the brokers' formats do not know each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC_C = Path(__file__).parents[2] / "src_c"
pytestmark = pytest.mark.skipif(not SRC_C.is_dir(), reason="an installed package is tested without its C sources")

LEVELS = [  # from the bottom to the top: a unit includes units of its own level and of those below
    {"arrow", "bytes", "clock", "compiler", "decimal", "read_ahead", "run", "slot", "status"},
    {"allocate", "buffer", "crc", "crc_sums", "guard", "hash", "swap", "write_all"},
    {"consume_queue", "index_file", "kafka_batch", "kafka_index", "log_frame"},  # a layout each
    {
        "index_fence",
        "key_filter",
        "kafka_floor",
        "kafka_log",
        "kafka_records",
        "kafka_resync",
        "kafka_tally",
        "index_put",
        "index_select",
        "index_sort",
        "log_find",
        "log_queues",
        "log_scan",
        "unit_tally",
    },
    {"group_commit", "index_cold", "kafka_recovery", "log_encode", "log_extract", "log_text"},
    {"log_append", "log_columns"},
]
KAFKA = re.compile(r"kafka_")
ROCKETMQ = re.compile(r"consume_queue|index_|key_filter|log_|unit_tally")


def includes(directory: Path) -> dict[str, set[str]]:
    """Which units each unit includes: its header and its code count as one."""
    found: dict[str, set[str]] = {}
    for path in sorted(directory.glob("mqi_*.[ch]")):
        names = re.findall(r'#include "mqi_(\w+)\.h"', path.read_text())
        found.setdefault(path.stem.removeprefix("mqi_"), set()).update(names)
    return {unit: names - {unit} for unit, names in found.items()}


def circles(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """One circle for each unit from which there is one."""
    for start in graph:
        paths = [[start]]
        seen = set()
        while paths:
            path = paths.pop()
            for unit in sorted(graph.get(path[-1], ())):
                if unit == start:
                    yield [*path, start]
                elif unit not in seen:
                    seen.add(unit)
                    paths.append([*path, unit])


def level(unit: str) -> int:
    return next(number for number, units in enumerate(LEVELS) if unit in units)


def test_each_unit_has_a_level() -> None:
    assert set(includes(SRC_C)) == set.union(*LEVELS)


def test_includes_go_downwards_only() -> None:
    graph = includes(SRC_C)
    assert sum(map(len, graph.values())) > 30
    upwards = [
        f"{unit} includes {name}" for unit, names in graph.items() for name in names if level(name) > level(unit)
    ]
    assert upwards == []


def test_no_include_leads_back_to_its_own_unit() -> None:
    assert list(circles(includes(SRC_C))) == []


def test_a_circle_would_be_found(tmp_path: Path) -> None:
    for name, included in (("one.h", "two"), ("two.c", "three"), ("three.h", "one"), ("four.c", "one")):
        (tmp_path / f"mqi_{name}").write_text(f'#include "mqi_{included}.h"\n')
    assert [sorted(set(circle)) for circle in circles(includes(tmp_path))] == [["one", "three", "two"]] * 3


def test_the_brokers_units_do_not_include_each_other() -> None:
    for unit, names in includes(SRC_C).items():
        if KAFKA.match(unit):
            assert not [name for name in names if ROCKETMQ.match(name)], unit
        elif ROCKETMQ.match(unit):
            assert not [name for name in names if KAFKA.match(name)], unit
