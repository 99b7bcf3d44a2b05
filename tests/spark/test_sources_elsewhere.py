"""The data sources read what is elsewhere as they read it here."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from mqindex.spark.functions.rocketmq import Lookup
from mqindex.spark.sources import register as sources
from tests.support.elsewhere import WAYS, Ways, memory
from tests.support.golden import case
from tests.support.log_writer import LogMessage, LogWriter

__all__ = ["memory"]  # a fixture

SECRET = "not-to-be-seen"
KINDS = {"string": StringType(), "int": IntegerType(), "bigint": LongType()}
OPTIONS = json.dumps({"key": SECRET})
STORES = (sources.CommitLogSource, sources.ConsumeQueueSource, sources.IndexSource)


@pytest.fixture(autouse=True)
def _memory(memory: Ways) -> None:
    """Every test has an empty one."""


def reader_of(source: Any, path: Path | str, **options: str) -> Any:
    made = source({"path": str(path), **options})
    return made.reader(StructType([StructField(name, KINDS[kind]) for name, kind in made.columns()[0].items()]))


def rows(source: Any, path: Path | str, **options: str) -> list[dict[str, Any]]:
    """All rows, as Spark reads them: the reader and each partition are pickled for a task."""
    reader = reader_of(source, path, **options)
    carried = pickle.dumps(reader)
    found = []
    for part in reader.partitions():
        data = pickle.dumps(part)
        assert SECRET.encode() not in data
        for batch in pickle.loads(carried).read(pickle.loads(data)):
            found += batch.to_pylist()
    return [{name: value for name, value in row.items() if name != "file"} for row in found]


@pytest.mark.parametrize("source", STORES)
@pytest.mark.parametrize("name", ["basic-493", "ipv6-batch-ext-493"])
def test_rows_are_those_of_the_files_here(source: Any, name: str, tmp_path: Path) -> None:
    root, (slots, entries) = case(name).unpack(tmp_path), case(name).geometry
    geometry = {"hashSlotNum": str(slots), "indexNum": str(entries)} if source is sources.IndexSource else {}
    here = rows(source, root, **geometry)
    url = WAYS.upload(root)
    assert rows(source, url, storageOptions=OPTIONS, **geometry) == here != []
    own = {"rocketmq_commitlog": "commitlog", "rocketmq_index": "index", "rocketmq_consumequeue": "consumequeue"}
    assert rows(source, f"{url}/{own[source.name()]}", storageOptions=OPTIONS, **geometry) == here


def test_little_of_a_log_is_read_to_plan(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "store" / "commitlog", mapped_file_size=4 << 20)
    while writer.position < 18 << 20:
        writer.write(LogMessage("Topic", body=bytes(40_000), keys="k"))
    url = WAYS.upload(tmp_path / "store")
    reader = reader_of(sources.CommitLogSource, url)
    WAYS.ranges.clear()
    assert len(reader.partitions()) >= 5
    assert sum(stop - start for _, start, stop in WAYS.ranges) <= 1 << 20


def test_options_are_said_in_no_error(tmp_path: Path) -> None:
    url = WAYS.upload(case("basic-493").unpack(tmp_path))
    for wrong in (f'["{SECRET}"]', f'{{"key": "{SECRET}"', SECRET):
        with pytest.raises(ValueError, match=r"^storageOptions: expected a JSON object") as refused:
            rows(sources.CommitLogSource, url, storageOptions=wrong)
        met: BaseException | None = refused.value
        while met is not None:  # that of the JSON parser would hold what it was given
            assert SECRET not in str((met, vars(met))) and not hasattr(met, "doc")
            met = met.__context__


def test_a_log_elsewhere_is_not_followed(tmp_path: Path) -> None:
    url = WAYS.upload(case("basic-493").unpack(tmp_path))
    source = sources.CommitLogSource({"path": url})
    with pytest.raises(Exception, match="only a log of this machine is followed"):
        source.streamReader(StructType([StructField("phy_offset", LongType())])).initialOffset()


def test_what_is_gone_since_the_plan_is_said(tmp_path: Path) -> None:
    url = WAYS.upload(case("basic-493").unpack(tmp_path))
    reader = reader_of(sources.CommitLogSource, url)
    parts = reader.partitions()
    for name in WAYS.files(f"{url}/commitlog"):
        WAYS.store.delete(f"{url.removeprefix('memory://')}/commitlog/{name}")
    with pytest.raises(Exception, match=r"not as it was when the read was planned|No such file"):
        [batch for part in parts for batch in reader.read(part)]


def test_keys_are_looked_up_there(tmp_path: Path) -> None:
    root, (slots, entries) = case("basic-493").unpack(tmp_path), case("basic-493").geometry
    url, geometry = WAYS.upload(root), {"hash_slot_num": slots, "index_num": entries}
    keys = pa.array([None, "no-such-key", *(f"user-{n}" for n in range(20))])
    here = Lookup(root, "BBTopic", **geometry)(keys)
    there = Lookup(url, "BBTopic", storage_options={"key": SECRET}, **geometry)
    for _ in range(2):
        assert pickle.loads(pickle.dumps(there))(keys) == here
    WAYS.ranges.clear()
    assert there(keys) == here
    assert WAYS.ranges == []  # what a worker's process has read stays
    assert sum(map(len, here.to_pylist()[1:])) > 0
