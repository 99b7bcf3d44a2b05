"""Messages at many places of a log, as columns: the frames of each file are decoded together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from mqindex._native.commit_log import scan_at
from mqindex._native.log_columns import columns_at
from mqindex._words import plural
from mqindex.columns.columns import Columns
from mqindex.errors import FormatError, was_cut
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.messages.body_column import decompressed_bodies
from mqindex.rocketmq.messages.log_columns import as_columns, no_messages, typed
from mqindex.rocketmq.messages.message import Message
from mqindex.rocketmq.serving.query_message import look_message

_Ints = npt.NDArray[np.int64]
_Look = Callable[[CommitLog, int], Message | None]
_MOST = 1 << 13  # places at a time


def get_many(log: CommitLog, phy_offsets: _Ints, names: tuple[str, ...], *, decompress: bool) -> Columns:
    """The messages at places in the order asked, with the column `row`, the number of the place, before the others."""
    rows, found = messages_at(log, phy_offsets, names, look_message, decompress=decompress)
    return Columns({"row": rows, **found}, num_rows=len(rows))


def messages_at(
    log: CommitLog, phy_offsets: _Ints, names: tuple[str, ...], look: _Look, *, decompress: bool
) -> tuple[_Ints, Columns]:
    """The messages at places in any order: which of the places have one, and for each of these a row.

    look : asked where there is no good frame; its answer, or error, is that of the single call. decompress : bodies as
        their producers sent them. One that does not decompress is null, and a UserWarning says so.
    """
    distinct, numbers = np.unique(phy_offsets, return_inverse=True)
    more = ("sys_flag",) if decompress and "body" in names else ()
    taken = tuple(dict.fromkeys((*names, *more)))
    broken: list[tuple[int, FormatError]] = []
    row_of, parts = np.full(len(distinct), -1, np.int64), list[Columns]()
    for places, columns in _decoded(log, distinct, taken, look):
        row_of[places] = np.arange(len(places)) + sum(len(part) for part in parts)
        parts.append(_with_bodies(columns, distinct[places], names, broken) if more else columns)
    _warn(broken)
    found = Columns.concat(parts) if parts else no_messages(names)
    asked = np.flatnonzero(row_of[numbers] >= 0)
    rows = row_of[numbers[asked]]
    return asked, typed(found if np.array_equal(rows, np.arange(len(found))) else found.take(rows))


def _decoded(log: CommitLog, places: _Ints, names: tuple[str, ...], look: _Look) -> Iterator[tuple[_Ints, Columns]]:
    """Numbers of places, and the messages there; places ascend."""
    starts = np.array([file.start for file in log.files], np.int64)
    cuts = np.flatnonzero(np.diff(np.searchsorted(starts, places, "right"))) + 1
    for in_file in np.split(np.arange(len(places)), cuts):
        for first in range(0, len(in_file), _MOST):
            numbers = in_file[first : first + _MOST]
            sizes = _sizes(log, places[numbers], look)
            numbers, sizes = numbers[sizes > 0], sizes[sizes > 0]
            while len(numbers):
                file, buf = log._frames_at(places[numbers], sizes)
                made, n = columns_at(buf, file.start, places[numbers], sizes, names)
                if n == len(numbers):
                    yield numbers, as_columns(made, n)
                    break
                numbers, sizes = np.delete(numbers, n), np.delete(sizes, n)  # what was just read has changed meanwhile


def _sizes(log: CommitLog, places: _Ints, look: _Look) -> npt.NDArray[np.int32]:
    """The sizes of the frames at places of one file; 0: there is none."""
    try:
        file, buf = log._frames_at(places, np.zeros(len(places), np.int32))
    except FormatError as error:
        if was_cut(error):
            raise
        return np.zeros(len(places), np.int32)  # outside of the log, or deleted
    frames, whole = scan_at(buf, file.start, places, check_crc=True)
    sizes = np.where(whole, frames["size"], np.int32(0)).astype(np.int32)
    for number in np.flatnonzero(~whole).tolist():
        message = look(log, int(places[number]))
        sizes[number] = 0 if message is None else message.size
    return sizes


def _with_bodies(
    columns: Columns, places: _Ints, names: tuple[str, ...], broken: list[tuple[int, FormatError]]
) -> Columns:
    def remember(row: int, error: FormatError) -> None:
        broken.append((int(places[row]), error))

    body = decompressed_bodies(columns["body"], columns["sys_flag"], remember)
    return Columns({name: body if name == "body" else columns[name] for name in names}, num_rows=len(columns))


def _warn(broken: list[tuple[int, FormatError]]) -> None:
    if broken:
        at, error = broken[0]
        warnings.warn(
            f"{plural(len(broken), 'body', 'bodies')} cannot be decompressed and are null; the first is that of the "
            f"message at phy offset {at}: {error.what}. With decompress=False bodies are given as stored",
            stacklevel=5,  # whoever called the store
        )
