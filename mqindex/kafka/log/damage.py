"""Damage in a segment's log: where reading goes on behind it, and what is left out. The one rule of all readers.

Behind a batch that is none, or whose checksum is wrong, reading goes on at the next valid batch
(`mqindex._native.kafka_log.Resync`). A partition's last segment may end in zeros, as a preallocated log does, or in a
part of a batch, as one that is being written: that is the log's end, and nothing is left out.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from mqindex._native.guard import check_whole
from mqindex._native.kafka_log import Resync
from mqindex._words import plural
from mqindex.errors import CorruptIndexError, FormatError, sentence
from mqindex.kafka.log.batch_windows import LENGTH_AT, LENGTH_END
from mqindex.kafka.log.records import first_offset_at

Fault = tuple[str, int, str, str, str]
_REACH: Final = 2**31  # relative offsets that an index can have
_BLOCK: Final = 1 << 20


class BatchFault(NamedTuple):
    """A place of a log that cannot be read: an item of `LogSegment.damage`. Reading goes on behind it.

    Attributes
    ----------
    kind : str, what is wrong: "bad-crc", "bad-length", or "tail": the log ends inside a batch. With "log-" before
        it is the kind of the finding
    at : int, bytes: its position in the log
    field, expected, got : str or None, which field, and what it should and does hold
    end : int, bytes: where reading goes on; the log's size: nowhere
    first_offset, last_offset : int or None, the offsets that may have been there; None: not known
    passed : bool, what `verify` found: its length leads a reader to `end`
    batches, records : int, good ones behind, which `verify` counts

    Notes
    -----
    Source: Kafka 4.1.0 `RecordBatch.ensureValid`, `FileLogInputStream`.
    """

    kind: str
    at: int
    field: str | None
    expected: str | None
    got: str | None
    end: int
    first_offset: int | None = None
    last_offset: int | None = None
    passed: bool = False
    batches: int = 0
    records: int = 0

    @property
    def left_out(self) -> str:
        """How many bytes and which offsets are left out, in words."""
        first, last = self.first_offset, self.last_offset
        if first is not None and last is not None:
            which = (
                "no offset" if last < first else f"offset {first}" if last == first else f"offsets {first} to {last}"
            )
        else:
            which = f"offsets from {first} on" if last is None else f"offsets up to {last}"
            which = "which offsets is not known" if first is last is None else which
        return f"{plural(self.end - self.at, 'byte')} up to byte {self.end} left out, {which}"

    def _may_hold(self, offset: int, adjacent: bool = True) -> bool:
        """Whether what is left out may have an offset; adjacent: nothing good is between it and that."""
        return adjacent and (self.last_offset is None or offset <= self.last_offset)

    def words(self, path: str) -> str:
        """One sentence of it; path : of the log."""
        return sentence(self.kind, path, self.at, self.field, self.expected, self.got, self.left_out)

    def _error(self, path: str, what: str) -> CorruptIndexError:
        """The error of who may leave nothing out; it names the offset to go on from."""
        go_on = (
            "nothing can be read behind it"
            if self.last_offset is None
            else f"read on from offset {self.last_offset + 1}"
        )
        return CorruptIndexError(
            what, path=path, at=self.at, field=self.field, expected=self.expected, got=self.got,
            hint=f"{self.left_out}; {go_on}; `mqindex verify --deep` shows more",
        )  # fmt: skip


def left_out(
    resync: Resync, log: Any, at: int, fault: Fault | None, base_offset: int, next_base: int | None, last: int | None
) -> BatchFault | None:
    """What is left out at `at`, where a walk over batches has ended; None: the log ends there.

    fault : of the walk; None: a batch would reach beyond the file. next_base : the base offset of the next segment,
    None: there is none. last : the last offset before; None: not known.
    """
    ceiling = base_offset + _REACH if next_base is None else next_base
    floor = base_offset if last is None or not base_offset <= last < ceiling else last + 1
    end = resync.batch_after(at, floor, ceiling)
    nothing = end == len(log)
    if nothing and (floor == next_base or next_base is None) and (fault is None or is_zeros(log, at)):
        return None
    kind, _, field, expected, got = fault or _beyond_the_end(log, at, nothing)
    following = next_base if nothing else first_offset_at(log, end)
    first = None if last is None else floor
    return BatchFault(kind, at, field, expected, got, end, first, None if following is None else following - 1)


def _beyond_the_end(log: Any, at: int, last: bool) -> tuple[str, int, str | None, str, str]:
    """The fault of a batch that leads beyond the file; last: the file ends inside it, else its length is wrong."""
    if last:
        return torn(at, len(log) - at)
    length = int.from_bytes(bytes(log[at + LENGTH_AT : at + LENGTH_END]), "big", signed=True)
    check_whole(log)
    return "bad-length", at, "length", f"{len(log) - at - LENGTH_END} bytes or less", str(length)


def torn(at: int, left: int) -> tuple[str, int, None, str, str]:
    """The fault of a batch of which a log has only the first bytes, so many."""
    return "tail", at, None, "a whole batch", f"a part of one, {plural(left, 'byte')}"


def unreadable(error: FormatError, batch: Any) -> BatchFault:
    """The damage of a batch that is whole, but whose records cannot be read; batch : its row."""
    at, first, last = (int(batch[name]) for name in ("position", "base_offset", "last_offset"))
    first = first if batch["magic"] >= 2 else last
    return BatchFault(error.what, at, error.field, error.expected, error.got, at + int(batch["size"]), first, last)


def is_zeros(log: Any, start: int) -> bool:
    """Whether nothing but zeros follow in a log, mapped or in memory."""
    blank = not any(bytes(log[at : at + _BLOCK]).strip(b"\0") for at in range(start, len(log), _BLOCK))
    check_whole(log)
    return blank
