"""Report: the health of a log dir or a partition, made in the pass that `verify` makes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Unpack

import mqindex
from mqindex._options import with_options_of
from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.health import Read, Share, Site, a_day, machine_of
from mqindex.kafka.checks.diagnosis import Diagnosis
from mqindex.kafka.checks.segment_count import DETAILED
from mqindex.kafka.checks.start.start_ids import broker_name
from mqindex.kafka.directories.survey import Survey
from mqindex.kafka.health.log_dir_health import LogDirHealth
from mqindex.kafka.health.partition_health import CodecShare, PartitionHealth, Totals
from mqindex.kafka.health.partitions import codecs_of, known_offsets, partition_of, sum_of, totals_of
from mqindex.kafka.options import PartitionArguments, partition_options
from mqindex.kafka.verify import examine


@with_options_of(partition_options)
def report(
    directory: str | os.PathLike[str],
    *,
    deep: bool = False,
    engine: Engine | None = None,
    **given: Unpack[PartitionArguments],
) -> LogDirHealth:
    """How a log dir, a partition or a segment is: all that `verify` finds, and what the logs consist of.

    Bytes, batches and records, codecs, sizes of batches, how dense the indexes are, time against offset, transactions,
    leader epochs, producers: counted in the one pass over the logs that `verify` makes, of every batch. How well
    records are compressed is known from a sample of batches, which are decompressed. Nothing is written.

    Parameters
    ----------
    directory : path as for `verify`: of a log dir, a partition or one file of a segment.
    deep : also read every record, as in `verify`; the sample of batches is larger then.
    kafka_version, index_interval_bytes, max_index_size, check_crc : partition options, as for `verify`.
    engine : where the stages run; None: `LocalEngine()`.

    Returns
    -------
    LogDirHealth
        `verify` is the `Report`; `to_dict()` gives all of it for JSON. The 100 largest partitions come one by one, the
        others as sums. Names are cut, with their length, but not escaped.

    Raises
    ------
    BadMagicError : neither a partition nor a log dir, nor a file of a segment.

    Notes
    -----
    Source of the rules: as for `verify`; retention by time: Kafka 4.1.0 `LogSegment.largestTimestamp`.

    Examples
    --------
    >>> health = report("orders-0", index_interval_bytes=1000)
    >>> health.verify.ok, health.totals.records, health.partitions[0].time_indexes_lost
    (False, 1048, 3)
    >>> [(codec.codec, codec.batches) for codec in health.codecs]
    [('none', 160)]
    """
    started, made_at = time.perf_counter(), time.time_ns() // 1_000_000
    examined = examine(directory, deep=deep, engine=engine, given=given, count=True)
    engine, found, diagnosis = examined.engine, examined.survey, examined.diagnosis
    offsets = run_one(engine, known_offsets, found.log_dir, "read the checkpoints")
    broker = run_one(engine, broker_name, found.log_dir, "read meta.properties")
    ordered = sorted(diagnosis.partitions, key=lambda one: -one.partition.bytes)
    codecs = codecs_of([one.counted for one in diagnosis.segments() if one.counted is not None])
    partitions = tuple(partition_of(one, offsets) for one in ordered[:DETAILED])
    totals = sum_of([Totals(), *map(totals_of, ordered)])
    return LogDirHealth(
        verify=examined.report,
        site=Site.of(
            run_one(engine, machine_of, found.log_dir, "look at the disk"),
            broker,
            max((one.max_timestamp for one in partitions if one.max_timestamp is not None), default=None),
            _growth(partitions),
            made_at,
        ),
        kind=_kind(found),
        totals=totals,
        codecs=codecs,
        partitions=partitions,
        others=sum_of([Totals(), *map(totals_of, ordered[DETAILED:])]),
        read=Read(
            version=mqindex.__version__,
            deep=deep,
            made_at=made_at,
            bytes=examined.report.bytes,
            seconds=time.perf_counter() - started,
            sampled=_shares(diagnosis, codecs, totals),
        ),
    )


def _growth(partitions: Sequence[PartitionHealth]) -> int | None:
    """Bytes a day of the partitions whose records span a day; each keeps its records for a time of its own."""
    each = (a_day(one.totals.bytes, one.min_timestamp, one.max_timestamp) for one in partitions)
    known = [growth for growth in each if growth is not None]
    return sum(known) if known else None


def _kind(found: Survey) -> str:
    return "file" if found.file is not None else "partition" if found.single else "log dir"


def _shares(diagnosis: Diagnosis, codecs: Sequence[CodecShare], totals: Totals) -> tuple[Share, ...]:
    compressed = [one for one in codecs if one.codec != "none"]
    sampled, batches = sum(one.sampled for one in compressed), sum(one.batches for one in compressed)
    detailed = min(DETAILED, len(diagnosis.partitions))
    return (
        Share("counts", "batches", totals.batches, totals.batches),
        Share("compression ratios", "compressed batches", sampled, batches),
        Share("details", "partitions", detailed, len(diagnosis.partitions)),
    )
