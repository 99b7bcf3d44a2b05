"""Damage in a commit log: which bytes hold no good message, and why. One rule and one wording for all readers.

In a file before the last one that holds frames, reading goes on at the next frame. In the last one the first bad frame
is the log's end; whole frames behind it, which no broker reads, are told as damage too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mqindex._native.commit_log import last_record
from mqindex._words import plural
from mqindex.errors import sentence
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.log.frame_windows import Fault, find_in


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch of a commit log's file that holds no good message: an item of `CommitLog.damage`.

    Attributes
    ----------
    path : str
    file_start, at, stop : int, phy offsets: of the file's first byte, and of the stretch [at, stop)
    kind : str, what is wrong at `at`: "bad-magic", "bad-size", "bad-length", "foreign", "bad-crc", "truncated",
        "bad-delay"
    field, expected, got : which field, and what it should and does hold; None: does not apply
    behind : int, complete frames behind it, where the log ends at `at`; 0: reading goes on at `stop`

    Examples
    --------
    >>> print(Damage("commitlog/00000000000000001024", 1024, 1124, 1349, "bad-size", "total_size", "91 or more", 0))
    log-bad-size: commitlog/00000000000000001024 field total_size at byte 100: expected 91 or more, got 0; the log is \
damaged from phy offset 1124 to 1349, 225 bytes
    """

    path: str
    file_start: int
    at: int
    stop: int
    kind: str
    field: str | None = None
    expected: Any = None
    got: Any = None
    behind: int = 0

    @property
    def position(self) -> int:
        """Where it begins, bytes in the file."""
        return self.at - self.file_start

    @property
    def stretch(self) -> str:
        """Where it is, and how much, in words."""
        what = "the log is damaged"
        if self.behind:
            what = f"the log ends here, and {plural(self.behind, 'complete frame')} behind its end are not read:"
        return f"{what} from phy offset {self.at} to {self.stop}, {plural(self.stop - self.at, 'byte')}"

    def __str__(self) -> str:
        name = "frames-behind-log-end" if self.behind else f"log-{self.kind}"
        return sentence(name, self.path, self.position, self.field, self.expected, self.got, self.stretch)


def damage_of(fault: Fault, log: MappedFile, path: str, file_start: int, stop: int, limit: int) -> Damage:
    """The damage of a fault that a walk met in a file with frames up to `stop`; behind `limit` it holds zeros only.

    A message whose body is wrong has an end; what is no message ends where the next frame begins.
    """
    at, kind, *said = fault
    if kind == "bad-crc":
        _, end = last_record(log.window(at - file_start, at + 1 - file_start), file_start, at, at + 1)
    else:
        end = find_in(log, file_start, at + 1, limit)
    return Damage(path, file_start, at, end if end > at else stop, kind, *said)
