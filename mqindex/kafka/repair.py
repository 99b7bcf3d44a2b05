"""Repair: the indexes of partitions brought back in place. What is right stays untouched, and so does every log."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from mqindex import staging
from mqindex.driving import announce, held, one, scratch_in
from mqindex.engines import Engine, LocalEngine
from mqindex.kafka.diagnosis import DiagnosedPartition, Diagnosis, diagnose, map_segments
from mqindex.kafka.exchange import Exchange, exchange_files
from mqindex.kafka.layout import MAX_INDEX_SIZE
from mqindex.kafka.options import INDEX_INTERVAL_BYTES, PartitionOptions, partition_options
from mqindex.kafka.partition_files import hold_lock
from mqindex.kafka.repair_plan import Mend, planned_actions, planned_mends
from mqindex.kafka.stages import RecoveredSegment, SegmentRecovery, needed_space, recover_segments, write_transactions
from mqindex.kafka.survey import INDEXES, Order, index_path, survey
from mqindex.kafka.verify import count, start_report
from mqindex.report import Finding, RepairReport

__all__ = ["repair"]

_AT_ONCE = 100  # partitions whose scratch is held at a time


def repair(
    directory: str | os.PathLike[str],
    *,
    deep: bool = False,
    dry_run: bool = False,
    kafka_version: str | None = None,
    index_interval_bytes: int = INDEX_INTERVAL_BYTES,
    max_index_size: int = MAX_INDEX_SIZE,
    check_crc: bool = True,
    engine: Engine | None = None,
) -> RepairReport:
    """Write anew what is wrong with the indexes of a stopped broker's partition, or of its whole log dir, in place.

    Index files that mislead nobody stay untouched, also where a rebuild would write others. A lost, empty or wrong
    `.index`, `.timeindex` or `.txnindex` is written as a broker's recovery writes it; the other indexes of its segment
    stay. What no broker brings back is brought back too: a `.timeindex` alone, and a transaction index after a clean
    stop. A log is never changed: a torn tail stays a finding, and the broker cuts it.

    Parameters
    ----------
    directory : path of a partition or of a log dir. deep : as for `verify`. dry_run : say it only, write nothing.
    kafka_version, index_interval_bytes, max_index_size, check_crc : partition options, as for `rebuild`.
    engine : where the stages run; None: `LocalEngine()`.

    Returns
    -------
    RepairReport
        `findings` are what is left after the repair (with `dry_run`: all), `actions` what was done. `backup`: where
        replaced files are; of a log dir a pattern with `*` for the partition.

    Raises
    ------
    StoreInUseError : a broker holds the log dir.

    Notes
    -----
    Replaced files go to `mqindex-backup-<UTC>/` in the partition's own directory, and new ones are built in a
    `.mqindex-<id>/` there: a broker from 0.11 on looks only at files in a partition, and deletes the directories with
    it. (In a log dir, one whose name is no partition's keeps the broker from starting.)
    Interrupted at any point, every file is the old or the new one, and a second run finishes.
    Source: Kafka 4.1.0 `LogLoader`, `LogManager.loadLogs`, `LogSegment.recover`.
    """
    started = time.perf_counter()
    engine = engine or LocalEngine()
    options = partition_options(
        kafka_version=kafka_version,
        index_interval_bytes=index_interval_bytes,
        max_index_size=max_index_size,
        check_crc=check_crc,
    )
    root = os.path.abspath(os.fspath(directory))
    found = one(engine, survey, Order(root, options), "survey")
    report = start_report(RepairReport(root, dry_run=dry_run), found)
    if dry_run:
        diagnosis = diagnose(engine, found, deep=deep)
        report.findings, report.actions = diagnosis.findings(), planned_actions(diagnosis)
    else:
        with held(engine, hold_lock, found.log_dir):
            diagnosis = diagnose(engine, found, deep=deep)
            report.findings, report.actions = diagnosis.findings(), planned_actions(diagnosis)
            _mend(engine, diagnosis, report)
            one(engine, _sweep, tuple(partition.path for partition in found.partitions), "clean")
    counted = RepairReport(root)
    count(counted, diagnosis)
    report.batches = counted.batches
    report.seconds = time.perf_counter() - started
    return report


def _mend(engine: Engine, diagnosis: Diagnosis, report: RepairReport) -> None:
    wanted = [(each, mends) for each in diagnosis.partitions if (mends := planned_mends(each))]
    if not wanted:
        return
    options = diagnosis.survey.options
    needed = [(each.partition.path, needed_space(options, [mend.size for mend in mends])) for each, mends in wanted]
    name = one(engine, _prepare, tuple(needed), "check")
    announce(engine, f"writes {sum(len(mend.endings) for _, mends in wanted for mend in mends)} index files")
    kept: list[str] = []
    mended: set[str] = set()
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        with ExitStack() as scratches:
            homes = [scratches.enter_context(scratch_in(engine, each.partition.path)) for each, _ in some]
            recovered = _recover(engine, options, some, homes)
            exchanges = [
                _exchange(engine, each, mends, segments, home, name)
                for (each, mends), segments, home in zip(some, recovered, homes, strict=True)
            ]
            placed = engine.map(exchange_files, exchanges, name="exchange files")
        report.out_files += [path for paths in placed for path in paths]
        mended |= {path for exchange in exchanges for path in exchange.remove}
        kept += [exchange.backup for exchange in exchanges]
        _told(report, [segment for segments in recovered for segment in segments])
    mended |= set(report.out_files)
    there = engine.map(os.path.isdir, kept, name="backup")
    if any(there):
        report.backup = os.path.join(report.path, *([] if diagnosis.survey.single else ["*"]), name)
    report.files = len(report.out_files)
    report.findings = [_after_repair(finding, mended) for finding in report.findings]


def _sweep(partitions: tuple[str, ...]) -> None:
    """What a run that was killed left, also where there was nothing to mend any more."""
    for path in partitions:
        staging.sweep(path)


def _prepare(needed: tuple[tuple[str, int], ...]) -> str:
    """Check that there is room, in each file system for all its partitions; a name for their backups, still unused."""
    devices: dict[int, tuple[str, int]] = {}
    for path, size in needed:
        device = os.stat(path).st_dev
        devices[device] = path, size + devices.get(device, (path, 0))[1]
    for path, size in devices.values():
        staging.check_space(path, size)
    name = f"mqindex-backup-{staging.backup_name()}"
    names = itertools.chain([name], (f"{name}-{n}" for n in itertools.count(2)))
    return next(each for each in names if not any(os.path.lexists(os.path.join(path, each)) for path, _ in needed))


def _recover(
    engine: Engine,
    options: PartitionOptions,
    wanted: Sequence[tuple[DiagnosedPartition, list[Mend]]],
    homes: Sequence[str],
) -> list[list[RecoveredSegment]]:
    """Offset and time indexes that are written anew, of all partitions together."""
    items, sizes = [], []
    for (each, mends), home in zip(wanted, homes, strict=True):
        for mend in mends:
            if mend.from_log:
                last = mend.files == each.partition.segments[-1]
                items.append(SegmentRecovery(mend.files, options, home, last, mend.endings))
                sizes.append(mend.size)
    done = iter(map_segments(engine, recover_segments, items, sizes, name="recover segments"))
    return [list(itertools.islice(done, sum(mend.from_log for mend in mends))) for _, mends in wanted]


def _exchange(
    engine: Engine,
    each: DiagnosedPartition,
    mends: Sequence[Mend],
    segments: Sequence[RecoveredSegment],
    home: str,
    backup: str,
) -> Exchange:
    """Which files change their places in one partition."""
    place = [
        (path, index_path(segment.files, ending), segment.files.log)
        for segment in segments
        for ending, path in segment.paths.items()
    ]
    aborted = [mend for mend in mends if mend.transactions]
    if aborted:
        written = (home, tuple((mend.files.base_offset, mend.transactions) for mend in aborted))
        paths = one(engine, write_transactions, written, "write transactions")
        place += [
            (path, index_path(mend.files, INDEXES[2]), mend.files.log)
            for path, mend in zip(paths, aborted, strict=True)
        ]
    gone = [mend for mend in mends if INDEXES[2] in mend.endings and not mend.transactions]
    return Exchange(
        partition=each.partition.path,
        backup=os.path.join(each.partition.path, backup),
        place=tuple(place),
        remove=tuple(index_path(mend.files, INDEXES[2]) for mend in gone),
    )


def _told(report: RepairReport, segments: Sequence[RecoveredSegment]) -> None:
    report.entries += sum(segment.entries for segment in segments)
    report.fsync_seconds += sum(segment.fsync_seconds for segment in segments)
    known = set(report.findings)
    report.findings += [finding for segment in segments for finding in segment.findings if finding not in known]


def _after_repair(finding: Finding, mended: set[str]) -> Finding:
    """What was written anew is told, but is no error any more."""
    if finding.severity == "info" or finding.path not in mended:
        return finding
    return replace(finding, severity="info", hint="repaired")
