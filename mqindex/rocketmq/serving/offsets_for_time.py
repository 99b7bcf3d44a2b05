"""The offset of every queue of a store at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Unpack

import numpy as np

from mqindex._options import with_options_of
from mqindex.columns.columns import Columns, StringColumn
from mqindex.columns.limits import several_names
from mqindex.columns.numbers import Time
from mqindex.rocketmq.options import StoreArguments, store_options
from mqindex.rocketmq.queue.queue_times import Boundary
from mqindex.rocketmq.serving.message_store import MessageStore


@with_options_of(store_options)
def offsets_for_time(
    store: str | os.PathLike[str],
    ms: Time,
    *,
    topics: Iterable[str] | None = None,
    boundary: Boundary | None = "lower",
    **given: Unpack[StoreArguments],
) -> Columns:
    """The queue offset of every queue at a time, as a broker answers when a group's offsets are reset.

    Parameters
    ----------
    store : path or URL of the store
    ms : ms since the epoch, an aware datetime or a datetime64
    topics : names; None: all
    boundary : "lower": the first message at or after that time; "upper": the last one at or before it: the rule since
        5.1.4. None: that of 4.x, as `ConsumeQueue.get_offset_in_queue_by_time` has it
    config, commitlog, hash_slot_num, index_num, broker_version, storage_options : store options

    Returns
    -------
    Columns : topic, queue_id int32, offset int64, store_timestamp datetime64[ms] of the message there, NaT: there is
        none; sorted by topic and queue_id

    Raises
    ------
    FileNotFoundError, BadMagicError : there is no store
    FileStateError : its queues are in RocksDB; or the rule of 4.x is asked of files elsewhere

    Notes
    -----
    Source: RocketMQ 4.9.3 and 5.3.3 `DefaultMessageStore.getOffsetInQueueByTime`.

    Examples
    --------
    >>> found = offsets_for_time("store", 1_680_170_240_000, topics=["LostTopic"])
    >>> list(zip(found["topic"].to_pylist(), found["queue_id"].tolist(), found["offset"].tolist()))[:2]
    [('LostTopic', 0, 2), ('LostTopic', 1, 1)]
    """
    asked = None if topics is None else set(several_names("topics", topics))
    names, ids, offsets, times = [], [], [], []
    with MessageStore.open(store, **given) as opened:
        for topic, queue_id in sorted(opened.queues):
            queue = opened.consume_queue(topic, queue_id) if asked is None or topic in asked else None
            if queue is None:
                continue
            offset = queue.get_offset_in_queue_by_time(ms, opened.commit_log, boundary=boundary)
            names.append(topic.encode())
            ids.append(queue_id)
            offsets.append(offset)
            times.append(_stored(opened, topic, queue_id, offset))
    bounds = np.cumsum([0, *map(len, names)])
    return Columns(
        {
            "topic": StringColumn(np.frombuffer(b"".join(names), np.uint8), bounds),
            "queue_id": np.array(ids, np.int32),
            "offset": np.array(offsets, np.int64),
            "store_timestamp": np.array(times, "M8[ms]"),
        }
    )


def _stored(store: MessageStore, topic: str, queue_id: int, offset: int) -> np.datetime64:
    """When the message of a queue offset was stored; NaT: there is none."""
    found = store.get_messages(topic, queue_id, offset, max_msg_nums=1, columns=["store_timestamp", "queue_offset"])
    times, numbers = found.messages["store_timestamp"], found.messages["queue_offset"]
    there = len(times) == 1 and int(numbers[0]) == offset
    return np.datetime64(int(times[0]), "ms") if there else np.datetime64("NaT", "ms")
