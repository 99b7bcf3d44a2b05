"""Offsets of partitions, in a log dir's checkpoints: version, number of entries, then topic, number, offset."""

from __future__ import annotations

import os
from typing import Final

from mqindex._words import plural
from mqindex.errors import CorruptIndexError
from mqindex.files.regular import reading_text

__all__ = ["Offsets", "log_start_offset", "log_start_offsets", "read_offsets", "readable_offsets"]

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
    try:
        with reading_text(path) as file:
            lines = file.read(_LARGEST).splitlines()
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise _malformed(path, "UTF-8 text", "other bytes") from None
    if not lines:
        return {}
    try:
        version, count = int(lines[0]), int(lines[1]) if len(lines) > 1 else 0
        offsets = dict(_entry(line) for line in lines[2:])
    except ValueError as error:
        raise _malformed(path, "whole numbers; a topic, a number and an offset a line", str(error)) from None
    if version != 0 or count != len(lines[2:]):
        raise _malformed(path, f"version 0 and {plural(count, 'entry')}", f"version {version} and {len(lines[2:])}")
    return offsets


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
    return {name: max(offset, 0) for name, offset in known.items() if offset < 2**63}


def log_start_offset(directory: str) -> int:
    """Where one partition's log starts. For many, `log_start_offsets` reads the checkpoint once."""
    log_dir, name = os.path.split(directory)
    return log_start_offsets(log_dir).get(name, 0)


def _entry(line: str) -> tuple[str, int]:
    fields = line.split()
    if len(fields) != 3:
        raise ValueError(repr(line[:80]))
    return f"{fields[0]}-{int(fields[1])}", int(fields[2])


def _malformed(path: str, expected: str, got: str) -> CorruptIndexError:
    return CorruptIndexError("no checkpoint that a broker reads", path=path, expected=expected, got=got)
