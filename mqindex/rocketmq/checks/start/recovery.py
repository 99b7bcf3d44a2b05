"""Where a broker begins to read its log again when it starts.

Its recovery compares checksums, and cuts the log at the first bad record. After an unclean end it indexes again what it
reads, and nothing else.

Source: RocketMQ `CommitLog.recoverNormally`, `CommitLog.recoverAbnormally`, `CommitLog.isMappedFileMatchedRecover`,
`ConsumeQueueStore.isMappedFileMatchedRecover`, `StoreCheckpoint`, 4.5 to 5.5.0. What changed is at the thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from mqindex._rules import Broker
from mqindex.errors import MQIndexError
from mqindex.files.paths import join
from mqindex.files.places.place import require_answer
from mqindex.rocketmq import layout
from mqindex.rocketmq.brokers import (
    CONFIRMED_DISPATCHED,
    LARGE_BLANK_CUTS,
    NEGATIVE_BLANK_CUTS,
    RECOVERS_FEW_FILES,
    RECOVERS_FROM_OFFSET,
    RECOVERS_FROM_QUEUES,
)
from mqindex.rocketmq.checks.start.start_files import (
    Entry,
    MessageHead,
    checkpoint_of,
    first_sound_message,
    is_log_file,
    listed,
    message_at,
    number_of,
)
from mqindex.rocketmq.kinds import is_rocksdb, queue_paths
from mqindex.rocketmq.log.writing.log_recovery import RECOVERED_FILES
from mqindex.rocketmq.metadata.checkpoint import Checkpoint
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.pipeline.survey import Survey
from mqindex.rocketmq.queue.batch.batch_consume_queue import BatchConsumeQueue
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable
from mqindex.rocketmq.settings import (
    ACCELERATED_RECOVERY,
    CONTROLLER_MODE,
    DUPLICATION,
    INDEX_ROCKSDB,
    INDEX_SAFE,
    QUEUES_TWICE,
    RECOVERED_MOST,
    TRANSACTIONS_ROCKSDB,
)

LARGE_BLANK: Final = "a blank larger than what is left of its file"
NEGATIVE_BLANK: Final = "a blank of a negative size"
_BLANKS: Final = {LARGE_BLANK: LARGE_BLANK_CUTS, NEGATIVE_BLANK: NEGATIVE_BLANK_CUTS}
_RULES: Final = (
    *(RECOVERS_FROM_QUEUES, RECOVERS_FEW_FILES, RECOVERS_FROM_OFFSET, CONFIRMED_DISPATCHED),
    *_BLANKS.values(),
)
_SAFETY = 3000  # ms that a broker goes back before its checkpoint's times
_OTHERWISE = (DUPLICATION, INDEX_ROCKSDB, QUEUES_TWICE, TRANSACTIONS_ROCKSDB)
"""With these, something decides too that no file of the store shows: a replica's or a database's progress."""


class Recovery(NamedTuple):
    """What a broker of one rule reads of its log when it starts, after an `unclean` end or a clean one.

    It begins at the phy offset `begin`. `cut`: where it finds a bad record, cuts the log, and deletes the `messages`
    from there on; None: it reads to the log's end. `by_crc`: nothing but the body's checksum is bad. `confirmed`: from
    there on it dispatches all that is left, also what is before `begin`. `passes`: the blanks that it reads over
    although their size is wrong, until the cut is known. `behind`: so many messages are whole behind the bad record
    that is the log's end, and queues lead there: at that record it cuts the queues, and it writes over the messages.
    """

    unclean: bool
    begin: int
    cut: int | None = None
    messages: int = 0
    by_crc: bool = False
    confirmed: int = layout.MAX_TIMESTAMP
    passes: tuple[str, ...] = ()
    behind: int = 0

    @property
    def dispatched(self) -> int:
        """The phy offset of the first message that it dispatches again."""
        return min(self.begin, self.confirmed)

    @property
    def end(self) -> int:
        """It reads nothing from there on."""
        return layout.MAX_TIMESTAMP if self.cut is None else self.cut


NOT_KNOWN: Final = (Recovery(True, 0), Recovery(True, layout.MAX_TIMESTAMP))
"""All of the log, or nothing: on what these agree, all brokers do."""


def recoveries(found: Survey) -> tuple[Recovery, ...]:
    """What the next start reads, once for each rule that the broker may follow; empty: it is not known.

    A running broker may end either way.
    """
    files = [one for one in listed(found.options.commitlog) if is_log_file(one) and one.size]
    if not found.spans or not files:
        return (Recovery(found.unclean, layout.MAX_TIMESTAMP),)
    if _goes_otherwise(found):
        return ()
    ends = (False, True) if found.unclean and found.is_in_use() else (found.unclean,)
    brokers = found.version.broker.split(*_RULES)
    looks = {True: _after_unclean_end, False: _after_clean_end}
    passes = {one: tuple(blank for blank, cuts in _BLANKS.items() if not one.does(cuts)) for one in brokers}
    reads = (looks[unclean](found, files, one)._replace(passes=passes[one]) for unclean in ends for one in brokers)
    return tuple(dict.fromkeys(reads))


def _goes_otherwise(found: Survey) -> bool:
    options = found.options
    homes = (options.consume_queue, join(options.root, "consumequeue_rocksdb"))
    return found.queues.rocksdb is not None or any(map(is_rocksdb, homes)) or any(map(options.value, _OTHERWISE))


def _after_clean_end(found: Survey, files: Sequence[Entry], broker: Broker) -> Recovery:
    if not broker.does(RECOVERS_FROM_QUEUES):
        return Recovery(False, number_of(files[-RECOVERED_FILES:][0]))
    options, reach = found.options, reach_of_queues(found.options, number_of(files[-1]))
    if not broker.does(RECOVERS_FEW_FILES):
        reached = (start for start in map(number_of, files[::-1]) if start <= reach)
        return Recovery(False, next(reached, number_of(files[0])))
    indexed = _indexed(checkpoint_of(options.root), options)
    chosen = _newest_that(
        lambda head: head.phy_offset <= reach and head.store_timestamp <= indexed, files, options, broker
    )
    return Recovery(False, number_of(chosen))


def _after_unclean_end(found: Survey, files: Sequence[Entry], broker: Broker) -> Recovery:
    options, checkpoint = found.options, checkpoint_of(found.options.root)
    chosen = _newest_that(_match(checkpoint, options, broker), files, options, broker)
    start = number_of(chosen)
    if broker.does(CONFIRMED_DISPATCHED) and options.value(CONTROLLER_MODE):
        return Recovery(True, start, confirmed=checkpoint.confirm_phy_offset)
    if broker.does(RECOVERS_FROM_OFFSET) and options.value(ACCELERATED_RECOVERY):
        begin = max(start, checkpoint.logics_physical_offset)
        return Recovery(True, begin, None if message_at(chosen.path, begin - start) is not None else begin)
    return Recovery(True, start)


def _newest_that(
    matches: Callable[[MessageHead], bool], files: Sequence[Entry], options: StoreOptions, broker: Broker
) -> Entry:
    """The newest file whose first message matches; where none does, the oldest that is tried."""
    new = broker.does(RECOVERS_FEW_FILES)
    looked_at = files[::-1][: _files(options) if new else None]
    heads = ((one, first_sound_message(one) if new else message_at(one.path)) for one in looked_at)
    return next((one for one, head in heads if head and head.store_timestamp and matches(head)), looked_at[-1])


def reach_of_queues(options: StoreOptions, enough: int = layout.MAX_TIMESTAMP) -> int:
    """Up to which phy offset the queues reach, -1 if they have no unit; any from `enough` on is as good as the last."""
    reach = -1
    for end in _ends_of_queues(options):
        reach = max(reach, end)
        if reach >= enough:
            break
    return reach


def _ends_of_queues(options: StoreOptions) -> Iterator[int]:
    try:
        with ConsumeQueueTable.open(options.consume_queue) as table:
            yield from (bounds.max_phy_offset for _, bounds in table._bounds(table.queues()))
    except (MQIndexError, OSError) as error:  # a broker has none, or does not start
        require_answer(error, options.consume_queue)
        return
    for path in queue_paths(options.batch_consume_queue):
        with BatchConsumeQueue._of(path) as queue:
            last = queue.get(queue.max_offset_in_queue - 1)
            yield -1 if last is None else last.phy_offset


def needs_offset(found: Survey, checkpoint: Checkpoint) -> bool:
    """Whether a broker from 5.5 on refuses to recover: it is set to begin at an offset that its checkpoint lacks.

    Source: RocketMQ 5.5.0 `ConsumeQueueStore.getDispatchFromPhyOffset`.
    """
    on = found.options.value(ACCELERATED_RECOVERY) and found.queues.rocksdb is None
    return on and checkpoint.logics_physical_offset <= 0 < checkpoint.physic_msg_timestamp


def _match(checkpoint: Checkpoint, options: StoreOptions, broker: Broker) -> Callable[[MessageHead], bool]:
    """Whether a broker may begin with a file, by its first message: the queues lack nothing that is before it."""
    indexed = _indexed(checkpoint, options)
    if broker.does(RECOVERS_FROM_OFFSET) and checkpoint.logics_physical_offset > 0:
        known = checkpoint.logics_physical_offset
        return lambda head: head.phy_offset <= known and head.store_timestamp <= indexed
    if broker.does(RECOVERS_FROM_OFFSET):
        time = checkpoint.logics_msg_timestamp
    else:
        time = max(min(checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp) - _SAFETY, 0)
    return lambda head: head.store_timestamp <= min(time, indexed)


def _indexed(checkpoint: Checkpoint, options: StoreOptions) -> int:
    """With messageIndexSafe a broker begins with a file only if the index lacks nothing that is before it."""
    return checkpoint.index_msg_timestamp if options.value(INDEX_SAFE) else layout.MAX_TIMESTAMP


def _files(options: StoreOptions) -> int:
    files = options.value(RECOVERED_MOST)
    return files if files > 0 else RECOVERED_MOST.default
