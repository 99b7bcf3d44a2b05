"""A planned repair, done: new files are built in a scratch of each partition, then all are exchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.engines.tasks import announce, half_done, run_one, scratches_in
from mqindex.files import disk
from mqindex.files.backups.backup import backup_in
from mqindex.files.backups.exchange import Change, Exchange, exchange_files, old_or_new
from mqindex.files.paths import base_name, join, status_of
from mqindex.files.results import staging
from mqindex.kafka.building import recover_partitions, write_transaction_indexes
from mqindex.kafka.checks.diagnosis import DiagnosedPartition, Diagnosis
from mqindex.kafka.checks.repair_plan import SegmentRepair, planned_repairs
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.segment_files import SegmentFiles
from mqindex.kafka.stages import RecoveredSegment, SegmentRecovery, needed_space
from mqindex.report import RepairReport

_AT_ONCE = 100  # partitions whose scratch is held at a time

Planned = Sequence[tuple[DiagnosedPartition, list[SegmentRepair]]]


def repair_indexes(engine: Engine, diagnosis: Diagnosis, report: RepairReport) -> None:
    """Write anew what is wrong, and add to the report what was done."""
    planned = [(one, repairs) for one in diagnosis.partitions if (repairs := planned_repairs(one))]
    with half_done(lambda: old_or_new(report.backup) if report.backup else None):
        if planned:
            _repair_all(engine, diagnosis, planned, report)
        run_one(engine, _sweep, tuple(partition.path for partition in diagnosis.survey.partitions), "clean up")


def _repair_all(engine: Engine, diagnosis: Diagnosis, planned: Planned, report: RepairReport) -> None:
    needed = [
        (one.partition.path, needed_space(one.partition.options, [each.size for each in repairs]))
        for one, repairs in planned
    ]
    backup = run_one(engine, _prepare, tuple(needed), "prepare the backup")
    files = sum(len(each.kinds - each.removed) for _, repairs in planned for each in repairs)
    announce(engine, f"writes {plural(files, 'index file')}")
    for start in range(0, len(planned), _AT_ONCE):
        some = planned[start : start + _AT_ONCE]
        with scratches_in(engine, [one.partition.path for one, _ in some]) as (seeing, scratches):
            exchanges = _build(seeing, some, scratches, backup, report)
            if any(each.changes for each in exchanges):
                report.backup = join(report.path, *([] if diagnosis.survey.single else ["*"]), backup)
            placed = seeing.map(exchange_files, exchanges, name="put files in place")
        report.out_files += [path for paths in placed for path in paths]
    report.files = len(report.out_files)


def _sweep(partitions: tuple[str, ...]) -> None:
    """Remove what a killed run left, also where nothing is left to repair."""
    for path in partitions:
        staging.sweep(path)


def _prepare(needed: tuple[tuple[str, int], ...]) -> str:
    """Check that each file system has room for all its partitions; returns an unused name for their backups."""
    devices: dict[int, tuple[str, int]] = {}
    for path, size in needed:
        device = status_of(path).st_dev
        devices[device] = path, size + devices.get(device, (path, 0))[1]
    for path, size in devices.values():
        disk.check_space(path, size)
    return backup_in([path for path, _ in needed])


def _build(
    engine: Engine, planned: Planned, scratches: Sequence[str], backup: str, report: RepairReport
) -> list[Exchange]:
    """Build the new files of some partitions, each in its own scratch; what to exchange in each."""
    homes = list(zip(planned, scratches, strict=True))
    recoveries = [
        [
            SegmentRecovery(
                each.files, each.size, one.partition.options, scratch, one.partition.is_last(each.files), each.from_log
            )
            for each in repairs
            if each.from_log
        ]
        for (one, repairs), scratch in homes
    ]
    recovered = recover_partitions(engine, recoveries)
    report.entries += sum(segment.entries for partition in recovered for segment in partition)
    report.fsync_seconds += sum(segment.fsync_seconds for partition in recovered for segment in partition)
    contents = [
        (scratch, tuple((each.files.base_offset, each.transactions) for each in repairs if each.transactions))
        for (_, repairs), scratch in homes
    ]
    aborted = write_transaction_indexes(engine, contents)
    return [
        _exchange(one.partition.path, repairs, segments, paths, backup)
        for (one, repairs), segments, paths in zip(planned, recovered, aborted, strict=True)
    ]


def _exchange(
    home: str,
    repairs: Sequence[SegmentRepair],
    recovered: Sequence[RecoveredSegment],
    aborted: Mapping[int, str],
    backup: str,
) -> Exchange:
    """Which files are exchanged in one partition."""
    changes = [_change(segment.files, kind, path) for segment in recovered for kind, path in segment.paths.items()]
    changes += [
        _change(each.files, IndexKind.TRANSACTION, aborted.get(each.files.base_offset))
        for each in repairs
        if IndexKind.TRANSACTION in each.kinds
    ]
    changes += [_change(each.files, kind, None) for each in repairs for kind in each.removed]
    return Exchange(home, join(home, backup), tuple(changes))


def _change(files: SegmentFiles, kind: IndexKind, source: str | None) -> Change:
    """One that is new takes owner and mode of its segment's log."""
    place = files.place_of(kind)
    return Change(base_name(place), source, None if disk.is_file(place) else files.log)
