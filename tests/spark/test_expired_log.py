"""A file of the log that a broker deletes between the plan and its task is left out, and said."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructField, StructType

from mqindex.spark.sources.rocketmq_commitlog import CommitLogSource
from tests.support.small_store import make_small_store


def test_a_task_whose_file_has_expired_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = make_small_store(tmp_path / "store")
    reader = CommitLogSource({"path": str(store)}).reader(StructType([StructField("phy_offset", LongType())]))
    parts = list(reader.plan())
    before = [at for part in parts for table in reader.tables(part) for at in table["phy_offset"].to_pylist()]
    assert caplog.messages == []
    oldest = min((store / "commitlog").iterdir())
    oldest.unlink()
    left = [at for part in parts for table in reader.tables(part) for at in table["phy_offset"].to_pylist()]
    assert left == [at for at in before if at >= 2048]
    assert len(caplog.messages) == 1
    assert "a broker deleted the log's oldest files; phy offsets 0 to 2048 are left out" in caplog.messages[0]
