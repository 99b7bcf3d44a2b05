"""What is not known is not guessed: `repair` refuses with the option to give, `verify` says it, `rebuild` warns."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError, GeometryError, MQIndexError
from mqindex.report import Report
from mqindex.rocketmq import rebuild, repair, verify
from tests.support.golden import BASIC, StoreCase, case
from tests.support.tree import contents, index_bytes, index_paths, queue_contents, scraps

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
ONE = LocalEngine(1)
GEOMETRY = "--hash-slot-num 5000000 --index-num 20000000 if the broker runs with its defaults, or --broker-conf FILE"


def kinds(report: Report, severity: str) -> set[str]:
    return {finding.kind for finding in report.findings if finding.severity == severity}


def refused(root: Path, kind: type[MQIndexError], *words: str, dry_run: bool = False, **options: object) -> None:
    """`repair` says these words, and nothing in the store has changed."""
    before = contents(root)
    with pytest.raises(kind) as told:
        repair(root, engine=ONE, dry_run=dry_run, **options)  # type: ignore[arg-type]
    for word in words:
        assert word in str(told.value)
    assert contents(root) == before
    assert scraps(root) == []


def broker_conf(directory: Path, *lines: str) -> Path:
    path = directory / "broker.conf"
    path.write_text("\n".join(("brokerName=broker-a", *lines)) + "\n")
    return path


@pytest.mark.parametrize("dry_run", [False, True])
def test_lost_index_is_not_written_in_a_guessed_geometry(golden_store: GoldenStore, dry_run: bool) -> None:
    """It was one file of 420 MB, exit 0, and the broker found none of its keys."""
    _, root = golden_store("basic-493")
    shutil.rmtree(root / "index")
    refused(root, GeometryError, GEOMETRY, dry_run=dry_run, broker_version="4.9.3")
    report = verify(root, engine=ONE, broker_version="4.9.3")
    assert kinds(report, "error") == {"missing-entries"}
    (missing,) = (finding for finding in report.findings if finding.kind == "missing-entries")
    assert str(missing).endswith("if the broker is set to write none, its broker.conf (--broker-conf) says so")
    (unknown,) = (finding for finding in report.findings if finding.severity == "warning")
    assert unknown.kind == "geometry-unknown"
    assert GEOMETRY in str(unknown)


def test_lost_index_comes_back_with_a_geometry_from_any_source(golden_store: GoldenStore, tmp_path: Path) -> None:
    chosen, root = golden_store("basic-493")
    expected, (slots, entries) = index_bytes(root), chosen.geometry
    conf = broker_conf(tmp_path, *BASIC)
    for options in (
        {"hash_slot_num": slots, "index_num": entries},
        {"config": {"maxHashSlotNum": slots, "maxIndexNum": entries}},
        {"config": conf},
    ):
        shutil.rmtree(root / "index")
        report = repair(root, engine=ONE, **options)  # type: ignore[arg-type]
        assert report.ok
        assert index_bytes(root) == expected


def test_broker_conf_that_sets_no_geometry_says_the_default(golden_store: GoldenStore, tmp_path: Path) -> None:
    _, root = golden_store("basic-493")
    shutil.rmtree(root / "index")
    conf = broker_conf(tmp_path)
    report = verify(root, engine=ONE, config=conf)
    assert kinds(report, "warning") == set()
    assert [one.hint for one in report.findings if one.kind == "missing-entries"] == ["`mqindex repair` writes them"]
    assert str(report.geometry) == f"(5000000, 20000000) (the broker's default, {conf} sets no other)"


def test_half_a_geometry_is_none(golden_store: GoldenStore) -> None:
    _, root = golden_store("basic-493")
    shutil.rmtree(root / "index")
    refused(root, GeometryError, GEOMETRY, hash_slot_num=100)


def test_parts_that_need_no_geometry_are_repaired_without(golden_store: GoldenStore) -> None:
    _, root = golden_store("basic-493")
    expected = queue_contents(root)
    shutil.rmtree(root / "index")
    shutil.rmtree(root / "consumequeue" / "AaTopic" / "1")
    report = repair(root, engine=ONE, parts=["consumequeue"])
    assert (kinds(report, "error"), report.ok) == ({"missing-entries"}, False)  # the index, which was not asked for
    assert queue_contents(root) == expected


def test_lost_queues_are_not_written_in_a_guessed_length(golden_store: GoldenStore, tmp_path: Path) -> None:
    """They were 6,000,000 bytes long; brokers then do not start, and without any queue they would have."""
    chosen, root = golden_store("basic-493")
    expected = queue_contents(root)
    shutil.rmtree(root / "consumequeue")
    refused(root, FileStateError, "--broker-conf FILE, with mappedFileSizeConsumeQueue=6000000")
    assert "queue-file-size-unknown" in kinds(verify(root, engine=ONE), "warning")
    report = repair(root, engine=ONE, config=broker_conf(tmp_path, *BASIC))
    assert report.ok
    assert queue_contents(root) == expected
    assert chosen.truth["config"]["mappedFileSizeConsumeQueue"] == 1000


def test_one_queue_that_survives_tells_the_length_of_all(golden_store: GoldenStore) -> None:
    _, root = golden_store("basic-493")
    expected = queue_contents(root)
    for topic in (root / "consumequeue").iterdir():
        if topic.name != "AaTopic":
            shutil.rmtree(topic)
    assert repair(root, engine=ONE).ok
    assert queue_contents(root) == expected


def test_lost_extension_files_are_not_written_in_a_guessed_length(golden_store: GoldenStore, tmp_path: Path) -> None:
    """Only a configuration that is a part says that there are such files, and not how long they are."""
    chosen, root = golden_store("ipv6-batch-ext-493")
    expected = contents(root / "consumequeue_ext")
    shutil.rmtree(root / "consumequeue_ext")
    part = {"enableConsumeQueueExt": True}
    refused(root, FileStateError, "--broker-conf FILE, with mappedFileSizeConsumeQueueExt=50331648", config=part)
    assert "queue-file-size-unknown" in kinds(verify(root, engine=ONE, config=part), "warning")
    size = chosen.truth["config"]["mappedFileSizeConsumeQueueExt"]
    report = repair(root, engine=ONE, config={**part, "mappedFileSizeConsumeQueueExt": size})
    assert report.ok
    assert contents(root / "consumequeue_ext") == expected


@pytest.mark.parametrize("length", [0, 101])
def test_queue_file_of_no_length_is_no_reason_for_the_default(golden_store: GoldenStore, length: int) -> None:
    _, root = golden_store("basic-493")
    shutil.rmtree(root / "consumequeue")
    survivor = root / "consumequeue" / "AaTopic" / "0" / f"{0:020d}"
    survivor.parent.mkdir(parents=True)
    survivor.write_bytes(bytes(length))
    refused(root, FileStateError, "mappedFileSizeConsumeQueue=6000000")


def test_index_of_a_5_5_store_is_not_written_by_the_4_x_rule(golden_store: GoldenStore) -> None:
    """Of 3855 entries 3024 were written, exit 0."""
    chosen, root = golden_store("basic-550")
    expected, (slots, entries) = index_bytes(root), chosen.geometry
    shutil.rmtree(root / "index")
    geometry = {"hash_slot_num": slots, "index_num": entries}
    refused(root, FileStateError, "--broker-version V", **geometry)
    report = verify(root, engine=ONE, hash_slot_num=slots, index_num=entries)
    assert "broker-version-unknown" in kinds(report, "warning")
    assert str(report.broker_version).startswith("5.0 or newer (inferred from abort.bak")
    assert repair(root, engine=ONE, broker_version="5.5.0", hash_slot_num=slots, index_num=entries).ok
    assert index_bytes(root) == expected


def test_all_that_has_to_be_given_is_said_at_once(golden_store: GoldenStore) -> None:
    _, root = golden_store("basic-550")
    shutil.rmtree(root / "index")
    shutil.rmtree(root / "consumequeue")
    refused(root, GeometryError, GEOMETRY, "--broker-version V", "mappedFileSizeConsumeQueue=6000000")


def test_rocksdbstore_tells_5_4_or_newer(golden_store: GoldenStore) -> None:
    chosen, root = golden_store("basic-550")
    expected, (slots, entries) = index_bytes(root), chosen.geometry
    shutil.rmtree(root / "index")
    (root / "rocksdbstore").mkdir()
    report = repair(root, engine=ONE, hash_slot_num=slots, index_num=entries)
    assert str(report.broker_version) == "5.4 or newer (inferred from rocksdbstore/)"
    assert index_bytes(root) == expected


def test_neighbour_that_is_intact_decides_the_version(golden_store: GoldenStore) -> None:
    for name, told in (("basic-493", "before 5.4"), ("basic-550", "5.4 or newer")):
        _, root = golden_store(name)
        expected = index_bytes(root)
        index_paths(root)[0].unlink()
        report = repair(root, engine=ONE)
        assert report.broker_version is not None
        assert report.broker_version.value == told
        assert index_bytes(root) == expected


def test_rebuild_takes_the_defaults_and_warns(golden_store: GoldenStore, tmp_path: Path) -> None:
    chosen, root = golden_store("basic-550")
    slots, entries = chosen.geometry
    shutil.rmtree(root / "index")
    shutil.rmtree(root / "consumequeue")
    report = rebuild(root, tmp_path / "all", engine=ONE, hash_slot_num=slots, index_num=entries)
    assert report.ok
    assert kinds(report, "warning") == {"broker-version-unknown", "queue-file-size-unknown"}
    known = rebuild(
        root, tmp_path / "known", parts=["index"], engine=ONE, hash_slot_num=slots, index_num=entries,
        broker_version="5.5.0",
    )  # fmt: skip
    assert kinds(known, "warning") == set()


# ---- the log is not there


@pytest.fixture(params=["empty", "absent", "zeros"])
def unmounted(request: pytest.FixtureRequest, golden_store: GoldenStore) -> Path:
    """A store whose log is somewhere else just now."""
    _, root = golden_store("basic-493")
    shutil.rmtree(root / "commitlog")
    if request.param != "absent":
        (root / "commitlog").mkdir()
    if request.param == "zeros":
        (root / "commitlog" / f"{0:020d}").write_bytes(bytes(65536))
    return root


def test_log_that_is_not_mounted_costs_nothing(unmounted: Path, tmp_path: Path) -> None:
    """All indexes and queues went to the backup, and `repair` said: done."""
    refused(unmounted, FileStateError, "the commit log is missing", "--commitlog")
    refused(unmounted, FileStateError, "the commit log is missing", dry_run=True)
    with pytest.raises(FileStateError):
        rebuild(unmounted, tmp_path / "out", engine=ONE)
    report = verify(unmounted, engine=ONE)
    assert "log-missing" in kinds(report, "error")
    assert report.actions == []


def test_queues_alone_miss_their_log_too(unmounted: Path) -> None:
    shutil.rmtree(unmounted / "index")
    refused(unmounted, FileStateError, "the commit log is missing")


def test_store_without_a_message_is_clean(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    assert verify(tmp_path, engine=ONE).ok
    assert repair(tmp_path, engine=ONE).ok


@pytest.mark.parametrize(("name", "which"), [("killed-lost-493", 0), ("killed-lost-493", 1), ("basic-493", 1)])
def test_one_of_two_volumes_that_is_not_mounted_costs_nothing(
    golden_store: GoldenStore, tmp_path: Path, name: str, which: int
) -> None:
    """Every second file of the log is gone; or the last one, which index files reach into."""
    _, root = golden_store(name)
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
    for number, path in enumerate(sorted((root / "commitlog").iterdir())):
        shutil.move(path, places[number % 2])
    (root / "abort").unlink(missing_ok=True)
    assert verify(root, engine=ONE, commitlog=places).ok
    shutil.move(places[which], tmp_path / "elsewhere")
    places[which].mkdir()
    refused(root, FileStateError, "the commit log is missing", str(places[which]), commitlog=places)
    assert "log-missing" in kinds(verify(root, engine=ONE, commitlog=places), "error")


def test_a_log_of_many_files_of_zeros_is_no_young_log(tmp_path: Path) -> None:
    """With `abort` beside it, repair moved the whole index away and emptied the queues, and said done."""
    root = case("basic-493").unpack(tmp_path)
    for path in sorted((root / "commitlog").iterdir()):
        path.write_bytes(bytes(path.stat().st_size))
    first = sorted((root / "commitlog").iterdir())[0]
    size = first.stat().st_size
    for number in range(4):
        (root / "commitlog" / f"{number * size:020d}").write_bytes(bytes(size))
    (root / "abort").touch()
    report = verify(root)
    assert "log-missing" in {finding.kind for finding in report.findings if finding.severity == "error"}
    with pytest.raises(MQIndexError):
        repair(root)
