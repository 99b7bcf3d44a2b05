"""Where a broker begins to read its log again after an unclean end: what it does not read is not indexed again.

Source: RocketMQ `CommitLog.recoverAbnormally`, `CommitLog.isMappedFileMatchedRecover`, `StoreCheckpoint`,
4.1 to 5.5.0. They are alike up to 5.3.4; what is new in 5.4.0 and 5.5.0 is at the thresholds below.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from mqindex.rocketmq import layout
from mqindex.rocketmq.checks.start_files import Entry, MessageHead, is_log_file, message_at
from mqindex.rocketmq.metadata.checkpoint import Checkpoint
from mqindex.rocketmq.options import StoreOptions, Version, parse_version
from mqindex.rocketmq.pipeline.survey import Survey
from mqindex.rocketmq.rocksdb import is_rocksdb

__all__ = ["OFFSET_SINCE", "needs_offset", "read_again_from"]

_FILES_SINCE = (5, 4, 0)
"""`CommitLog.recoverAbnormally` goes back over `commitLogRecoverMaxNum` files at most, empty ones counted."""
OFFSET_SINCE = (5, 5, 0)
"""`ConsumeQueueStore.isMappedFileMatchedRecover` uses the checkpoint's logicsPhysicalOffset, if there is one."""
_FILES = 10
_SAFETY = 3000  # ms that a broker goes back before its checkpoint's times
_OTHERWISE = (
    "duplicationEnable",
    "enableControllerMode",
    "indexRocksDBEnable",
    "rocksdbCQDoubleWriteEnable",
    "transRocksDBEnable",
)
"""With these, something decides too that no file of the store shows: a replica's or a database's progress."""


def read_again_from(found: Survey, checkpoint: Checkpoint, log: Sequence[Entry]) -> set[int]:
    """The phy offset from which recovery reads, one for each rule that the broker may follow; none: it is not known.

    log : what is in the directories of the log, by name.
    """
    options, files = found.options, [one for one in log if is_log_file(one) and one.size]
    if not found.spans or not files or options.index_switch is not None:
        return {layout.MAX_TIMESTAMP}
    if _goes_otherwise(found):
        return set()
    return {_begin(files, checkpoint, options, version) for version in _versions(found)}


def _goes_otherwise(found: Survey) -> bool:
    options = found.options
    homes = (options.consume_queue, os.path.join(options.root, "consumequeue_rocksdb"))
    return (
        found.queues.rocksdb is not None
        or any(map(is_rocksdb, homes))
        or any(_is_on(options, name) for name in _OTHERWISE)
    )


def _versions(found: Survey) -> tuple[Version, ...]:
    """One version of each rule that the broker may follow."""
    version, newer = parse_version(found.version.number), (_FILES_SINCE, OFFSET_SINCE)
    if found.options.broker_version is not None:
        return (version,)
    if not found.version.known:
        return (version, *newer)
    return (version,) if version < _FILES_SINCE else newer


def _begin(files: Sequence[Entry], checkpoint: Checkpoint, options: StoreOptions, version: Version) -> int:
    """Begin at the newest file that matches; where none does, at the oldest that is tried."""
    looked_at = files[::-1][: _files(options) if version >= _FILES_SINCE else None]
    matches = _match(checkpoint, options, version)
    heads = ((one, message_at(one.path)) for one in looked_at)
    chosen = next((one for one, head in heads if head and head.store_timestamp and matches(head)), looked_at[-1])
    start = layout.number_of(chosen.name) or 0
    if version >= OFFSET_SINCE and _is_on(options, "enableAcceleratedRecovery"):
        begin = max(start, checkpoint.logics_physical_offset)  # where no message begins, it cuts the log
        return begin if message_at(chosen.path, begin - start) is not None else layout.MAX_TIMESTAMP
    return start


def needs_offset(found: Survey, checkpoint: Checkpoint) -> bool:
    """Whether a broker from 5.5 on refuses to recover: it is set to begin at an offset that its checkpoint lacks.

    Source: RocketMQ 5.5.0 `ConsumeQueueStore.getDispatchFromPhyOffset`.
    """
    on = _is_on(found.options, "enableAcceleratedRecovery") and found.queues.rocksdb is None
    return on and checkpoint.logics_physical_offset <= 0 < checkpoint.physic_msg_timestamp


def _match(checkpoint: Checkpoint, options: StoreOptions, version: Version) -> Callable[[MessageHead], bool]:
    """Whether a broker may begin with a file, by its first message: the queues lack nothing that is before it."""
    indexed = checkpoint.index_msg_timestamp if _is_on(options, "messageIndexSafe") else layout.MAX_TIMESTAMP
    if version >= OFFSET_SINCE and checkpoint.logics_physical_offset > 0:
        known = checkpoint.logics_physical_offset
        return lambda head: head.phy_offset <= known and head.store_timestamp <= indexed
    if version >= OFFSET_SINCE:
        time = checkpoint.logics_msg_timestamp
    else:
        time = max(min(checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp) - _SAFETY, 0)
    return lambda head: head.store_timestamp <= min(time, indexed)


def _files(options: StoreOptions) -> int:
    try:
        files = int(options.setting("commitLogRecoverMaxNum", str(_FILES)))
    except ValueError:  # a broker does not start with it, or ignores it
        return _FILES
    return files if files > 0 else _FILES


def _is_on(options: StoreOptions, name: str) -> bool:
    return options.setting(name, "false").strip().lower() == "true"
