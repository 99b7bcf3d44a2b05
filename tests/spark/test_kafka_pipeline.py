"""Kafka's rebuild, verify and repair on Spark give what they give on one machine: the broker's bytes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from mqindex import kafka
from mqindex.errors import OutputExistsError
from mqindex.spark import SparkEngine
from tests.support.golden_kafka import PartitionCase
from tests.support.tree import contents, scraps

CASES = ("282-magic1-plain", "390-follower", "410-compacted")
OPTIONS = {"index_interval_bytes": 600}


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Partitions of one interval, and one with transactions."""
    home = tmp_path / "logs"
    for name in (*CASES, "410-txn"):
        case = PartitionCase(name)
        shutil.copytree(case.closed(tmp_path / "unpacked"), home / case.truth["partition"])
    (home / "meta.properties").touch()
    (home / ".lock").touch()
    return home


def test_a_log_dir_is_rebuilt_as_brokers_recover_it(spark: Any, log_dir: Path, tmp_path: Path) -> None:
    report = kafka.rebuild(log_dir, tmp_path / "out", engine=SparkEngine(spark), **OPTIONS)
    kafka.rebuild(log_dir, tmp_path / "local", **OPTIONS)
    assert contents(tmp_path / "out") == contents(tmp_path / "local")
    assert report.ok
    for name in CASES:
        partition = PartitionCase(name).truth["partition"]
        recovered = tmp_path / "unpacked" / name / "recovered-4.1.0" / partition
        assert contents(tmp_path / "out" / partition) == contents(recovered)
    assert scraps(tmp_path) == []
    with pytest.raises(OutputExistsError):
        kafka.rebuild(log_dir, tmp_path / "out", engine=SparkEngine(spark), **OPTIONS)


def test_a_health_report_is_the_same_on_spark(spark: Any, log_dir: Path) -> None:
    sorted(log_dir.glob("txn-0/*.timeindex"))[0].unlink()
    there = kafka.report(log_dir, engine=SparkEngine(spark), **OPTIONS)
    here = kafka.report(log_dir, **OPTIONS)
    assert there.verify.findings == here.verify.findings
    assert (there.totals, there.codecs, there.partitions) == (here.totals, here.codecs, here.partitions)
    assert sum(one.time_indexes_lost for one in there.partitions) == 1


def test_repair_brings_back_what_is_lost_and_verify_finds_it(spark: Any, log_dir: Path) -> None:
    engine = SparkEngine(spark)
    right = contents(log_dir)
    assert kafka.verify(log_dir, engine=engine, **OPTIONS).ok
    lost = [*sorted(log_dir.glob("compacted-0/*.timeindex"))[-1:], *log_dir.glob("txn-0/*.txnindex")]
    for path in lost:
        path.unlink()
    found = kafka.verify(log_dir, engine=engine, deep=True, **OPTIONS)
    assert {finding.path for finding in found.findings if finding.severity == "error"} == set(map(str, lost))
    report = kafka.repair(log_dir, engine=engine, **OPTIONS)
    assert sorted(report.out_files) == sorted(map(str, lost))
    assert report.actions == found.actions
    kept = {name: data for name, data in contents(log_dir).items() if "mqindex-backup-" not in name}
    assert kept == right
    assert kafka.verify(log_dir, engine=engine, **OPTIONS).ok
