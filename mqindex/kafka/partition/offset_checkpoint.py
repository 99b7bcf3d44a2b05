"""Checkpoints: version, number of entries, then an entry a line. A log dir's have offsets: topic, number, offset.

What a broker reads as text it reads with Java's rules: other line ends, white space and numbers than Python's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final, TypeVar

from mqindex._words import plural
from mqindex.errors import CorruptIndexError
from mqindex.files.regular import reading_text

__all__ = [
    "Offsets",
    "log_start_offset",
    "log_start_offsets",
    "read_checkpoint",
    "read_offsets",
    "readable_offsets",
    "split_fields",
    "text_lines",
    "whole_number",
]

Entry = TypeVar("Entry")

Offsets = dict[str, int]
"""By the name of a partition's directory."""

_LARGEST: Final = 1 << 28  # bytes


def read_offsets(path: str) -> Offsets:
    """The offsets of a checkpoint; none where there is no file, or an empty one.

    Raises
    ------
    CorruptIndexError : one that a broker cannot read; a broker continues as if it were empty.

    Notes
    -----
    Source: Kafka 4.1.0 `CheckpointFile.read`, `OffsetCheckpointFile.Formatter`.
    """
    return dict(read_checkpoint(path, _offset_entry, "a topic, a number and an offset a line"))


def read_checkpoint(path: str, entry: Callable[[str], Entry], words: str) -> list[Entry]:
    """The entries of a checkpoint; none where there is no file, or no more than a version.

    entry : what a line says; a `ValueError` where it is none. words : what one consists of.
    """
    try:
        lines = text_lines(path, _LARGEST)
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        raise _malformed(path, "UTF-8 text", "other bytes") from None
    try:
        version = whole_number(lines[0], 32) if lines else 0
        count = whole_number(lines[1], 32) if lines[1:] else 0
        entries = [entry(line) for line in lines[2:]]
    except ValueError as error:
        raise _malformed(path, f"whole numbers; {words}", str(error)) from None
    if version != 0:
        raise _malformed(path, "version 0", f"version {version}")
    if count != len(entries):
        raise _malformed(path, plural(count, "entry"), str(len(entries)))
    return entries


def readable_offsets(path: str) -> Offsets:
    """`read_offsets`, but nothing where the checkpoint cannot be read."""
    try:
        return read_offsets(path)
    except (CorruptIndexError, OSError):
        return {}


def log_start_offsets(log_dir: str) -> Offsets:
    """Where the logs of a log dir start; a partition that is not in it starts at 0.

    Source: Kafka 4.1.0 `LogManager.loadLogs`; a file that cannot be read counts as absent there too.
    """
    known = readable_offsets(os.path.join(log_dir, "log-start-offset-checkpoint"))
    return {name: max(offset, 0) for name, offset in known.items()}


def log_start_offset(directory: str) -> int:
    """Where one partition's log starts. For many, `log_start_offsets` reads the checkpoint once."""
    log_dir, name = os.path.split(directory)
    return log_start_offsets(log_dir).get(name, 0)


def _offset_entry(line: str) -> tuple[str, int]:
    topic, number, offset = split_fields(line, 3)
    return f"{topic}-{whole_number(number, 32)}", whole_number(offset, 64)


def _malformed(path: str, expected: str, got: str) -> CorruptIndexError:
    return CorruptIndexError("no checkpoint that a broker reads", path=path, expected=expected, got=got)


# ---- text as Java reads it


def text_lines(path: str, most: int, *, encoding: str = "utf-8") -> list[str]:
    """The lines of a file, its first `most` characters: they end in LF, CR, or both (`BufferedReader.readLine`)."""
    with reading_text(path, encoding=encoding) as file:
        lines = file.read(most).split("\n")
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
