"""A broker's answer to a pull request, for messages of a queue from an offset on: status, messages, next offset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from mqindex._native.numbers import whole_number
from mqindex.errors import FormatError, was_cut
from mqindex.files import disk
from mqindex.files.paths import join
from mqindex.rocketmq import layout
from mqindex.rocketmq.brokers import BACK_TO_MIN
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.log.expiry import LogExpiredError
from mqindex.rocketmq.messages.message import Message
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.queue.consume_queue import ConsumeQueue
from mqindex.rocketmq.queue.queue_units import QueueBounds
from mqindex.rocketmq.serving.tag_filter import TagFilter
from mqindex.rocketmq.settings import MAX_TRANSFER_BYTES, MAX_TRANSFER_COUNT

_M = TypeVar("_M")

_FEW = 32  # units read in one step, at least
_MIN_FILTERED_BYTES = 16000  # of units that one request reads, at least


class GetMessageStatus(StrEnum):
    """How a pull request ended: `GetMessageResult.status`; each is also the string of its name.

    Source: RocketMQ 4.9.3 `store/GetMessageStatus`.

    >>> GetMessageStatus.FOUND == "FOUND", GetMessageStatus("OFFSET_TOO_SMALL").name
    (True, 'OFFSET_TOO_SMALL')
    """

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"


class GetMessageResult(NamedTuple, Generic[_M]):
    """What `MessageStore.get_message` and `MessageStore.get_messages` answer.

    Attributes
    ----------
    status : GetMessageStatus
    next_begin_offset : int, the queue offset with which the next request begins
    min_offset, max_offset : int, the bounds of the queue in queue offsets
    messages : list of `Message`, or of `get_messages` the columns

    Notes
    -----
    Source: RocketMQ 4.9.3 `store/GetMessageResult`.
    """

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    messages: _M


class TransferLimits(NamedTuple):
    """How much a broker is set to send in one answer at most; None: not set, then only the request limits it."""

    messages: int | None
    total_size: int | None

    @classmethod
    def of(cls, options: StoreOptions) -> TransferLimits:
        """The settings for messages in memory. Those for messages on the disk depend on the machine's memory."""
        return cls(options.given(MAX_TRANSFER_COUNT), options.given(MAX_TRANSFER_BYTES))

    def full(self, messages: Sequence[Message], size: int) -> bool:
        """Whether there is no room for one more, of that size."""
        if self.messages is not None and len(messages) >= self.messages:
            return True
        return self.total_size is not None and sum(message.size for message in messages) + size > self.total_size


def bounds_of(queue: ConsumeQueue | None) -> QueueBounds:
    """The bounds of a queue, and of one that does not exist."""
    return QueueBounds(0, 0, -1) if queue is None else queue.bounds()


def goes_back_to_min(options: StoreOptions) -> bool:
    """Whether a request beyond the end of a queue that begins at 0 is sent to its beginning, as up to 4.9.3. Later
    brokers always send it to the end. Where no version is given, a file that only 5.x leaves shows 5.x.
    """
    if options.broker_version is None:
        return not disk.is_there(join(options.root, "abort.bak"))
    return options.broker.does(BACK_TO_MIN) is True


def refusal(
    queue: ConsumeQueue | None, bounds: QueueBounds, offset: int, back_to_min: bool
) -> tuple[GetMessageStatus, int] | None:
    """The status and the next offset where no message can be given at `offset`; None: one may be there."""
    low, high, _ = bounds
    if queue is None or high == 0:
        return GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0
    if offset < low:
        return GetMessageStatus.OFFSET_TOO_SMALL, low
    if offset == high:
        return GetMessageStatus.OFFSET_OVERFLOW_ONE, offset
    if offset > high:
        return GetMessageStatus.OFFSET_OVERFLOW_BADLY, low if low == 0 and back_to_min else high
    if queue._file_of(offset) is None:
        units = queue.file_size // layout.QUEUE_UNIT_SIZE
        return GetMessageStatus.OFFSET_FOUND_NULL, offset + units - offset % units
    return None


def get_message(
    queue: ConsumeQueue | None,
    bounds: QueueBounds,
    log: CommitLog,
    offset: int,
    max_msg_nums: int,
    wanted: TagFilter,
    limits: TransferLimits,
    back_to_min: bool,
) -> GetMessageResult[list[Message]]:
    """One request, in the steps of `DefaultMessageStore.getMessage`."""
    low, high, _ = bounds
    refused = refusal(queue, bounds, offset, back_to_min)
    if refused is not None or queue is None:
        assert refused is not None
        return GetMessageResult(*refused, low, high, [])
    limit = max(-(-_MIN_FILTERED_BYTES // layout.QUEUE_UNIT_SIZE), max_msg_nums)
    status, messages, looked, from_phy_offset = GetMessageStatus.NO_MATCHED_MESSAGE, list[Message](), 0, None
    stop = offset + min(limit, _units_to_go(queue, bounds, offset))
    for number, (phy_offset, size, tags_code) in enumerate(_rows(queue, offset, stop, max_msg_nums)):
        looked = number + 1
        if from_phy_offset is not None and phy_offset < from_phy_offset:
            continue
        if messages and (len(messages) >= max_msg_nums or limits.full(messages, size)):
            looked = number
            break
        if not wanted.matches_code(tags_code):
            status = status if messages else GetMessageStatus.NO_MATCHED_MESSAGE
        elif (message := _held(log, phy_offset, size, offset + number)) is None:
            status = status if messages else GetMessageStatus.MESSAGE_WAS_REMOVING
            from_phy_offset = _next_file(log, phy_offset)
        else:
            messages.append(message)
            status, from_phy_offset = GetMessageStatus.FOUND, None
    kept = [message for message in messages if wanted.matches(message.tags)]
    return GetMessageResult(status, offset + looked, low, high, kept)


def _held(log: CommitLog, phy_offset: int, size: int, queue_offset: int) -> Message | None:
    """The message that a unit leads to; None: the log does not have it, or not yet. Only then is its end looked for."""
    if not holds(log, phy_offset, size):
        return None
    try:
        return read_unit(log, phy_offset, size, queue_offset)
    except FormatError as error:
        if was_cut(error) or isinstance(error, LogExpiredError) or log._reaches(phy_offset + size):
            raise
        return None


def holds(log: CommitLog, phy_offset: int, size: int) -> bool:
    """Whether the log may have these bytes in one of its files: not if they are expired or known to be yet to come."""
    if not 0 <= phy_offset < phy_offset + size <= log._most_phy_offset:
        return False
    try:
        file, _ = log._map_at(phy_offset)
    except FormatError as error:
        if was_cut(error) or isinstance(error, LogExpiredError):
            raise
        return False
    return phy_offset + size <= file.stop


def require_request(
    topic: str, queue_id: int, offset: int, max_msg_nums: int, tags: str | None
) -> tuple[int, int, int]:
    """`queue_id`, `offset` and `max_msg_nums` as int; TypeError, ValueError: no consumer can send such a request."""
    if not isinstance(topic, str):
        raise TypeError(f"topic: expected str, got {type(topic).__name__}")
    if tags is not None and not isinstance(tags, str):
        raise TypeError(f"tags: expected an expression like 'TagA || TagB', got {type(tags).__name__}")
    most = whole_number("max_msg_nums", max_msg_nums)
    if most < 1:
        raise ValueError(f"max_msg_nums: expected 1 or more, got {most}")
    return whole_number("queue_id", queue_id), whole_number("offset", offset), most


def read_unit(log: CommitLog, phy_offset: int, size: int, queue_offset: int) -> Message:
    """The message that a unit leads to."""
    try:
        return log.get_message(phy_offset, size)
    except FormatError as error:
        if was_cut(error) or isinstance(error, LogExpiredError):
            raise
        raise FormatError(
            f"the unit at queue offset {queue_offset} leads to no message: {error.what}", path=error.path, at=error.at,
            field=error.field, expected=error.expected, got=error.got,
            hint=f"run verify; go on at queue offset {queue_offset + 1}",
        ) from error  # fmt: skip


def _units_to_go(queue: ConsumeQueue, bounds: QueueBounds, offset: int) -> int:
    """How many units are left from `offset` on in its file; 0: no file holds it. One request reads one file."""
    file = queue._file_of(offset)
    return 0 if file is None else min(file.stop // layout.QUEUE_UNIT_SIZE, bounds.max_offset) - offset


def _rows(queue: ConsumeQueue, start: int, stop: int, few: int) -> Iterator[tuple[int, int, int]]:
    """phy_offset, size and tags_code of units: a few first, because as a rule no more are needed."""
    at, step = start, max(2 * few, _FEW)
    while at < stop:
        units = queue.units(at, min(at + step, stop))
        yield from zip(units["phy_offset"].tolist(), units["size"].tolist(), units["tags_code"].tolist(), strict=True)
        at, step = at + step, 4 * step


def _next_file(log: CommitLog, phy_offset: int) -> int:
    """Where the next file of the log begins; units that lead below it are skipped."""
    size = log.files[0].size if log.files else layout.COMMIT_LOG_FILE_SIZE
    return phy_offset + size - phy_offset % size
