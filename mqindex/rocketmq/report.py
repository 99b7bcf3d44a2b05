"""Report: the health of a store, made in the pass that `verify` makes."""

from __future__ import annotations

import os
import time
from collections.abc import Set
from typing import Unpack

import mqindex
from mqindex._options import with_options_of
from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.health import Read, Site, machine_of
from mqindex.rocketmq.checks.store_diagnosis import StoreDiagnosis
from mqindex.rocketmq.health.coverage import coverage_of
from mqindex.rocketmq.health.groups import groups_of
from mqindex.rocketmq.health.index import frequent_keys, index_of
from mqindex.rocketmq.health.samples import Wanted, name_samples
from mqindex.rocketmq.health.store_health import StoreHealth
from mqindex.rocketmq.health.topics import gather, topics_of
from mqindex.rocketmq.log.log_entries import NO_TAGS
from mqindex.rocketmq.options import StoreArguments, store_options
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.settings import BROKER_NAME
from mqindex.rocketmq.verify import examine


@with_options_of(store_options)
def report(
    store: str | os.PathLike[str],
    *,
    deep: bool = False,
    show_keys: bool = False,
    engine: Engine | None = None,
    **given: Unpack[StoreArguments],
) -> StoreHealth:
    """How a store is: all that `verify` finds, and what fills it, counted in the same pass over the log.

    Coverage of the log by index and queues, the index files' shapes, topics and queues over time, groups and their
    lag. Nothing is written. In logs of more than 64 MiB times, sizes, tags and keys are those of a sample, one message
    in 64 or more, and samples are marked as such. Messages and bytes of topics and queues are exact.

    Parameters
    ----------
    store : path of a store's root, as for `verify`; also of one that a broker is writing.
    deep : also compare every body with its checksum, and every index entry with the log.
    show_keys : name the most frequent keys, which may be of customers; else only their hashes.
    config, commitlog, hash_slot_num, index_num, broker_version, storage_options : store options, as for `verify`.
    engine : where the stages run; None: `LocalEngine()`.

    Returns
    -------
    StoreHealth
        `verify` is the `Report`; `to_dict()` gives all of it for JSON. Text of the store (names, keys, tags) is cut,
        with its length, but not escaped.

    Raises
    ------
    FileNotFoundError : there is no such directory
    GeometryError : files and options disagree

    Notes
    -----
    Source of names and rules: as for `verify`; kinds of topics: RocketMQ 4.9.3 `TopicValidator`, `MixAll`.

    Examples
    --------
    >>> health = report("store")
    >>> health.verify.ok, health.coverage.missing_entries
    (False, 1258)
    >>> [(topic.name.text, topic.messages) for topic in health.topics.topics][0]
    ('LostTopic', 610)
    """
    started, made_at = time.perf_counter(), time.time_ns() // 1_000_000
    examined = examine(store, deep=deep, engine=engine, given=given, count=True)
    engine, found, diagnosis = examined.engine, examined.survey, examined.diagnosis
    coverage = index = topics = None
    if diagnosis is not None:
        rocksdb = found.queues.rocksdb is not None
        counts = [run.counts for run in diagnosis.walked.runs if run.counts is not None]
        gathered = gather(counts)
        places = {place for _, _, place in frequent_keys(counts)}.union(gathered.tag_places)
        wanted = Wanted(diagnosis.walked.survey.spans, tuple(sorted(places)), found.tags != NO_TAGS)
        named = run_one(engine, name_samples, wanted, "read names")
        left_out = found.queues.batch_topics | diagnosis.queues.deleted
        coverage = coverage_of(examined.report, diagnosis, left_out=left_out, rocksdb=rocksdb)
        index, topics = index_of(diagnosis, counts, named, show_keys=show_keys), topics_of(gathered, named)
    sampled = [one.sampled for one in (topics, index) if one is not None]
    sampled += [one.sampled for one in (index.files[-1:] if index else ())]
    return StoreHealth(
        verify=examined.report,
        site=Site.of(
            run_one(engine, machine_of, found.options.commitlog[0], "look at the disk"),
            found.options.given(BROKER_NAME) or None,
            coverage.newest if coverage else None,
            coverage.bytes_per_day if coverage else None,
            made_at,
        ),
        coverage=coverage,
        index=index,
        topics=topics,
        groups=groups_of(engine, found.options, _ends(diagnosis, found.queues.batch_topics)),
        read=Read(
            version=mqindex.__version__,
            deep=deep,
            made_at=made_at,
            bytes=examined.report.bytes,
            seconds=time.perf_counter() - started,
            sampled=tuple(sampled),
        ),
    )


def _ends(diagnosis: StoreDiagnosis | None, batch_topics: Set[str]) -> dict[QueueName, int]:
    """Where each simple queue ends: by its files, or, where it has none, by the log."""
    if diagnosis is None:
        return {}
    queues = (one for run in diagnosis.walked.runs for one in run.queues)
    ends = {(one.topic, one.queue_id): one.next for one in queues if one.next >= 0 and one.topic not in batch_topics}
    return {**ends, **{(one.topic, one.queue_id): one.max_offset for one in diagnosis.queues.queues}}
