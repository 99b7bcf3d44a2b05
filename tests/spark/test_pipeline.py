"""rebuild, verify and repair on Spark give the broker's bytes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex import rocketmq
from mqindex.engines import publishing
from mqindex.errors import OutputExistsError, RebuildError
from mqindex.rocketmq.pipeline import stages
from mqindex.spark import SparkEngine, rebuild, repair, verify
from tests.support.golden import STORE_CASES, StoreCase, case
from tests.support.tree import contents, identities, index_bytes, index_paths, queue_bytes, scraps

GoldenStore = Callable[[str], tuple[StoreCase, Path]]


@pytest.mark.parametrize("name", STORE_CASES)
def test_rebuilt_files_are_the_broker_s(name: str, spark: Any, golden_store: GoldenStore, tmp_path: Path) -> None:
    chosen, root = golden_store(name)
    split_size = 4096 if name == "basic-493" else 65536
    report = rebuild(spark, root, tmp_path / "out", split_size=split_size)
    assert index_bytes(tmp_path / "out") == index_bytes(root)
    assert (report.ok, report.messages) == (True, len(chosen.truth["messages"]))
    rocketmq.rebuild(root, tmp_path / "local")
    assert queue_bytes(tmp_path / "out") == queue_bytes(tmp_path / "local")
    assert queue_bytes(tmp_path / "out").keys() == queue_bytes(root).keys()
    assert report.units == sum(len(queue["units"]) for queue in chosen.truth["consumeQueues"])
    assert scraps(tmp_path) == []


def test_several_stores_are_one_spark_job_for_each_stage(
    spark: Any, golden_store: GoldenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = [golden_store(name)[1] for name in ("basic-493", "ipv6-batch-ext-493")]
    jobs: dict[str, int] = {}
    ran = SparkEngine._run

    def counted(engine: Any, parcels: Any, frame: Any, name: str, *rest: Any) -> Any:
        jobs[name] = jobs.get(name, 0) + 1
        return ran(engine, parcels, frame, name, *rest)

    monkeypatch.setattr(SparkEngine, "_run", counted)
    report = rebuild(spark, [*roots, tmp_path / "none"], tmp_path / "out")
    stages = ("look at the files", "read the log", "build the index", "build the queues", "publish")
    assert [jobs[name] for name in stages] == [1] * len(stages)
    assert [one.kind for one in report.findings if one.severity == "error"] == ["not-rebuilt"]
    assert "FileNotFoundError" not in str(report.findings)
    names = list(report.stores)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names[:2])
    for name, root in zip(names, roots, strict=False):
        assert index_bytes(tmp_path / "out" / name) == index_bytes(root)
    assert scraps(tmp_path / "out") == scraps(tmp_path) == []


def test_repair_brings_the_newest_file_back_and_leaves_the_others_alone(spark: Any, golden_store: GoldenStore) -> None:
    _, root = golden_store("medium-493")
    expected = index_bytes(root)
    index_paths(root)[-1].unlink()
    survivors = identities(root / "index")
    assert not verify(spark, root).ok
    assert repair(spark, root).ok
    assert index_bytes(root) == expected
    assert survivors.items() <= identities(root / "index").items()
    assert verify(spark, root, deep=True).ok


def test_optimized_files_are_those_of_this_machine(spark: Any, golden_store: GoldenStore, tmp_path: Path) -> None:
    _, root = golden_store("basic-493")
    rocketmq.optimize(root, tmp_path / "local")
    rocketmq.optimize(root, tmp_path / "spark", engine=SparkEngine(spark))
    assert index_bytes(tmp_path / "spark") == index_bytes(tmp_path / "local")
    assert rocketmq.optimize(root, root, overwrite=True, engine=SparkEngine(spark)).files == len(index_paths(root))
    assert index_bytes(root) == index_bytes(tmp_path / "local")
    assert contents(tmp_path / "spark") == contents(tmp_path / "local")
    assert verify(spark, root, deep=True).ok


def test_a_health_report_is_the_one_of_this_machine(spark: Any, golden_store: GoldenStore) -> None:
    _, root = golden_store("basic-493")
    index_paths(root)[1].unlink()
    told, local = (rocketmq.report(root, engine=one).to_dict() for one in (SparkEngine(spark), None))
    for one in (told, local):
        one["verify"]["seconds"] = one["read"]["seconds"] = one["read"]["made_at"] = 0
        one["site"]["newest_age"] = one["site"]["disk_free"] = 0
    assert told == local


def test_repair_brings_queues_back(spark: Any, golden_store: GoldenStore) -> None:
    chosen, root = golden_store("basic-493")
    expected = queue_bytes(root)
    shutil.rmtree(root / "consumequeue" / "AaTopic" / "1")
    (root / "consumequeue" / "BBTopic" / "0" / f"{1000:020d}").unlink()
    wrong = root / "consumequeue" / "OrderTopic" / "2" / f"{0:020d}"
    wrong.write_bytes(wrong.read_bytes()[:100] + b"\1" * 8 + wrong.read_bytes()[108:])
    found = verify(spark, root)
    assert not found.ok
    assert len(found.actions) == 3
    assert repair(spark, root).ok
    assert queue_bytes(root) == expected
    clean = verify(spark, root, deep=True)
    assert (clean.ok, clean.units) == (True, sum(len(queue["units"]) for queue in chosen.truth["consumeQueues"]))


def test_output_that_exists_is_refused_unchanged_through_spark(spark: Any, golden: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(OutputExistsError, match="the output exists and is not empty"):
        rebuild(spark, golden, tmp_path / "out")


def test_part_alone_is_what_was_asked_for(spark: Any, golden: Path, tmp_path: Path) -> None:
    rebuild(spark, golden, tmp_path / "out", parts=["consumequeue"])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["consumequeue"]
    assert queue_bytes(tmp_path / "out") == queue_bytes(golden)


def test_dead_worker_leaves_nothing_behind(
    spark: Any, golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(part: Any) -> Any:
        import os

        os.write(os.open(f"{part.out}/half", os.O_CREAT | os.O_WRONLY), b"half a file")
        os._exit(137)

    monkeypatch.setattr(stages, "build", die)
    with pytest.raises(RebuildError, match=r"Spark could not build the index: .*nothing was published"):
        rebuild(spark, golden, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_dies_after_it_published_is_told_truly(
    spark: Any, golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was "nothing was published"."""
    publish_it = publishing.publish

    def die(publication: Any) -> Any:
        import os

        publish_it(publication)
        os._exit(137)

    monkeypatch.setattr(publishing, "publish", die)
    monkeypatch.setattr(
        "mqindex.spark.engine.is_local", lambda _: False
    )  # a single task is a job then, as on a cluster
    out = tmp_path / "out"
    with pytest.raises(RebuildError, match=rf"^Spark could not publish: .*; {out} is complete, or as it was before;"):
        rebuild(spark, golden, out)
    assert index_bytes(out) == index_bytes(golden)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_engine_reports_the_stages_of_a_rebuild(spark: Any, golden: Path, tmp_path: Path) -> None:
    stages_told: dict[str, int] = {}
    engine = SparkEngine(spark, progress=lambda told: stages_told.update({told.stage: told.done}))
    rocketmq.rebuild(golden, tmp_path / "out", engine=engine)
    extracted = sum(path.stat().st_size for path in (golden / "commitlog").iterdir())
    assert 0 < stages_told["read the log"] <= extracted
    assert stages_told["build the index"] >= case("basic-493").truth["indexFiles"][0]["indexCount"] - 1
