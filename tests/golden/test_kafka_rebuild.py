"""Index files of Kafka's golden partitions: rebuilt, verified, repaired, against what brokers wrote and said."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex._words import plural
from mqindex.engines import LocalEngine
from mqindex.files.backups.backup_record import RECORD
from mqindex.kafka import LogSegment, rebuild, repair, verify
from tests.reference import kafka_recover as twin
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase, damaged

ENDINGS = (".index", ".timeindex", ".txnindex")
ONE = LocalEngine(1)
REFUSED = {"LogSegmentOffsetOverflowException", "InvalidOffsetException"}
BROKERS = [name for name in PARTITION_CASES if not name.endswith("follower")]  # the others: Kafka's classes alone
DAMAGED = [name for name in PARTITION_CASES if name != "410-empty"]
PASSED_OVER = {"log-magic", "log-offset-order", "log-count"}  # what the broker's recovery does not look at
NO_CHECKSUM_COVERS = {"magic-3", "offset-up-1000000"}
every_case = pytest.mark.parametrize("name", PARTITION_CASES)
TRANSACTIONS = ["410-txn", "410-txn-open"]


def options(case: PartitionCase) -> dict[str, Any]:
    config = case.truth["config"]
    return {
        "index_interval_bytes": int(config.get("index.interval.bytes", 4096)),
        "max_index_size": int(config.get("segment.index.bytes", 10_485_760)),
        "engine": ONE,
    }


def index_files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.suffix in ENDINGS}


@every_case
def test_a_rebuild_is_what_brokers_recover(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    root = case.unpack(tmp_path)
    partition = case.truth["partition"]
    report = rebuild(root / "closed" / partition, tmp_path / "out", **options(case))
    written = index_files(tmp_path / "out")
    recoveries = [root / told / partition for told in ("rebuilt", "recovered-4.1.0") if (root / told).exists()]
    assert recoveries
    for directory in recoveries:
        assert written == index_files(directory)
    assert report.ok
    assert report.findings == []
    assert [os.path.basename(path) for path in report.out_files] == sorted(written, key=_by_segment)
    assert report.segments == len(case.truth["segments"])
    assert report.batches == sum(len(segment["batches"]) for segment in case.truth["segments"])


def _by_segment(name: str) -> tuple[str, int]:
    stem, ending = name.split(".")
    return stem, ENDINGS.index(f".{ending}")


@every_case
def test_the_twin_recovers_as_brokers_do(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    root = case.unpack(tmp_path)
    logs = sorted((root / "closed" / case.truth["partition"]).glob("*.log"))
    given = options(case)
    made = [
        twin.recover(path.read_bytes(), int(path.stem), interval=given["index_interval_bytes"],
                     max_index_size=given["max_index_size"])
        for path in logs
    ]  # fmt: skip
    aborted = twin.aborted_transactions([one.batches for one in made])
    files = {}
    for path, one, entries in zip(logs, made, aborted, strict=True):
        files |= {f"{path.stem}.index": one.index, f"{path.stem}.timeindex": one.timeindex}
        files |= {f"{path.stem}.txnindex": entries} if entries else {}
    assert files == index_files(root / "recovered-4.1.0" / case.truth["partition"])


@every_case
def test_what_brokers_closed_is_right(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    for deep in (False, True):
        report = verify(directory, deep=deep, **options(case))
        assert report.ok
        assert report.actions == []
        assert {finding.severity for finding in report.findings} <= {"info"}
    other_settings = verify(directory, engine=ONE)
    assert other_settings.ok, other_settings.findings


@every_case
def test_what_brokers_recovered_is_found_without_a_word(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    root = case.unpack(tmp_path)
    partition = case.truth["partition"]
    shutil.copytree(root / "recovered-4.1.0" / partition, root / "closed" / partition, dirs_exist_ok=True)
    report = verify(root / "closed" / partition, **options(case))
    assert report.findings == []
    assert report.files == len(index_files(root / "closed" / partition))


@pytest.mark.parametrize("name", BROKERS)
def test_what_a_broker_is_writing_is_explained(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    root = case.unpack(tmp_path)
    partition = case.truth["partition"]
    directory = root / "closed" / partition
    trimmed = {name: len(content) for name, content in index_files(directory).items()}
    shutil.copytree(root / "live" / partition, directory, dirs_exist_ok=True)
    untrimmed = [path for path in sorted(directory.glob("*index")) if path.stat().st_size > trimmed[path.name]]
    report = verify(directory, **options(case))
    assert report.ok, report.findings
    told = {finding.path for finding in report.findings if finding.kind.endswith("-unwritten")}
    assert told == {str(path) for path in untrimmed}
    (root / "closed" / ".kafka_cleanshutdown").touch()  # after a clean stop nobody recovers them
    told = {finding.path for finding in verify(directory, **options(case)).findings if finding.severity == "error"}
    assert told == {str(path) for path in untrimmed}


def delete(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size + 24))


SPOILT = [(delete, ending) for ending in (*ENDINGS, "all")] + [(empty, ending) for ending in (*ENDINGS, "all")]
SPOILT += [(zero, "all")]


@every_case
def test_lost_indexes_come_back_as_a_broker_recovers_them(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    root = case.unpack(tmp_path)
    right = index_files(root / "recovered-4.1.0" / case.truth["partition"])
    original = root / "closed" / case.truth["partition"]
    for number, (spoil, ending) in enumerate(SPOILT):
        directory = shutil.copytree(original, tmp_path / str(number) / original.name)
        (directory.parent / ".kafka_cleanshutdown").touch()  # no broker will recover anything
        check_repair(directory, right, spoil, ending, options(case))


def check_repair(
    directory: Path, right: dict[str, bytes], spoil: Callable[[Path], None], ending: str, given: dict[str, Any]
) -> None:
    """All files of an ending are lost: exactly those are written, the others and the logs stay."""
    before = index_files(directory)
    others = {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix not in ENDINGS}
    spoilt = [directory / name for name in before if ending in ("all", Path(name).suffix)]
    for path in spoilt:
        spoil(path)
    changed = {path.name for path in spoilt if not path.exists() or path.read_bytes() != right[path.name]}
    planned = repair(directory, dry_run=True, **given)
    assert index_files(directory).keys() == before.keys() - {path.name for path in spoilt if spoil is delete}
    report = repair(directory, **given)
    assert report.ok, report.findings
    assert report.actions == planned.actions
    assert {os.path.basename(path) for path in report.out_files} == changed
    assert index_files(directory) == {name: right[name] if name in changed else before[name] for name in before}
    assert {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}.items() >= others.items()
    assert verify(directory, **given).ok
    backups = [path for path in directory.iterdir() if path.is_dir()]  # and no scratch
    if not changed:
        assert backups == []
        assert report.backup is None
    else:
        assert backups == [Path(str(report.backup))]
        kept = {path.name: path.read_bytes() for path in backups[0].iterdir() if path.name != RECORD}
        assert kept.keys() == (set() if spoil is delete else changed)
        assert set(b"".join(kept.values())) <= {0}


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_a_wrong_transaction_index_is_an_error_and_is_replaced(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    path = max(directory.glob("*.txnindex"), key=lambda each: each.stat().st_size)
    right = path.read_bytes()
    assert len(right) > 68
    wrong = [
        right[:-34],  # an aborted transaction more
        right + right[-34:],  # twice
        right[34:] + right[:34],  # out of order
        right[:-8] + (1 << 40).to_bytes(8, "big"),  # a search ends too early
        right[:17] + bytes([right[17] + 1]) + right[18:],  # begins later
        right[:5] + b"\x01" + right[6:],  # another producer
        right[:25] + bytes([right[25] ^ 1]) + right[26:],  # ends elsewhere
        b"\x01" + right[1:],
        right + b"\x00",
        bytes(len(right)),
        b"\xff" * len(right),
    ]
    for content in wrong:
        path.write_bytes(content)
        report = verify(directory, **options(case))
        assert not report.ok, content
        assert {finding.path for finding in report.findings} == {str(path)}
        assert repair(directory, **options(case)).ok
        assert path.read_bytes() == right
        shutil.rmtree(next(directory.glob("mqindex-backup-*")))


# ---- damaged logs


def one_each(case: PartitionCase, damages: list[dict[str, Any]], tmp_path: Path) -> Path:
    """A log dir with a partition for each damage: its log alone, in a segment of its own."""
    closed = case.closed(tmp_path)
    for number, damage in enumerate(damages):
        directory = tmp_path / "logs" / f"damaged-{number}"
        directory.mkdir(parents=True)
        content = (closed / damage["file"]).read_bytes()
        (directory / damage["file"]).write_bytes(damaged(content, damage["ops"]))
    return tmp_path / "logs"


def recover_as_the_broker(path: Path, told: dict[str, Any], cut: int, case: PartitionCase) -> None:
    chosen = {key: value for key, value in options(case).items() if key != "engine"}
    with LogSegment.open(path) as segment:
        made = segment.recover(**chosen)
    assert made.truncated_bytes == cut
    for ending, content in ((".index", made.offset_index), (".timeindex", made.time_index)):
        assert hashlib.sha256(content).hexdigest() == told[ending]["sha256"]


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_logs_are_recovered_as_by_the_broker(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    damages = [damage for damage in case.truth.get("damage", []) if damage["file"].endswith(".log")]
    assert damages
    logs = one_each(case, damages, tmp_path)
    report = rebuild(logs, tmp_path / "out", **options(case))
    for number, damage in enumerate(damages):
        home = logs / f"damaged-{number}"
        files = index_files(tmp_path / "out" / home.name)
        findings = [finding for finding in report.findings if str(finding.path).startswith(f"{home}/")]
        if "error" in damage:
            assert damage["error"] in REFUSED
            assert files == {}
            assert [finding.kind for finding in findings] == ["log-refused"]
            continue
        told = {ending: file for ending, file in damage["files"].items() if ending in ENDINGS}
        recover_as_the_broker(home / damage["file"], told, damage["truncatedBytes"], case)
        if any("good batches" in str(finding.hint) for finding in findings):
            continue  # a rebuild goes on behind the damage, as no broker does
        if not told.get(".txnindex", {"size": 0})["size"]:
            told.pop(".txnindex", None)  # the broker creates one, or leaves one empty
        found = {f".{path.split('.')[1]}": content for path, content in files.items()}
        assert {ending: len(content) for ending, content in found.items()} == {
            ending: file["size"] for ending, file in told.items()
        }, damage["name"]
        for ending, content in found.items():
            assert hashlib.sha256(content).hexdigest() == told[ending]["sha256"], damage["name"]
        cut = damage["truncatedBytes"]
        passed_over = [finding for finding in findings if finding.kind in PASSED_OVER]
        assert len(findings) - len(passed_over) == (cut > 0), damage["name"]
        assert all(
            f"cuts {plural(cut, 'byte')} here" in str(finding.hint)
            for finding in findings
            if finding not in passed_over
        )
        assert bool(passed_over) == (damage["name"] in NO_CHECKSUM_COVERS and not cut), damage["name"]


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_offset_and_time_indexes_are_found_and_repaired(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    closed = case.closed(tmp_path)
    damages = [damage for damage in case.truth.get("damage", []) if damage["file"].endswith(("index", "timeindex"))]
    damages = [damage for damage in damages if not damage["file"].endswith(".txnindex")]
    logs = tmp_path / "logs"
    for number, damage in enumerate(damages):
        directory = logs / f"damaged-{number}"
        directory.mkdir(parents=True)
        stem = damage["file"].split(".")[0]
        (directory / f"{stem}.snapshot").touch()  # not to be read: a broker reads the log for its producers
        for ending in (".log", *ENDINGS[:2]):
            content = (closed / f"{stem}{ending}").read_bytes()
            (directory / f"{stem}{ending}").write_bytes(
                damaged(content, damage["ops"]) if damage["file"] == f"{stem}{ending}" else content
            )
    assert damages
    (logs / ".kafka_cleanshutdown").touch()
    found = verify(logs, **options(case)).findings
    for number, damage in enumerate(damages):
        directory = logs / f"damaged-{number}"
        spoilt = directory / damage["file"]
        here = [finding for finding in found if str(finding.path).startswith(f"{directory}/")]
        wrong = {str(finding.path) for finding in here if finding.severity == "error"}
        assert {path for path in wrong if not path.endswith(".txnindex")} <= {str(spoilt)}, damage
        if damage["sanity"] != "ok":
            assert str(spoilt) in wrong, damage
    assert repair(logs, **options(case)).ok
    assert verify(logs, **options(case)).ok
