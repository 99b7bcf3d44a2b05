"""A Kafka log that is bad in its middle: what lies behind is kept, found again and indexed, and cut only when asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqindex.kafka import LogSegment, rebuild, repair, undo_repair, verify
from tests.support.kafka_damage import DAMAGE, INTERVAL, LOG_DAMAGE, batches_in, filled_log_dir
from tests.support.kafka_log_dir import ONE, look, names

HOW: dict[str, Any] = {"index_interval_bytes": INTERVAL, "engine": ONE}
INNER = ("flip", "value", "zero", "size", "short", "twice", "first")
WHERE = {"middle": 27, "newest": 44}
both = pytest.mark.parametrize("where", WHERE)
inner = pytest.mark.parametrize("damage", INNER)


def tree(root: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
    return {name: data for name, data in found.items() if "mqindex-backup" not in name}


def log_of(log_dir: Path, where: str) -> Path:
    return log_dir / "topic-0" / f"{WHERE[where]:020d}.log"


def spoilt(home: Path, damage: str, where: str) -> tuple[Path, Path, list[int]]:
    """A log dir, the log in it that is damaged, and where the batches of that began."""
    log_dir = filled_log_dir(home)
    log = log_of(log_dir, where)
    at = batches_in(log.read_bytes())
    DAMAGE[f"log {damage} {where}"](log_dir)
    return log_dir, log, at


@both
@pytest.mark.parametrize("damage", [*INNER, "last"])
def test_right_indexes_of_a_damaged_log_stay(damage: str, where: str, tmp_path: Path) -> None:
    """Entries behind the damage were taken out, and of the newest segment the whole index."""
    log_dir, _, _ = spoilt(tmp_path, damage, where)
    before = tree(log_dir)
    report = repair(log_dir, **HOW)
    assert (report.actions, tree(log_dir)) == ([], before)
    assert not report.ok
    _, start = look(log_dir)
    assert (start.cuts, start.deletes) == ((), ())
    assert start.starts


@both
@inner
def test_verify_says_what_is_damaged_and_what_is_good_behind(damage: str, where: str, tmp_path: Path) -> None:
    log_dir, log, at = spoilt(tmp_path, damage, where)
    found = [one for one in verify(log_dir, **HOW).findings if one.path == str(log)]
    batches = {"zero": 2, "twice": 2}.get(damage, 1)
    first = 0 if damage == "first" else 3
    assert (found[0].severity, found[0].at, len(found)) == ("error", at[first], 2 if damage == "twice" else 1)
    base = WHERE[where] + 2 * first
    end = at[first + batches]
    lost = f"{end - at[first]} bytes up to byte {end} left out, offsets {base} to {base + 2 * batches - 1}"
    good = 9 - first - batches - (damage == "twice")
    assert f"{lost}; good batches behind: {good} ({2 * good - 1} records)." in str(found[0].hint)


@both
@inner
def test_what_an_unclean_stop_will_cut_is_said_before(damage: str, where: str, tmp_path: Path) -> None:
    log_dir, log, _ = spoilt(tmp_path, damage, where)
    (log_dir / ".kafka_cleanshutdown").unlink()
    (log_dir / "recovery-point-offset-checkpoint").write_text("0\n1\ntopic 0 27\n")
    report, start = look(log_dir)
    (told, *_) = [one for one in report.findings if one.path == str(log)]
    assert "good batches behind: " in str(told.hint)
    assert "The next start of a broker cuts the log here, with the good batches" in str(told.hint)
    assert ("drops every later segment" in str(told.hint)) is (where == "middle")
    assert names(start.cuts) == [log.name]


@both
@inner
def test_lost_indexes_lead_to_what_is_good_behind(damage: str, where: str, tmp_path: Path) -> None:
    """Without an .index a broker would cut it."""
    log_dir, log, at = spoilt(tmp_path, damage, where)
    for ending in (".index", ".timeindex"):
        log.with_suffix(ending).unlink()
    assert f"write topic-0/{log.stem}.index" in repair(log_dir, **HOW).actions
    assert verify(log_dir, **HOW).actions == []
    _, start = look(log_dir)
    assert (start.starts, start.cuts) == (True, ())
    if damage != "twice":  # which ends in a batch that is passed over
        with LogSegment.open(log) as segment:
            assert segment.next_offset == WHERE[where] + 17
            last = segment.translate_offset(WHERE[where] + 16)
            assert last is not None
            assert last.position == at[-2]
            behind = 1 if damage == "first" else 5
            found = segment.translate_offset(WHERE[where] + 2 * behind)
            assert found is not None
            assert found.position == at[behind]


@both
@inner
def test_a_rebuild_indexes_what_is_good_behind(damage: str, where: str, tmp_path: Path) -> None:
    log_dir, log, _ = spoilt(tmp_path / "logs", damage, where)
    report = rebuild(log_dir, tmp_path / "out", **HOW)
    assert not report.ok
    for ending in (".index", ".timeindex"):
        log.with_suffix(ending).unlink()
    repair(log_dir, **HOW)
    for ending in (".index", ".timeindex"):
        written = (tmp_path / "out" / "topic-0" / log.with_suffix(ending).name).read_bytes()
        assert log.with_suffix(ending).read_bytes() == written


@both
@inner
def test_good_batches_are_given_up_only_when_asked_and_counted(damage: str, where: str, tmp_path: Path) -> None:
    log_dir, log, at = spoilt(tmp_path, damage, where)
    before = tree(log_dir)
    would = repair(log_dir, dry_run=True, cut_damaged=True, **HOW)
    assert tree(log_dir) == before
    first = 0 if damage == "first" else 3
    good = 9 - first - {"zero": 2, "twice": 3}.get(damage, 1)
    assert would.actions == [
        f"move topic-0/{log.stem}.index to the backup: the next start cuts the log at byte {at[first]}, with all good "
        f"batches behind: {good} ({2 * good - 1} records)"
    ]
    report = repair(log_dir, cut_damaged=True, **HOW)
    assert report.actions == would.actions
    assert not log.with_suffix(".index").exists()
    _, start = look(log_dir)
    snapshots = [path.name for path in log.parent.glob("*.snapshot")]
    deleted = [max(snapshots)] if where == "newest" else []  # of the end that the log had
    assert (start.starts, names(start.cuts), names(start.deletes)) == (True, [log.name], deleted)
    undo_repair(log_dir, str(report.backup))
    assert tree(log_dir) == before


@both
def test_the_newest_log_without_an_entry_behind_the_damage_gets_one(where: str, tmp_path: Path) -> None:
    """A broker took the damage for the log's end, and would have given its offsets a second time."""
    log_dir, log, _ = spoilt(tmp_path, "size", where)
    index = log.with_suffix(".index")
    index.write_bytes(index.read_bytes()[:8])
    report = repair(log_dir, **HOW)
    assert bool(report.actions) is (where == "newest")
    if where == "newest":
        assert {one.severity for one in report.findings if one.kind == "offset-index-end"} == {"info"}
        with LogSegment.open(log) as segment:
            assert segment.next_offset == 44 + 17


@pytest.mark.parametrize("damage", [damage for damage in LOG_DAMAGE if damage not in ("order", "far")])
def test_a_recovery_is_still_the_brokers(damage: str, tmp_path: Path) -> None:
    """It ends at the first bad batch, whatever lies behind."""
    _, log, at = spoilt(tmp_path, damage, "middle")
    with LogSegment.open(log) as segment:
        made = segment.recover(index_interval_bytes=INTERVAL)
    end = {"first": 0, "gone": 0, "last": at[-2], "torn": at[-2], "tail": at[-1]}.get(damage, at[3])
    assert (made.valid_bytes, made.end_bytes, made.damage) == (end, end, [])
