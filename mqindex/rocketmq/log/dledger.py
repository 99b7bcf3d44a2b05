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

import glob
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Final

from mqindex.errors import FileStateError
from mqindex.files.regular import reading
from mqindex.rocketmq.log.log_files import LogFile, Skipped, survey_directories
from mqindex.rocketmq.log.twins import refuse_other_logs
from mqindex.rocketmq.options import StoreOptions

__all__ = ["plain_log_files", "refuse_configured_dledger", "refuse_dledger", "refuse_entries_beside"]

_HEAD = struct.Struct(">2i3q4i")
_MAGICS = range(1, 4)  # the kinds of an entry; a frame has its total_size there, which is more
_WHAT = "a DLedger log, which mqindex does not read"
_EXPECTED = "a plain commit log"
_ENTRY = "an entry of DLedger at its beginning"
_HINT: Final = "leave this store to its broker, which keeps its index and queues"


def refuse_dledger(options: StoreOptions) -> None:
    """`FileStateError` where a store's log is kept by DLedger, by the broker's settings or by the files.

    Entries in `dledger-*/data` count as its log where nothing given says that the broker does without DLedger, and
    also where there is no other log.
    """
    files = _files(options.commitlog)
    _refuse_entries(files)
    refuse_configured_dledger(options)
    if options.dledger is False and files:
        return
    refuse_entries_beside(options.root, f"{_HINT}; if that has left DLedger, its broker.conf (--broker-conf) says so")


def refuse_entries_beside(root: str, hint: str = _HINT) -> None:
    """`FileStateError` where the log of the store at `root` is DLedger's, by the files alone."""
    for path in _entries_beside(root):
        raise FileStateError(_WHAT, path=path, expected=_EXPECTED, got=_ENTRY, hint=hint)


def refuse_configured_dledger(options: StoreOptions) -> None:
    """The same by the broker's settings alone, for what reads no log."""
    if options.dledger:
        got = "enableDLegerCommitLog=true"
        raise FileStateError(_WHAT, path=options.root, expected=_EXPECTED, got=got, hint=_HINT)


def plain_log_files(directories: Sequence[str | os.PathLike[str]]) -> tuple[list[LogFile], list[Skipped]]:
    """As `survey_directories`, of what was given as one commit log: not one of DLedger, nor two logs."""
    files, skipped = survey_directories(directories)
    _refuse_entries(files)
    refuse_other_logs(skipped)
    return files, skipped


def _refuse_entries(files: Sequence[LogFile]) -> None:
    for file in files[:2]:  # a file may have been cut
        if _begins_with_entry(file):
            raise FileStateError(_WHAT, path=file.path, expected=_EXPECTED, got=_ENTRY, hint=_HINT)


def _entries_beside(root: str) -> Iterator[str]:
    for directory in sorted(glob.glob(os.path.join(glob.escape(root), "dledger-*", "data"))):
        yield from (file.path for file in _files([directory])[:2] if _begins_with_entry(file))


def _files(directories: Sequence[str]) -> list[LogFile]:
    try:
        return survey_directories(directories)[0]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _begins_with_entry(file: LogFile) -> bool:
    try:
        with reading(file.path, buffered=False) as opened:
            head = opened.read(_HEAD.size)
    except FileNotFoundError:  # deleted since it was listed
        return False
    if len(head) < _HEAD.size:
        return False
    magic, size, _, _, pos, _, _, _, body_size = _HEAD.unpack(head)
    return magic in _MAGICS and pos == file.start and size == _HEAD.size + body_size and body_size >= 0
