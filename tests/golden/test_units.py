"""What the extract kernel makes of a log for its consume queues, against the units that brokers wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mqindex._native.log_extract import QueueTable
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.brokers import broker_of
from mqindex.rocketmq.log.log_entries import NO_TAGS, FileWalk, LogSpan
from mqindex.rocketmq.log.log_files import list_log_files
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.queue.queue_rules import queue_rules
from tests.support.golden import STORE_CASES, case

Units = dict[tuple[str, int], list[list[int]]]


@pytest.mark.parametrize("name", STORE_CASES)
def test_units_are_those_of_the_broker(name: str, tmp_path: Path) -> None:
    said = case(name)
    root = said.unpack(tmp_path)
    options = store_options(root, config=said.truth["config"])
    rules = queue_rules(options, broker=broker_of(said.version))
    found = units_of(root / "commitlog", rules.table())
    for queue in said.truth["consumeQueues"]:
        units = [[phy_offset, size, code] for phy_offset, size, code, *_ in queue["units"]]
        if rules.ext_file_size is not None:  # the third field is an address; the truth has the code beside it
            units = [[phy_offset, size, code] for phy_offset, size, _, code, *_ in queue["units"]]
        assert found.pop((queue["topic"], queue["queueId"]), []) == units, (queue["topic"], queue["queueId"])
    assert not found


def units_of(directory: Path, table: QueueTable) -> Units:
    """phy_offset, size and tags_code of every unit, by queue, which must come in the order of their queue offsets."""
    found: Units = {}
    files = list_log_files([directory])
    for number, file in enumerate(files):
        with MappedFile.open(file.path) as log:
            span = LogSpan(file.path, file.start, file.stop, last=number == len(files) - 1)
            walk = FileWalk(log, span, file.start, file.stop, tags=NO_TAGS, queues=table)
            for _ in walk:
                for unit in walk.units:
                    _append(found, table, unit)
    return found


def _append(found: Units, table: QueueTable, unit: npt.NDArray[Any] | np.void) -> None:
    place = found.setdefault(table.names()[unit["queue"]], [])
    assert unit["queue_offset"] == len(place)
    place.append([int(unit["phy_offset"]), int(unit["size"]), int(unit["tags_code"])])
