"""Names that no broker gives, in every directory of a store and of a log dir: each passed over, or one clear error."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex import kafka
from mqindex.engines import LocalEngine
from mqindex.errors import MQIndexError
from mqindex.rocketmq import rebuild, repair, verify
from tests.support.golden_kafka import PartitionCase
from tests.support.small_store import OPTIONS, make_small_store

Bound = Callable[[float], None]
ONE = LocalEngine(1)
NUMBERS = [
    "٣", "٣" * 17, "٣" * 20, "²" * 20, "①", "9" * 17, "9" * 20, "9" * 250, "09223372036854775807",
    "09223372036854775808", "-1", "+0000000000000000001", "1_0", " 1", "1\n", "0000000000000000000\n", "2147483648",
]  # fmt: skip
OTHERS = ["\udcff", "\udcff" + "0" * 19, "a\nb", "..x", "\x1b[31m", "[b]%s{}"]
ENDINGS = ["log", "index", "log.swap", "timeindex.cleaned", "snapshot"]
SEGMENTS = [f"{number}.{ending}" for number in NUMBERS if len(number) < 200 for ending in ENDINGS]
PARTITIONS = [
    "a-٣", "a-99999999999", "a-2147483648", "a--1", "-0", "a-0\n", "a-0.x-delete", "a-0.\udcff-future", "\udcff-0",
]  # fmt: skip
QUEUE = "consumequeue/Topic0/0"


def add(directory: Path, names: list[str], *, as_directory: bool) -> None:
    for name in names:
        path = os.path.join(directory, name)
        if as_directory:
            os.mkdir(path)
        else:
            Path(path).write_bytes(bytes(40))


@pytest.mark.parametrize("as_directory", [False, True], ids=["files", "directories"])
@pytest.mark.parametrize("where", [".", "commitlog", "index", "consumequeue", QUEUE[:-2], QUEUE])
def test_names_in_a_store(where: str, as_directory: bool, tmp_path: Path, time_bound: Bound) -> None:
    time_bound(120)
    store = make_small_store(tmp_path / "store")
    add(store / where, NUMBERS + OTHERS, as_directory=as_directory)
    for work in (
        lambda: [str(finding) for finding in verify(store, deep=True, engine=ONE, **OPTIONS).findings],
        lambda: repair(store, dry_run=True, engine=ONE, **OPTIONS),
        lambda: rebuild(store, tmp_path / "out", engine=ONE, **OPTIONS),
    ):
        try:
            work()
        except (MQIndexError, OSError) as error:
            assert str(error)


@pytest.mark.parametrize("as_directory", [False, True], ids=["files", "directories"])
def test_names_in_a_log_dir(as_directory: bool, tmp_path: Path, time_bound: Bound) -> None:
    time_bound(120)
    partition = PartitionCase("410-txn").closed(tmp_path)
    add(partition, SEGMENTS + OTHERS, as_directory=as_directory)
    add(partition.parent, PARTITIONS + NUMBERS + OTHERS, as_directory=as_directory)
    for path in (partition, partition.parent):
        report = kafka.verify(path, deep=True, engine=ONE)
        assert all(str(finding) for finding in report.findings)
        kafka.repair(path, dry_run=True, engine=ONE)
