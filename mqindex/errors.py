"""What can go wrong: one exception tree for every broker, file kind and engine.

Every message has one shape: *what, where: expected, got; hint*. The parts are attributes too, so that a program
can act on them. Operating-system errors (`FileNotFoundError`, `PermissionError`, no space left) pass through
unchanged; wrong arguments are plain `TypeError` and `ValueError`.

>>> raise CorruptIndexError("slot 3 leads outside the file", path="index/1", at=52, expected="0..16", got=81)
Traceback (most recent call last):
mqindex.errors.CorruptIndexError: slot 3 leads outside the file: index/1 at byte 52: expected 0..16, got 81
"""

from __future__ import annotations

import os
from typing import Any

__all__ = [
    "BadMagicError",
    "CapacityError",
    "ClosedFileError",
    "CorruptIndexError",
    "FileStateError",
    "FormatError",
    "GeometryError",
    "IndexFullError",
    "MQIndexError",
    "OffsetOverflowError",
    "OutOfOrderError",
    "OutputExistsError",
    "ReadOnlyFileError",
    "RebuildError",
    "StoreInUseError",
    "TruncatedFileError",
]


class MQIndexError(Exception):
    """Base of all errors of this package. Attributes: path, at (byte), field, expected, got, hint; None: unknown."""

    def __init__(
        self,
        what: str,
        *,
        path: str | os.PathLike[str] | None = None,
        at: int | None = None,
        field: str | None = None,
        expected: Any = None,
        got: Any = None,
        hint: str | None = None,
    ) -> None:
        self.what = what
        self.path = None if path is None else os.fspath(path)
        self.at = at
        self.field = field
        self.expected = expected
        self.got = got
        self.hint = hint
        super().__init__(what)

    def __str__(self) -> str:
        return sentence(self.what, self.path, self.at, self.field, self.expected, self.got, self.hint)

    def __reduce__(self) -> tuple[Any, ...]:
        details = {name: getattr(self, name) for name in ("path", "at", "field", "expected", "got", "hint")}
        return _restore, (type(self), self.what, details)


def _restore(cls: type[MQIndexError], what: str, details: dict[str, Any]) -> MQIndexError:
    return cls(what, **details)


def sentence(
    what: str,
    path: str | None = None,
    at: int | None = None,
    field: str | None = None,
    expected: Any = None,
    got: Any = None,
    hint: str | None = None,
) -> str:
    """The one shape of a message, for errors and for findings.

    >>> sentence("too short", "a/b", expected="40 bytes or more", got=3)
    'too short: a/b: expected 40 bytes or more, got 3'
    """
    where = " ".join(
        part
        for part in (path, None if field is None else f"field {field}", None if at is None else f"at byte {at}")
        if part is not None
    )
    sizes = ", ".join(
        part
        for part in (
            None if expected is None else f"expected {expected}",
            None if got is None else f"got {got}",
        )
        if part is not None
    )
    text = ": ".join(part for part in (what, where, sizes) if part)
    return text if hint is None else f"{text}; {hint}"


def reason(error: Exception) -> str:
    """What went wrong, as a sentence or a part of one; errors of the operating system without their number.

    >>> reason(FileNotFoundError(2, "No such file or directory", "/data/store"))
    '/data/store: No such file or directory'
    """
    if not isinstance(error, OSError):
        return str(error)
    names = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    return ": ".join([" and ".join(names), error.strerror or str(error)] if names else [error.strerror or str(error)])


def path_of(name: str, path: Any) -> str:
    """A path that a caller gives, as str; `TypeError`, naming the argument: bytes, or no path; `ValueError`: no name.

    An empty one would be the current directory; it is a variable that was not set.

    >>> path_of("store", b"/data/store")
    Traceback (most recent call last):
    TypeError: store: expected a str or a path, got b'/data/store'
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"{name}: expected a str or a path, got {text!r:.80}")
    if not text:
        raise ValueError(f"{name}: expected a path, got an empty one")
    if not may_be_a_name(text):
        raise ValueError(f"{name}: expected a path, got {text!r:.80}, which no file can have as its name")
    return str.__str__(text)  # kernels take no subclass, as NumPy's


def require_switch(name: str, value: object) -> None:
    """`TypeError`, naming the argument, where a switch is neither True nor False, NumPy's included.

    A text is no answer: "no" would count as true.

    >>> require_switch("dry_run", "no")
    Traceback (most recent call last):
    TypeError: dry_run: expected True or False, got 'no'
    """
    if isinstance(value, bool):
        return
    if str(getattr(value, "dtype", None)) != "bool" or getattr(value, "shape", None) != ():
        raise TypeError(f"{name}: expected True or False, got {value!r:.80}")


def may_be_a_name(path: str) -> bool:
    """Whether a file can have it as its name: none has a NUL, nor half a surrogate pair, which has no bytes."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def was_cut(error: BaseException) -> bool:
    """Whether a file was cut while it was open: then what was read says nothing about its content."""
    return isinstance(error, TruncatedFileError) and error.at is None


class FormatError(MQIndexError, ValueError):
    """The bytes are not of this format."""


class TruncatedFileError(FormatError):
    """The file ends before the format says it may; without `at`: it was cut while it was open."""


class BadMagicError(FormatError):
    """A magic code or a name is not that of this format."""


class CorruptIndexError(FormatError):
    """An index file contradicts itself."""


class GeometryError(MQIndexError, ValueError):
    """Size and geometry (hash_slot_num, index_num) disagree, or the geometry cannot be inferred."""


class CapacityError(MQIndexError):
    """There is no room for what was asked."""


class IndexFullError(CapacityError):
    """The index file holds as many entries as it can."""


class OffsetOverflowError(CapacityError, OverflowError):
    """An offset does not fit its field."""


class OutOfOrderError(MQIndexError, ValueError):
    """An append that does not come after the last entry."""


class FileStateError(MQIndexError, ValueError):
    """The file or directory is not in the state that the call needs."""


class ClosedFileError(FileStateError):
    """The object was closed."""


class ReadOnlyFileError(FileStateError):
    """The file was opened for reading; pass `writable=True`."""


class StoreInUseError(FileStateError):
    """A broker holds the lock of the store."""


class OutputExistsError(FileStateError):
    """The output exists and is not empty; nothing is overwritten unless asked."""


class RebuildError(MQIndexError):
    """A worker or the engine died. The message says what is true of the files: mostly that nothing was published."""
