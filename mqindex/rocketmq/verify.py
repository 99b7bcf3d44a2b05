"""Verify: do the index and the consume queues of a store say what its commit log says? Nothing is written."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Unpack

from mqindex._options import with_options_of
from mqindex.engines import Engine
from mqindex.engines.engine import chosen_engine
from mqindex.engines.tasks import require_seen, run_one
from mqindex.files.paths import one_look
from mqindex.files.places.place import Place
from mqindex.report import Finding, Report
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.index_cover import index_covers, versions_of
from mqindex.rocketmq.checks.side_check import SideCheck, check_sides
from mqindex.rocketmq.checks.sidecar_check import check_sidecar, sidecars_to_check
from mqindex.rocketmq.checks.start.start_check import check_start
from mqindex.rocketmq.checks.store_diagnosis import StoreDiagnosis, diagnose_store, of_the_log_as_read
from mqindex.rocketmq.checks.wanted_settings import wanted_settings
from mqindex.rocketmq.directories import store as stores
from mqindex.rocketmq.mending.index_repair import planned_actions
from mqindex.rocketmq.mending.queue_repair import planned_queue_actions
from mqindex.rocketmq.options import StoreArguments, StoreOptions, store_options
from mqindex.rocketmq.pipeline.splits import split_size_for
from mqindex.rocketmq.pipeline.survey import Survey, start_report, survey_in_place
from mqindex.rocketmq.tally.split_tally import sampling
from mqindex.rocketmq.tally.split_zones import keep_zones
from mqindex.zones.cache import Cache, ZoneCache
from mqindex.zones.index_cover import keep_cover


@with_options_of(store_options)
def verify(
    store: str | os.PathLike[str],
    *,
    deep: bool = False,
    cache: Cache = None,
    engine: Engine | None = None,
    **given: Unpack[StoreArguments],
) -> Report:
    """Check a whole store: its log, its index, its consume queues, and the small files beside them.

    The log is read once, from end to end: frames follow each other, name their own places, and between the files
    nothing is missing. Every unit of every queue is compared with it, in both directions. Each index file: length,
    header, slots, chains, and up to 100 entries at both ends hashed again from the log; whatever no file covers is
    counted. `deep` also compares every body with its checksum and every index entry with the log. Of a result in an
    object store, lengths are always compared with its list, mqindex.json, and by `deep` checksums too. On the way it
    learns which times and topics are where in the log, and by `deep` of which of its files the index lacks nothing; it
    keeps that in `cache` for later scans.

    Parameters
    ----------
    store : path of a store's root; also of one that a broker is writing. Or its URL: no lock, owner, link or hole of a
        file is looked at then, which a finding says.
    deep : also compare every body with its checksum, and every index entry with the log.
    cache : where zone maps of the log's files are kept, as of `scan`; False: nowhere.
    config, commitlog, hash_slot_num, index_num, broker_version, storage_options : store options, as for `rebuild`.
    engine : where the stages run; None: `LocalEngine()`.

    Returns
    -------
    Report
        `ok` is False when a finding is an error; `actions` say what `repair` would do. `files`, `entries`: of the
        index; `units`: of the queues; `messages`: of the log.

    Raises
    ------
    FileNotFoundError : there is no such directory
    GeometryError : files and options disagree

    Notes
    -----
    In the last file of the log, and in those that a broker reads again when it starts, bodies are always compared: at
    a bad one it cuts the log.
    Source of the rules: RocketMQ 4.9.3 `IndexFile`, `IndexService`, `ConsumeQueue`, `MappedFileQueue`,
    `StoreCheckpoint`, `CommitLog.checkMessageAndReturnSize`.

    Examples
    --------
    >>> report = verify("store")
    >>> report.ok, [finding.kind for finding in report.findings]
    (False, ['missing-entries'])
    """
    return examine(store, deep=deep, engine=engine, given=given, cache=cache).report


@dataclass(frozen=True, slots=True)
class Examined:
    """A report and what it was made from. `diagnosis` None: the log is gone, nothing was compared with it.

    `engine`: whose machines see the store.
    """

    engine: Engine
    report: Report
    survey: Survey
    diagnosis: StoreDiagnosis | None = None
    every: int | None = None


def examine(
    store: str | os.PathLike[str],
    *,
    deep: bool,
    engine: Engine | None,
    given: StoreArguments,
    count: bool = False,
    cache: Cache = False,
) -> Examined:
    """All of `verify`; `count`: topics, keys and shapes of index files too, for a health report."""
    started = time.perf_counter()
    engine = chosen_engine(engine)
    options = store_options(store, **given)
    kept = ZoneCache.of(cache, lambda: stores.homes_of(options.root, options.commitlog))
    engine = require_seen(engine, stores.directories_of(options.root, options.commitlog))
    with one_look(options.root, *options.commitlog):
        examined = _examine(engine, options, kept, deep=deep, count=count)
        if deep and isinstance(options.root, Place):
            _compare_checksums(engine, options.root, examined.report)
    examined.report.seconds = time.perf_counter() - started
    return examined


def _compare_checksums(engine: Engine, root: str, report: Report) -> None:
    from mqindex.engines.results import changed_files  # here: files of this machine need none of it

    for file, got in changed_files(engine, root):
        report.findings.append(catalogue.RESULT_CHANGED.finding(file.path, expected=file.checksum, got=got))


def _examine(engine: Engine, options: StoreOptions, cache: ZoneCache, *, deep: bool, count: bool) -> Examined:
    found = run_one(engine, _look, options, "look at the files")
    report = start_report(Report(options.root), found)
    report.files = len(found.index_files)
    if found.log_gone is not None:
        report.start, findings = run_one(engine, check_start, found, "look at the start")
        report.findings += [*_not_asked(found), found.log_gone, *findings, *_sidecar_findings(engine, found)]
        return Examined(engine, report, found)
    every = sampling(found.log_bytes) if count else None
    size = split_size_for(found.log_bytes)
    versions = (
        run_one(engine, versions_of, found.index_files, "look at the index files") if cache.keeps and deep else {}
    )
    diagnosis = diagnose_store(engine, found, deep=deep, split_size=size, every=every, zones=cache.keeps)
    walked = diagnosis.walked
    kept = keep_zones(cache, (run.zones for run in walked.runs), behind=walked.behind is not None)
    if deep:
        for cover in index_covers(diagnosis.index, versions, kept):
            keep_cover(cache, cover)
    report.settings["broker_version"] = diagnosis.walked.survey.version.reported
    report.findings = findings_of(engine, diagnosis)
    report.actions = planned_actions(diagnosis.index) + planned_queue_actions(diagnosis.queues)
    report.start = diagnosis.index.start
    report.entries = sum(one_file.entries for one_file in diagnosis.index.good)
    report.units = sum(one.units for one in (*diagnosis.queues.queues, *diagnosis.queues.batch_queues))
    report.messages = diagnosis.queues.messages
    report.bytes = diagnosis.index.survey.log_bytes
    return Examined(engine, report, found, diagnosis, every)


def _look(options: StoreOptions) -> Survey:
    return survey_in_place(options)


def findings_of(engine: Engine, diagnosis: StoreDiagnosis) -> list[Finding]:
    """All that is said of a store, the same by `verify` and by `repair`."""
    sides = run_one(engine, check_sides, _sides(diagnosis), "check side files")
    sides += _sidecar_findings(engine, diagnosis.index.survey)
    unknown = [one.finding() for one in wanted_settings(engine, diagnosis.index, diagnosis.queues)]
    listed = list(dict.fromkeys([*diagnosis.index.findings, *diagnosis.queues.findings, *sides, *unknown]))
    return _not_asked(diagnosis.index.survey) + of_the_log_as_read(engine, diagnosis.walked, listed)


def _not_asked(found: Survey) -> list[Finding]:
    """That a part of the store is elsewhere, where some things are not known."""
    places = [one for one in (found.options.root, *found.options.commitlog) if isinstance(one, Place)]
    return [catalogue.ELSEWHERE.finding(one) for one in places[:1]]


def _sidecar_findings(engine: Engine, found: Survey) -> list[Finding]:
    tasks = sidecars_to_check(found.options.index, found.index_files, found.geometry.value)
    return [one for some in engine.map(check_sidecar, tasks, name="check fences and the key filter") for one in some]


def _sides(diagnosis: StoreDiagnosis) -> SideCheck:
    found, queues = diagnosis.index.survey, diagnosis.queues
    missing = {topic for topic, _ in queues.missing}
    return SideCheck(
        options=found.options,
        queues={(one.topic, one.queue_id): (one.min_offset, one.max_offset) for one in queues.queues},
        unsure=None if found.queues.rocksdb else found.queues.batch_topics | queues.deleted | missing,
        end=found.spans[-1].stop if found.spans else 0,
        max_timestamp=queues.max_timestamp,
        unclean=found.unclean,
    )
