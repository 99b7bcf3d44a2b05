"""Logs that DLedger keeps, the replication of RocketMQ 4.5 and later: they are recognised, and refused.

Such a log is `<store>/dledger-<id>/data`. A file of it begins with an entry, which names its own place and holds a
frame of a commit log, or another body:

```
entry
0       4      8       16     24    32        36          40         44          48
+-------+------+-------+------+-----+---------+-----------+----------+-----------+-----------+
| magic | size | index | term | pos | channel | chain_crc | body_crc | body_size | body      |
| i32   | i32  | i64   | i64  | i64 | i32     | i32       | i32      | i32       | body_size |
+-------+------+-------+------+-----+---------+-----------+----------+-----------+-----------+
```

Taken for a commit log, it would be damage from end to end, and the index and the queues would be cut.
Source: DLedger 0.2.3 `DLedgerEntry`, `DLedgerEntryCoder`; RocketMQ 4.9.3 and 5.5.0 `DLedgerCommitLog`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from mqindex.errors import FileStateError
from mqindex.files import disk
from mqindex.files.paths import absolute, base_name, is_link, join, split
from mqindex.files.reading.regular import reading
from mqindex.rocketmq.kinds import names_in
from mqindex.rocketmq.layout import MAGIC_BLANK, MAGIC_MESSAGE_V1, MAGIC_MESSAGE_V2
from mqindex.rocketmq.log.log_files import LogFile, Skipped, refuse_other_logs, survey_directories
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.settings import DLEDGER

_HEAD = struct.Struct(">2i3q4i")
_MAGICS = range(1, 4)  # the kinds of an entry; a frame has its total_size there, which is more
_OF_FRAMES = (MAGIC_MESSAGE_V1, MAGIC_MESSAGE_V2, MAGIC_BLANK)
_NAME = "dledger-"  # `dledger-<id>`, which no plain broker makes
_WHAT = "a DLedger log, which mqindex does not read"
_EXPECTED = "a plain commit log"
_ENTRY = "an entry of DLedger at its beginning"
_HINT: Final = "leave this store to its broker, which keeps its index and queues"
_LEFT: Final = f"{_HINT}; if that has left DLedger, its broker.conf (--broker-conf) says so"
_MOUNTED: Final = f"is its volume mounted? {_LEFT}"


def refuse_dledger(options: StoreOptions) -> None:
    """`FileStateError` where a store's log is kept by DLedger, by the broker's settings or by the files.

    Where nothing given says that the broker does without DLedger, any trace of it counts: what it had of the log may be
    damaged, or on a volume that is not mounted. Else entries in `dledger-*/data` do where there is no other log.
    """
    files = _files(options.commitlog)
    _refuse_entries(options.commitlog, files)
    refuse_configured_dledger(options)
    if options.known(DLEDGER) is False and files:
        return
    refuse_entries_beside(options.root, _LEFT)
    if options.known(DLEDGER) is None:
        _refuse_traces(options.root)


def refuse_entries_beside(root: str, hint: str = _HINT) -> None:
    """`FileStateError` where the log of the store at `root` is DLedger's, by its entries alone."""
    for path in _entries_beside(root):
        raise FileStateError(_WHAT, path=path, expected=_EXPECTED, got=_ENTRY, hint=hint)


def refuse_entries_after(options: StoreOptions, phy_offsets: Iterable[int]) -> None:
    """`FileStateError` where messages after the end of a plain log, by index and queues, lie as in entries of DLedger.

    A broker that goes over to DLedger fills its plain log up to the end of a file, and DLedger goes on from there, or
    begins at 0: the first message is inside the first entry. A frame is longer than an entry's head: no plain log has
    one there.

    phy_offsets : those after the log's end; all, where there is no log.
    """
    first = min(phy_offsets, default=None)
    if options.known(DLEDGER) is False or first is None:
        return
    files = _files(options.commitlog)
    if first == _HEAD.size or (files and first >= files[0].size and first % files[0].size == _HEAD.size):
        where = f"the first message after its end at phy offset {first}, {_HEAD.size} bytes after the start of a file"
        got = f"{where}, as in an entry of DLedger"
        raise FileStateError(_WHAT, path=options.root, expected=_EXPECTED, got=got, hint=_MOUNTED)


def refuse_configured_dledger(options: StoreOptions) -> None:
    """The same by the broker's settings alone, for what reads no log."""
    if options.known(DLEDGER):
        got = "enableDLegerCommitLog=true"
        raise FileStateError(_WHAT, path=options.root, expected=_EXPECTED, got=got, hint=_HINT)


def plain_log_files(directories: Sequence[str | os.PathLike[str]]) -> tuple[list[LogFile], list[Skipped]]:
    """As `survey_directories`, of what was given as one commit log: not one of DLedger, nor two logs."""
    files, skipped = survey_directories(directories)
    _refuse_entries([os.fspath(one) for one in directories], files)
    refuse_other_logs(skipped)
    return files, skipped


def _refuse_entries(directories: Sequence[str], files: Sequence[LogFile]) -> None:
    """The log that was given: a directory of DLedger's, whatever its files are, or files with entries."""
    for directory in directories:
        home, name = split(absolute(directory))
        if name == "data" and base_name(home).startswith(_NAME):
            raise FileStateError(_WHAT, path=directory, expected=_EXPECTED, got="a directory of DLedger", hint=_HINT)
    for path in _with_entries(files):
        raise FileStateError(_WHAT, path=path, expected=_EXPECTED, got=_ENTRY, hint=_HINT)


def _refuse_traces(root: str) -> None:
    for home in _homes(root):
        if any(_is_frame(_head(file)) for file in _files([join(home, "data")])):  # a copy of a plain log
            continue
        names = ", ".join(names_in(home)) or "nothing"
        got = f"a directory of DLedger, but no entry in its data; {names} in it"
        raise FileStateError(_WHAT, path=home, expected=_EXPECTED, got=got, hint=_MOUNTED)


def _homes(root: str) -> list[str]:
    """The directories `dledger-<id>`, also one that is a link and leads nowhere."""
    homes = [join(root, name) for name in names_in(root) if name.startswith(_NAME)]
    return [home for home in homes if disk.is_directory(home) or is_link(home)]


def _entries_beside(root: str) -> Iterator[str]:
    for home in _homes(root):
        yield from _with_entries(_files([join(home, "data")]))


def _with_entries(files: Sequence[LogFile]) -> Iterator[str]:
    """Those that begin with an entry, up to the first that begins with a frame: it shows that the log is plain."""
    for file in files:
        head = _head(file)
        if _is_entry(head, file.start):
            yield file.path
        elif _is_frame(head):
            return


def _files(directories: Sequence[str]) -> list[LogFile]:
    try:
        return survey_directories(directories)[0]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _head(file: LogFile) -> bytes:
    try:
        with reading(file.path, buffered=False) as opened:
            return opened.read(_HEAD.size) or b""
    except FileNotFoundError:  # deleted since it was listed
        return b""


def _is_frame(head: bytes) -> bool:
    return int.from_bytes(head[4:8], "big", signed=True) in _OF_FRAMES


def _is_entry(head: bytes, start: int) -> bool:
    if len(head) < _HEAD.size:
        return False
    magic, size, _, _, pos, _, _, _, body_size = _HEAD.unpack(head)
    return magic in _MAGICS and pos == start and size == _HEAD.size + body_size and body_size >= 0
