"""Verify: do the indexes of a partition's segments say what its log says? Nothing is written."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

from mqindex._options import with_options_of
from mqindex.engines import Engine
from mqindex.engines.engine import chosen_engine
from mqindex.engines.tasks import require_seen, run_one
from mqindex.errors import BadMagicError
from mqindex.files import disk, lock
from mqindex.files.paths import absolute, one_look, real_path
from mqindex.files.places.place import Place, given_path
from mqindex.kafka import catalogue
from mqindex.kafka.checks.diagnosis import Diagnosis, count_checked, diagnose
from mqindex.kafka.checks.repair_plan import planned_actions
from mqindex.kafka.checks.single_file import diagnose_file, survey_file
from mqindex.kafka.checks.start.start_check import StartFiles, look_at_duplicates
from mqindex.kafka.checks.start.start_verdict import verdict
from mqindex.kafka.directories.log_dir import homes_of
from mqindex.kafka.directories.survey import Order, Survey, start_report, survey
from mqindex.kafka.kinds import PartitionDirectory, above_in_result, partition_name
from mqindex.kafka.options import PartitionArguments, partition_options
from mqindex.report import Report
from mqindex.zones.cache import Cache, ZoneCache


@with_options_of(partition_options)
def verify(
    directory: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    deep: bool = False,
    cache: Cache = None,
    engine: Engine | None = None,
    **given: Unpack[PartitionArguments],
) -> Report:
    """Check the indexes of a partition, of every partition of a log dir, or of one segment against the log, in both
    directions.

    An index is in error where a look-up that it leads could give a wrong answer, a search by time begin in the wrong
    segment, retention go by a wrong time, or an aborted record reach a consumer. Indexes that are merely not what a
    rebuild writes are an info: followers, the cleaner, older brokers and other settings write others.

    Parameters
    ----------
    directory : path or URL of a partition or of a log dir; also of one that a broker is writing. Or of one file: a
        `.log`, with the indexes beside it, or an index, against the log beside it (by itself where there is none). What
        is open before a segment is in its snapshot; without one, earlier segments are read for a `.log` and a
        `.txnindex`. Or several log dirs of one broker: one report of all, with what no broker allows between them.
        Of files elsewhere locks, owners, links and holes are not known: an info says so.
    deep : also read every record: whether its batch can be decompressed, and has the greatest timestamp that it says;
        and compare the files of a result in an object store with the checksums of its list, mqindex.json.
        On the way it learns which times are where in the logs, which it keeps in `cache` for later scans.
    cache : where zone maps of the logs are kept, as of `scan`; False: nowhere. They come with `deep`: without it none
        is made.
    kafka_version, index_interval_bytes, max_index_size, storage_options : partition options, as for `rebuild`. Settings
        that are not the topic's make no error.
    check_crc : False: batches with a wrong checksum count as good, and only headers are read.
    engine : where the stages run; None: `LocalEngine()`.

    Returns
    -------
    Report
        `ok` is False when a finding is an error; `actions` say what `repair` would do, `start` what a broker's next
        start would do (None for one file). `files`, `entries`: of the
        indexes; `segments`, `batches`, `bytes`: of the logs.

    Raises
    ------
    BadMagicError : neither a partition nor a log dir, nor a file of a segment; of several one that is no log dir.

    Notes
    -----
    Source of the rules: Kafka 4.1.0 `LogSegment.recover`, `OffsetIndex`, `TimeIndex`, `TransactionIndex`, `LogLoader`,
    `ProducerStateManager`.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/orders-0"
    >>> os.mkdir(path)
    >>> with open(path + "/00000000000000000007.log", "xb") as file:  # one message of magic 1
    ...     file.write(bytes.fromhex("00000000000000070000001839268c3301000000018bcfe56800000000016b0000000176"))
    36
    >>> for finding in verify(path).findings:
    ...     finding.severity, finding.kind, finding.expected
    ('info', 'offset-index-missing', '0 entries')
    ('error', 'time-index-missing', '1 entry')
    >>> verify(path + "/00000000000000000007.log").ok
    False
    """
    options = given.get("storage_options")
    if isinstance(directory, (str, os.PathLike)) or not isinstance(directory, Sequence):
        roots = [given_path("directory", directory, options)]
    else:
        roots = list(dict.fromkeys(real_path(given_path("directory", each, options)) for each in directory))
    if not roots:
        raise ValueError("directory: expected a path, or log dirs of one broker, got none")
    kept = ZoneCache.of(cache, lambda: [home for root in roots for home in homes_of(root)])
    return _of_broker([examine(root, deep=deep, engine=engine, given=given, cache=kept) for root in roots])


@dataclass(frozen=True, slots=True)
class Examined:
    """A report, and what it was made from. `engine`: whose machines see the directory."""

    engine: Engine
    report: Report
    survey: Survey
    diagnosis: Diagnosis


def examine(
    directory: str | os.PathLike[str],
    *,
    deep: bool,
    engine: Engine | None,
    given: PartitionArguments,
    count: bool = False,
    cache: ZoneCache | None = None,
) -> Examined:
    """All of `verify`; `count`: what the logs consist of too, for a health report."""
    started = time.perf_counter()
    engine = chosen_engine(engine)
    options = partition_options(**given)
    root = absolute(given_path("directory", directory, given.get("storage_options")))
    engine = require_seen(engine, [root])
    zones = deep and cache is not None and cache.keeps
    with one_look(root):
        examined = _examine(engine, Order(root, options), deep=deep, zones=zones, count=count)
        if deep and isinstance(root, Place):
            _compare_checksums(engine, root, examined.report)
    if cache is not None:
        for segment in examined.diagnosis.segments():
            cache.store(segment.zones)
    examined.report.seconds = time.perf_counter() - started
    return examined


def _compare_checksums(engine: Engine, root: str, report: Report) -> None:
    from mqindex.engines.results import changed_files  # here: files of this machine need none of it

    for file, got in changed_files(engine, root, *above_in_result(root)):
        report.findings.append(catalogue.RESULT_CHANGED.finding(file.path, expected=file.checksum, got=got))


def _examine(engine: Engine, order: Order, *, deep: bool, zones: bool, count: bool) -> Examined:
    root = order.directory
    found = run_one(engine, _survey, order, "look at the files")
    report = start_report(Report(root), found)
    check = diagnose if found.file is None else diagnose_file
    diagnosis = check(engine, found, deep=deep, zones=zones, count=count)
    not_asked = [catalogue.ELSEWHERE.finding(root)] if isinstance(root, Place) else []
    report.findings = [*not_asked, *diagnosis.findings()]
    report.actions = planned_actions(diagnosis)
    if found.file is None:
        report.start, more = verdict(engine, diagnosis)
        report.findings += more
    count_checked(report, diagnosis)
    return Examined(engine, report, found, diagnosis)


def _of_broker(examined: Sequence[Examined]) -> Report:
    """One report of several log dirs, and of partitions that are in two of them."""
    if len(examined) == 1:
        return examined[0].report
    whole = Report(os.path.commonpath([one.survey.root for one in examined]), settings=examined[0].report.settings)
    across = StartFiles(lock.Holder("absent"), None)
    look_at_duplicates([each for one in examined for each in _partitions(one.survey)], across)
    starts = [one.report.start for one in examined if one.report.start is not None]
    for one in examined:
        for name in _SUMMED:
            setattr(whole, name, getattr(whole, name) + getattr(one.report, name))
    whole.findings += [each for each in across.findings if each not in whole.findings]
    obstacles = tuple(dict.fromkeys([each for one in starts for each in one.obstacles] + across.obstacles))
    verdicts = {*(one.starts for one in starts), *([False] if across.obstacles else [])}
    whole.start = replace(
        max(starts, key=lambda one: one.lock == "held"),
        starts=False if False in verdicts else None if None in verdicts else True,
        obstacles=obstacles,
        deletes=tuple(each for one in starts for each in one.deletes),
        recovers=sum(one.recovers for one in starts),
        cuts=tuple(each for one in starts for each in one.cuts),
    )
    return whole


_SUMMED = ("findings", "actions", "files", "entries", "segments", "batches", "bytes", "seconds")


def _partitions(found: Survey) -> Iterator[PartitionDirectory]:
    if found.single or found.file is not None:
        what = "a partition" if found.file is None else "a file"
        raise BadMagicError("not a log dir", path=found.root, expected="log dirs, where several are given", got=what)
    yield from filter(None, (partition_name(each.path) for each in found.partitions))


def _survey(order: Order) -> Survey:
    return survey_file(order) if disk.is_file(order.directory) else survey(order)
