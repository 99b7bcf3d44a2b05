"""The offset of every partition of a log dir at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mqindex._native.numbers import milliseconds
from mqindex.columns.columns import Columns, StringColumn
from mqindex.columns.limits import several_names
from mqindex.columns.numbers import Time
from mqindex.errors import BadMagicError
from mqindex.files.paths import absolute, parent_of
from mqindex.files.places.place import given_path
from mqindex.kafka.directories.log_dir import partitions_of
from mqindex.kafka.directories.offset_checkpoint import log_start_offsets
from mqindex.kafka.partition.partition_log import PartitionLog


def offsets_for_time(
    directory: str | os.PathLike[str],
    ms: Time,
    *,
    topics: Iterable[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Columns:
    """The offset of every partition at a time, as `kafka-consumer-groups --reset-offsets --to-datetime` takes it.

    Parameters
    ----------
    directory : path or URL of a log dir, or of one partition
    ms : ms since the epoch, an aware datetime or a datetime64; -1, -2, -3 as `PartitionLog.offset_for_timestamp`
    topics : names; None: all
    storage_options : dict, optional; for a URL, as of `PartitionArguments`

    Returns
    -------
    Columns : topic, partition int32, offset int64, timestamp datetime64[ms] of the first record at or after that time.
        Where there is none, the offset is the log's end, and the timestamp NaT. Sorted by topic and partition;
        partitions that are to be deleted or to take another's place are not among them.

    Raises
    ------
    BadMagicError : there is no partition
    CorruptIndexError, FormatError : as `PartitionLog.offset_for_timestamp`

    Notes
    -----
    Source: Kafka 4.1.0 `UnifiedLog.fetchOffsetByTimestamp`, `ConsumerGroupCommand`.

    Examples
    --------
    >>> found = offsets_for_time("orders-0", -1)
    >>> found["topic"].to_pylist(), found["partition"].tolist(), found["offset"].tolist()
    (['orders'], [0], [1048])
    """
    moment = milliseconds("ms", ms)
    asked = None if topics is None else set(several_names("topics", topics))
    home = absolute(given_path("directory", directory, storage_options))
    if not (partitions := partitions_of(home)):
        raise BadMagicError("no partition is in it", path=home, expected="a log dir, or a partition's directory")
    starts = log_start_offsets(parent_of(partitions[0].path))
    names, numbers, offsets, times = [], [], [], []
    for one in partitions:
        if one.state is None and (asked is None or one.topic in asked):
            with PartitionLog._of(one.path, starts) as log:
                found = log.offset_for_timestamp(moment)
                offsets.append(log.log_end_offset if found is None else found.offset)
            names.append(one.topic.encode())
            numbers.append(one.partition)
            there = found is not None and found.timestamp >= 0
            times.append(np.datetime64(found.timestamp, "ms") if found and there else np.datetime64("NaT", "ms"))
    return Columns(
        {
            "topic": StringColumn(np.frombuffer(b"".join(names), np.uint8), np.cumsum([0, *map(len, names)])),
            "partition": np.array(numbers, np.int32),
            "offset": np.array(offsets, np.int64),
            "timestamp": np.array(times, "M8[ms]"),
        }
    )
