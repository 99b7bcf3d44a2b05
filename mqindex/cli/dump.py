"""`mqindex dump`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import click

from mqindex.cli.formats import FORMATS, Columns
from mqindex.cli.index_files import open_index_file
from mqindex.cli.kinds import (
    BATCH_QUEUE,
    BATCH_QUEUE_FILE,
    COMMIT_LOG_DIR,
    COMMIT_LOG_FILE,
    EXT,
    EXT_FILE,
    INDEX_FILE,
    QUEUE,
    QUEUE_FILE,
    QUEUES,
    require_kind,
)
from mqindex.cli.log_files import log_file_extent
from mqindex.cli.options import StoreOptions, json_option, kind_option, store_options, subcommand
from mqindex.cli.queues import unit_columns
from mqindex.cli.trouble import say

__all__ = ["command"]

_BLOCK = 1 << 16
_UNITS = (QUEUE, QUEUE_FILE, QUEUES, BATCH_QUEUE, BATCH_QUEUE_FILE, EXT, EXT_FILE)
_KINDS = (INDEX_FILE, COMMIT_LOG_DIR, COMMIT_LOG_FILE, *_UNITS)
_MAIN_COLUMNS = (
    "phy_offset",
    "size",
    "store_timestamp",
    "topic",
    "queue_id",
    "queue_offset",
    "uniq_key",
    "keys",
    "tags",
)


@subcommand("dump", "mqindex dump /data/store/index/20231114221320123 --format csv > entries.csv")
@click.argument("path", metavar="PATH")
@click.option(
    "--format", "form", type=click.Choice(list(FORMATS)), default="table", show_default=True, help="How it is written."
)
@kind_option(*_KINDS)
@store_options
@json_option
def command(*, path: str, form: str, kind: str | None, options: StoreOptions, as_json: bool) -> int:
    """Print every entry of an index file, message of a commit log or unit of consume queues; of a directory or a file.

    The table has the columns of a message that people look for, and times in UTC; csv, json and arrow, an Arrow IPC
    stream, have all but body and properties, and times in ms since the epoch. Exit code 1: the commit log is damaged
    in places, which stderr names; the rest was printed.
    """
    kind = require_kind(path, kind, *_KINDS)
    write = FORMATS["json" if as_json else form]
    if kind == INDEX_FILE:
        write(_entries(path, options))
        return 0
    if kind in _UNITS:
        write(unit_columns(path, kind))
        return 0
    damage: list[str] = []
    names = _MAIN_COLUMNS if write is FORMATS["table"] else None
    write(_messages(path, kind, names, damage))
    for sentence in damage:
        say(sentence)
    return 1 if damage else 0


def _entries(path: str, options: StoreOptions) -> Iterator[Columns]:
    import numpy as np

    file, _ = open_index_file(path, options)
    with file:
        header = file.header
        stop = min(max(header.index_count, 1), max(file.index_num, 1))
        for first in range(1, max(stop, 2), _BLOCK):
            last = min(first + _BLOCK, stop)
            block = file.entries(first, last)
            yield {
                "number": np.arange(first, last, dtype=np.int64),
                "key_hash": block["key_hash"],
                "phy_offset": block["phy_offset"],
                "time_diff": block["time_diff"],
                "time": header.begin_timestamp + 1000 * block["time_diff"].astype(np.int64),
                "prev_index": block["prev_index"],
            }


def _messages(path: str, kind: str, names: Sequence[str] | None, damage: list[str]) -> Iterator[Columns]:
    from mqindex.rocketmq import CommitLog

    if kind == COMMIT_LOG_DIR:
        directory, start, stop = path, None, None
    else:
        directory = os.path.dirname(os.path.abspath(path))
        start, stop = log_file_extent(path)
    batch = None
    with CommitLog.open([directory]) as log:
        for batch in log.scan(start, stop, columns=names):
            yield batch
        damage += map(str, log.damage)
    if batch is None:
        yield from _no_messages(names)


def _no_messages(names: Sequence[str] | None) -> Iterator[Columns]:
    """Columns without rows: a reader of CSV or Arrow still learns their names and types."""
    import numpy as np

    from mqindex._native.commit_log import frame_dtype
    from mqindex.rocketmq.log_columns import columns_of, require_columns

    return columns_of(b"", np.empty(0, frame_dtype()), require_columns(names))
