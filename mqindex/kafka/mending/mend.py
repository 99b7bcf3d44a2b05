"""What a repair plans, done: new files are built in a scratch of each partition, then all change their places."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace

from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.engines.tasks import announce, run_one, scratches_in
from mqindex.files import staging
from mqindex.files.backup import backup_in
from mqindex.files.exchange import Change, Exchange, exchange_files
from mqindex.kafka.checks.diagnosis import DiagnosedPartition, Diagnosis, map_segments
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.mending.repair_plan import Mend, planned_mends
from mqindex.kafka.options import PartitionOptions
from mqindex.kafka.stages import RecoveredSegment, SegmentRecovery, needed_space, recover_segments, write_transactions
from mqindex.report import Finding, RepairReport

__all__ = ["mend"]

_AT_ONCE = 100  # partitions whose scratch is held at a time

Wanted = Sequence[tuple[DiagnosedPartition, list[Mend]]]
Place = list[tuple[str, str, str]]


def mend(engine: Engine, diagnosis: Diagnosis, report: RepairReport) -> None:
    """Write what is wrong anew, and tell the report."""
    wanted = [(each, mends) for each in diagnosis.partitions if (mends := planned_mends(each))]
    if wanted:
        _mend_all(engine, diagnosis, wanted, report)
    run_one(engine, _sweep, tuple(partition.path for partition in diagnosis.survey.partitions), "clean")


def _mend_all(engine: Engine, diagnosis: Diagnosis, wanted: Wanted, report: RepairReport) -> None:
    options = diagnosis.survey.options
    needed = [(each.partition.path, needed_space(options, [mend.size for mend in mends])) for each, mends in wanted]
    name = run_one(engine, _prepare, tuple(needed), "check")
    files = sum(len(planned.kinds) for _, mends in wanted for planned in mends)
    announce(engine, f"writes {plural(files, 'index file')}")
    mended: set[str] = set()
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        with scratches_in(engine, [each.partition.path for each, _ in some]) as homes:
            recovered = _recover(engine, options, some, homes, report)
            transactions = _write_transactions(engine, some, homes)
            places = [first + second for first, second in zip(recovered, transactions, strict=True)]
            exchanges = [_exchange(each, mends, place, name) for (each, mends), place in zip(some, places, strict=True)]
            placed = engine.map(exchange_files, exchanges, name="exchange files")
        report.out_files += [path for paths in placed for path in paths]
        mended |= {os.path.join(each.root, change.name) for each in exchanges for change in each.changes}
        if mended:
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
    return backup_in([path for path, _ in needed])


def _recover(
    engine: Engine, options: PartitionOptions, wanted: Wanted, homes: Sequence[str], report: RepairReport
) -> list[Place]:
    """New offset and time indexes of all partitions together: files, where they go, and the segments' logs."""
    items, sizes = [], []
    for (each, mends), home in zip(wanted, homes, strict=True):
        for planned in mends:
            if planned.from_log:
                last = planned.files == each.partition.segments[-1]
                items.append(SegmentRecovery(planned.files, options, home, last, planned.kinds))
                sizes.append(planned.size)
    recovered = map_segments(engine, recover_segments, items, sizes, name="recover segments")
    _tell(report, recovered)
    done = iter(recovered)
    return [
        [
            (path, segment.files.place_of(kind), segment.files.log)
            for segment in itertools.islice(done, sum(planned.from_log for planned in mends))
            for kind, path in segment.paths.items()
        ]
        for _, mends in wanted
    ]


def _write_transactions(engine: Engine, wanted: Wanted, homes: Sequence[str]) -> list[Place]:
    """New transaction indexes, alike."""
    planned = [[each for each in mends if each.transactions] for _, mends in wanted]
    items = [
        (home, tuple((each.files.base_offset, each.transactions) for each in some))
        for home, some in zip(homes, planned, strict=True)
        if some
    ]
    written = iter(engine.map(write_transactions, items, name="write transactions") if items else [])
    return [
        [
            (path, each.files.place_of(IndexKind.TRANSACTION), each.files.log)
            for path, each in zip(next(written) if some else [], some, strict=True)
        ]
        for some in planned
    ]


def _exchange(each: DiagnosedPartition, mends: Sequence[Mend], place: Place, backup: str) -> Exchange:
    """Which files change their places in one partition."""
    gone = [planned for planned in mends if IndexKind.TRANSACTION in planned.kinds and not planned.transactions]
    changes = [Change(os.path.basename(target), path, log) for path, target, log in place]
    changes += [Change(os.path.basename(planned.files.place_of(IndexKind.TRANSACTION))) for planned in gone]
    home = each.partition.path
    return Exchange(home, os.path.join(home, backup), tuple(changes))


def _tell(report: RepairReport, segments: Sequence[RecoveredSegment]) -> None:
    report.entries += sum(segment.entries for segment in segments)
    report.fsync_seconds += sum(segment.fsync_seconds for segment in segments)
    known = set(report.findings)
    report.findings += [finding for segment in segments for finding in segment.findings if finding not in known]


def _after_repair(finding: Finding, mended: set[str]) -> Finding:
    """What was written anew is told, but is no error any more."""
    if finding.severity == "info" or finding.path not in mended:
        return finding
    return replace(finding, severity="info", hint="repaired")
