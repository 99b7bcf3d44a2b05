"""The record of a backup: which names changed, after which backups, and so in which order backups are put back.

A backup can be put back when all later changes are taken back: the newest one can, and where the newest took back
another one, also those that could be put back before that one was made. The newest has the largest `number`: clocks
may go back.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from mqindex.errors import FileStateError
from mqindex.files import disk
from mqindex.files.reading.regular import reading
from mqindex.files.reading.sparse import SparseFile

RECORD = "changes.json"
_BLOCK = 1 << 20
_SCHEMA = "mqindex.backup/1"


class Entry(NamedTuple):
    """A name that changes. `kept`: it led to something, which is in the backup under this name; else it was new."""

    name: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Record:
    """`after`: the backups of the same directory, by name, that could be put back before this change.

    `takes_back`: the backup that this change puts back. `restores`: those that could be put back before that backup was
    made; they can be again after this change.
    `sums`: length of each file that is kept, and BLAKE2b-128 of its blocks that are not all zeros, each after its
    position.
    """

    number: int
    changes: tuple[Entry, ...]
    after: tuple[str, ...] = ()
    takes_back: str | None = None
    restores: tuple[str, ...] = ()
    sums: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The record as its file holds it."""
        fields = {"schema": _SCHEMA, **asdict(self), "changes": [one._asdict() for one in self.changes]}
        return json.dumps(fields, indent=1).encode("ascii")


def new_record(root: str, changes: Sequence[Entry], takes_back: str | None) -> Record:
    """The record of the changes that are about to be made in `root`."""
    there = recorded(root)
    restores = there[takes_back].after if takes_back in there else ()
    number = 1 + max((one.number for one in there.values()), default=0)
    kept = (os.path.join(root, one.name) for one in changes if one.kept)
    sums = {os.path.relpath(path, root): _sum(path) for top in kept for path in _regular(top)}
    return Record(number, tuple(changes), tuple(_next(there)), takes_back, restores, sums)


def require_intact(backup: str) -> None:
    """`FileStateError` where a kept file is not what it was.

    An interrupted run leaves a name out of the backup: it was not replaced yet, so it has its place as it was; or it is
    back there, where a broker may have written to it since.
    """
    record, (root, name) = read_record(backup), os.path.split(backup)
    tops = [one.name for one in record.changes if one.kept and disk.exists(os.path.join(backup, one.name))]
    goes_back = any(one.takes_back == name for one in recorded(root).values())
    for file, (length, digest) in record.sums.items():
        is_kept = any(file == top or file.startswith(os.path.join(top, "")) for top in tops)
        path = os.path.join(backup if is_kept else root, file)
        found = _sum(path) if disk.is_file(path) else None
        if found != (length, digest) and (is_kept or not goes_back):
            raise FileStateError(
                "a file of this backup is not what was put there; nothing was changed",
                path=os.path.join(backup, file),
                expected=f"{length} bytes, BLAKE2b {digest}",
                got=f"{found[0]} bytes, BLAKE2b {found[1]}" if found and is_kept else "no file",
                hint="`repair` writes it from the log; other backups are checked with --undo BACKUP --dry-run",
            )


def _regular(path: str) -> Iterator[str]:
    """The files that a name leads to, without links."""
    mode = os.lstat(path).st_mode
    if stat.S_ISDIR(mode):
        for name in sorted(os.listdir(path)):
            yield from _regular(os.path.join(path, name))
    elif stat.S_ISREG(mode):
        yield path


def _sum(path: str) -> tuple[int, str]:
    """What is put away may be a file of terabytes, nearly all a hole: that is passed over."""
    digest, read_to = hashlib.blake2b(digest_size=16), 0
    with SparseFile(path) as file:
        for start, stop in file.stretches():
            for at in range(max(start - start % _BLOCK, read_to), stop, _BLOCK):
                read_to = min(at + _BLOCK, file.size)
                if (block := file.read(at, read_to)).strip(b"\0"):
                    digest.update(at.to_bytes(8, "big") + block)
    return file.size, digest.hexdigest()


def require_next(backup: str) -> None:
    """`FileStateError` where later changes build on those of this backup: it names the one to put back first."""
    root, name = os.path.split(backup)
    there = recorded(root)
    if name not in there or name in (following := _next(there)) or there[following[0]].takes_back == name:
        return
    first = following[-1]
    raise FileStateError("not the newest change here", path=backup, hint=f"put {first} back first")


def _next(there: dict[str, Record]) -> list[str]:
    """The backups that can be put back, the newest first."""
    if not there:
        return []
    newest = max(there, key=lambda name: there[name].number)
    done = there[newest].takes_back not in there  # else it was interrupted
    return [newest, *(name for name in there[newest].restores if done and name in there)]


def recorded(root: str) -> dict[str, Record]:
    """The backups in `root` that say what they are, by name."""
    found = {}
    for name in sorted(os.listdir(root)):
        if name.startswith("mqindex-backup-") and disk.is_file(path := os.path.join(root, name, RECORD)):
            try:
                found[name] = _read(path)
            except (OSError, FileStateError):
                continue  # whoever asks for this backup gets the error
    return found


def read_record(backup: str) -> Record:
    """The record of one backup; for an empty directory, as a run killed at its end leaves it, one without changes."""
    path = os.path.join(backup, RECORD)
    if disk.exists(path):
        return _read(path)
    if not os.listdir(backup):
        return Record(0, ())
    raise FileStateError(
        "this backup does not say what the repair did",
        path=backup,
        expected=f"the file {RECORD} in it",
        hint="older versions wrote none: move its files to their places by hand",
    )


def _read(path: str) -> Record:
    with reading(path) as file:
        text = file.read()
    try:
        return _parsed(json.loads(text))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise FileStateError("not the record of a backup", path=path, expected=_SCHEMA) from None


def _parsed(fields: Any) -> Record:
    """`ValueError`, `LookupError` or `TypeError` where it is none."""
    changes = tuple(Entry(one["name"], one["kept"]) for one in fields["changes"])
    sums = {name: (length, digest) for name, (length, digest) in fields["sums"].items()}
    after, restores = tuple(fields["after"]), tuple(fields["restores"])
    record = Record(fields["number"], changes, after, fields["takes_back"], restores, sums)
    names = [*record.after, *record.restores, *([] if record.takes_back is None else [record.takes_back])]
    if (
        fields["schema"] != _SCHEMA
        or type(record.number) is not int
        or not all(_inside(one.name) and isinstance(one.kept, bool) for one in changes)
        or not all(isinstance(name, str) for name in names)
        or not all(_inside(name) for name in sums)
    ):
        raise ValueError
    return record


def _inside(name: object) -> bool:
    """Whether a name stays below the root: anybody may have written it. `UnicodeEncodeError`: no file can have it."""
    return isinstance(name, str) and not {b"", b".", b".."} & set(os.fsencode(name).split(b"/")) and "\0" not in name
