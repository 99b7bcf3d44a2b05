"""Tables of files with any content end in rows or in an error of ours."""

from __future__ import annotations

import random
import shutil
import warnings
from pathlib import Path

import pytest

import mqindex
from mqindex.errors import MQIndexError
from tests.conftest import SeededRandom
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase

pytest.importorskip("pyarrow")

ROUNDS = 30


def changed(source: random.Random, data: bytes) -> bytes:
    """Other bytes in a few places, a file that ends early, or one that goes on."""
    if source.random() < 0.3:
        return data[: source.randrange(len(data) + 1)]
    if source.random() < 0.1:
        return data + source.randbytes(source.randrange(200))
    other = bytearray(data)
    for _ in range(source.randint(1, 8) if data else 0):
        at = source.randrange(len(other))
        size = source.choice((1, 4, 8))
        other[at : at + size] = source.choice((source.randbytes(size), bytes(size), b"\xff" * size, b"\x7f" * size))
    return bytes(other)


@pytest.mark.parametrize("kind", ["store", "partition"])
def test_changed_files(kind: str, tmp_path: Path, rng: SeededRandom) -> None:
    whole = case("tx-delay-lmq-493").unpack(tmp_path) if kind == "store" else PartitionCase("410-txn").closed(tmp_path)
    for number in range(ROUNDS):
        copy = tmp_path / f"{number}" / whole.name
        shutil.copytree(whole, copy)
        files = [path for path in copy.rglob("*") if path.is_file() and path.name != "lock"]
        for path in rng.sample(files, min(3, len(files))):
            path.write_bytes(changed(rng, path.read_bytes()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            for path in [copy, *rng.sample(files, 2)]:
                try:
                    names = mqindex.tables(path)
                except (ValueError, MQIndexError):
                    continue
                for table in names:
                    try:
                        mqindex.dataset(path, table).to_table()
                    except MQIndexError as error:
                        assert str(error)
        shutil.rmtree(copy.parent)
