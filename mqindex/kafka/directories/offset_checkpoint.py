"""Checkpoints: version, number of entries, then an entry a line. A log dir's have offsets: topic, number, offset.

What a broker reads as text it reads with Java's rules: other line ends, white space and numbers than Python's.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from typing import Final, TypeVar

from mqindex._words import plural
from mqindex.errors import CorruptIndexError
from mqindex.files import disk
from mqindex.files.paths import base_name, join, parent_of
from mqindex.files.places.place import require_answer
from mqindex.files.reading.regular import reading_text
from mqindex.kafka.kinds import partition_name

Entry = TypeVar("Entry")

Offsets = dict[str, int]
"""By topic and number, as the directory of a partition that is in use is named: of others, see `entry_name`."""

ENTRY_NUMBER: Final = "number in an entry"
"""The `field` of the error about a checkpoint of which only that cannot be read: brokers from 3.1 on differ there."""

_LARGEST: Final = 1 << 28  # bytes


def read_offsets(path: str) -> Offsets:
    """The offsets of a checkpoint; none where there is no file, or an empty one.

    Raises
    ------
    CorruptIndexError : one that a broker cannot read: it puts the log dir offline. Where only a number in an entry is
        none, one from 3.1 on does not, and goes on without the checkpoint, or without what it is for.

    Notes
    -----
    Source: Kafka 4.1.0 `CheckpointFileWithFailureHandler.read`, `OffsetCheckpointFile.Formatter`, whose
    `NumberFormatException` nothing catches; 3.0.0 `CheckpointFile.read` does.
    """
    return dict(read_checkpoint(path, _offset_entry, "a topic, a number and an offset a line"))


def read_checkpoint(path: str, entry: Callable[[str], Entry], words: str) -> list[Entry]:
    """The entries of a checkpoint; none where there is no file, or no more than a version.

    entry : what a line says; a `ValueError` where it is none. words : what one consists of.
    """
    try:
        lines = text_lines(path, _LARGEST)
    except FileNotFoundError:
        if disk.exists(path):  # a broker makes no file there, and then finds none
            raise _malformed(path, "a file", disk.kind_of(path)) from None
        return []
    except UnicodeDecodeError:
        raise _malformed(path, "UTF-8 text", "other bytes") from None
    except ValueError as error:
        require_answer(error, path)
        raise _malformed(path, "a file", disk.kind_of(path)) from None
    try:
        version = whole_number(lines[0], 32) if lines else 0
        count = whole_number(lines[1], 32) if lines[1:] else 0
        entries = [entry(line) for line in lines[2:]]
    except ValueError as error:
        field = ENTRY_NUMBER if isinstance(error, _NoNumber) else None
        raise _malformed(path, f"whole numbers; {words}", str(error), field) from None
    if version != 0:
        raise _malformed(path, "version 0", f"version {version}")
    if count != len(entries):
        raise _malformed(path, plural(count, "entry"), str(len(entries)))
    return entries


def readable_offsets(path: str) -> Offsets:
    """`read_offsets`, but nothing where the checkpoint cannot be read."""
    try:
        return read_offsets(path)
    except CorruptIndexError:
        return {}
    except OSError as error:
        require_answer(error, path)
        return {}


def log_start_offsets(log_dir: str) -> Offsets:
    """Where the logs of a log dir start; a partition that is not in it starts at 0.

    A file that cannot be read counts as absent. Source: Kafka 4.1.0 `LogManager.loadLogs`.
    """
    known = readable_offsets(join(log_dir, "log-start-offset-checkpoint"))
    return {name: max(offset, 0) for name, offset in known.items()}


def recovery_points(log_dir: str) -> Offsets:
    """Up to where the logs of a log dir were on the disk; one that is not in it, up to 0. As `log_start_offsets`."""
    return readable_offsets(join(log_dir, "recovery-point-offset-checkpoint"))


def log_start_offset(directory: str) -> int:
    """Where one partition's log starts. For many, `log_start_offsets` reads the checkpoint once."""
    return log_start_offsets(parent_of(directory)).get(entry_name(directory), 0)


def start_before(directory: str, oldest: int, starts: Offsets | None = None) -> int | None:
    """Where one partition's log starts by the checkpoint, where that is before its `oldest` segment; None: it is not.

    `starts`: what `log_start_offsets` says of its log dir; None: read it. The segments between went to tiered storage,
    or were deleted after the checkpoint was written: a broker notes a start before its segments for a topic of tiered
    storage only. Source: Kafka 4.1.0 `LogManager.checkpointLogStartOffsetsInDir`.
    """
    known = log_start_offsets(parent_of(directory)) if starts is None else starts
    start = known.get(entry_name(directory))
    return start if start is not None and start < oldest else None


def entry_name(directory: str) -> str:
    """The name in `Offsets` of a partition's directory, which may be one that is to replace another, or stray.

    Source: Kafka 4.1.0 `LogManager.loadLog`.

    >>> entry_name("/data/orders-3.0c5d1fbd61fa4d56b5ad4b6b2a9a5a0e-future"), entry_name("/data/copy of orders")
    ('orders-3', 'copy of orders')
    """
    named = partition_name(directory)
    return base_name(directory) if named is None else f"{named.topic}-{named.partition}"


class _NoNumber(ValueError):
    """What is no number in an entry that has all its parts."""


def _offset_entry(line: str) -> tuple[str, int]:
    topic, number, offset = split_fields(line, 3)
    try:
        return f"{topic}-{whole_number(number, 32)}", whole_number(offset, 64)
    except ValueError as error:
        raise _NoNumber(str(error)) from None


def _malformed(path: str, expected: str, got: str, field: str | None = None) -> CorruptIndexError:
    return CorruptIndexError("no checkpoint that a broker reads", path=path, field=field, expected=expected, got=got)


# ---- text as Java reads it


def text_lines(path: str, most: int, *, encoding: str = "utf-8") -> list[str]:
    """The lines of a file, its first `most` characters: they end in LF, CR, or both (`BufferedReader.readLine`).

    A `ValueError` where something else than a file has the name: a broker cannot read that. A link to itself leads to
    no file, as any other that leads nowhere.
    """
    try:
        with reading_text(path, encoding=encoding) as file:
            lines = file.read(most).split("\n")
    except OSError:
        if (kind := disk.kind_of(path)) in ("a directory", "a special file"):
            raise ValueError(kind) from None
        if kind == "a link that leads nowhere":
            raise FileNotFoundError(errno.ENOENT, kind, path) from None
        raise
    return lines if lines[-1] else lines[:-1]


def split_fields(line: str, count: int, between: str = r"\s+") -> list[str]:
    """The fields of a line; a `ValueError` where they are not `count`. As `Pattern.split`: none that are empty end it.

    >>> split_fields("t 0 5 ", 3)
    ['t', '0', '5']
    """
    fields = re.split(between, line, flags=re.ASCII)
    while fields and not fields[-1]:
        fields.pop()
    if len(fields) != count:
        raise ValueError(repr(line[:80]))
    return fields


def whole_number(text: str, bits: int) -> int:
    """As `Integer.parseInt` and `Long.parseLong`; a `ValueError` says what is no number of so many bits.

    >>> whole_number("+17", 32)
    17
    """
    if not re.fullmatch(r"[+-]?\d{1,400}", text) or not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        raise ValueError(repr(text[:80]))
    return int(text)
