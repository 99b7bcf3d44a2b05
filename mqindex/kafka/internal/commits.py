"""`decode_commits`: what `__consumer_offsets` says of the groups' offsets."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex.columns.columns import BinaryColumn, Columns, StringColumn
from mqindex.kafka.internal.cursors import Cursors, Texts, text_column
from mqindex.kafka.internal.layouts import GROUP_KEY, OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE
from mqindex.kafka.internal.rows import MARKER, NONE, UNREADABLE, control, made, texts, times

_COMMIT, _DELETED, _GROUP, _OTHER = "commit", "deleted", "group", "other"
_KINDS: Final = (_COMMIT, _DELETED, _GROUP, _OTHER, MARKER, UNREADABLE)
_GROUP_KEYS: Final = GROUP_KEY.last


def decode_commits(records: Columns) -> Columns:
    """What the records of `__consumer_offsets` say, a row each.

    Parameters
    ----------
    records : Columns with key and value, as of `LogSegment.records` or `PartitionLog.read`; with is_control, markers
        are known as such. Its partition, offset and timestamp become record_partition, record_offset, record_timestamp.

    Returns
    -------
    Columns : kind text, group text, topic text, partition int32, offset int64 (the committed one), leader_epoch int32,
        metadata text, commit_time and expire_time datetime64[ms] (the latter only where a client asked for it, or a
        broker up to 2.0 wrote it), problem text. What a row has not is null, -1 or NaT.
        kind is "commit"; "deleted": the commit of this group, topic and partition is gone, because it expired or was
        deleted; "group": a group's members, of which only the group is given; "other": of the newer kinds of groups;
        "marker": the end of a transaction; "unreadable": bytes that are none of this, and `problem` says why.

    Notes
    -----
    Commits of a transaction count only when it was committed: `isolation_level="read_committed"` reads those. The topic
    is compacted, so old commits may be gone.
    Source: Kafka 4.4.0 `GroupCoordinatorRecordSerde`, `OffsetCommitKey`, `OffsetCommitValue`, value versions 0 to 4.

    Examples
    --------
    >>> key = bytes.fromhex("0001" "0003" "617070" "0006" "6f7264657273" "00000002")
    >>> value = bytes.fromhex("0003" "000000000000002a" "00000005" "0000" "0000018bcfe56800")
    >>> column = lambda data: BinaryColumn(np.frombuffer(data, np.uint8), np.array([0, len(data)]))
    >>> commits = decode_commits(Columns({"key": column(key), "value": column(value)}))
    >>> [commits[name].tolist() for name in ("partition", "offset", "leader_epoch")], str(commits["commit_time"][0])
    ([[2], [42], [5]], '2023-11-14T22:13:20.000')
    >>> [commits[name].to_pylist() for name in ("kind", "group", "topic", "metadata")]
    [['commit'], ['app'], ['orders'], ['']]
    """
    return _Commits(records).columns()


class _Commits:
    """The columns, as they are filled."""

    def __init__(self, records: Columns) -> None:
        self._records = records
        self._keys: BinaryColumn = records["key"]
        self._values: BinaryColumn = records["value"]
        n = records.num_rows
        self._kind = np.full(n, _KINDS.index(UNREADABLE), np.int8)
        self._texts = {name: Texts(*np.zeros((2, n), np.int64)) for name in ("group", "topic", "metadata")}
        self._numbers = {
            name: np.full(n, NONE, np.int64)
            for name in ("partition", "offset", "leader_epoch", "commit_time", "expire_time")
        }
        self._problems: dict[int, str] = {}

    def columns(self) -> Columns:
        is_marker = control(self._records)
        self._kind[is_marker] = _KINDS.index(MARKER)
        rows = np.flatnonzero(_there(self._keys) & ~is_marker)
        self._bad(np.flatnonzero(~_there(self._keys) & ~is_marker), "there is no key")
        keys = Cursors(self._keys, rows)
        versions = keys.number("int16")
        self._bad(rows[~keys.good], "the key is shorter than a version")
        for which in (keys.good & (versions > _GROUP_KEYS), keys.good & (versions < 0)):
            self._kind[rows[which]] = _KINDS.index(_OTHER)
        groups = rows[keys.good & (versions == _GROUP_KEYS)]
        self._kind[self._read_keys(groups, GROUP_KEY)] = _KINDS.index(_GROUP)
        commits = self._read_keys(rows[keys.good & (versions >= 0) & (versions < _GROUP_KEYS)], OFFSET_COMMIT_KEY)
        has_value = _there(self._values)[commits]
        self._kind[commits[~has_value]] = _KINDS.index(_DELETED)
        self._read_values(commits[has_value])
        return made(self._made(), self._records)

    def _read_keys(self, rows: npt.NDArray[np.intp], layout: Any) -> npt.NDArray[np.intp]:
        """The rows whose keys are whole."""
        cursors = Cursors(self._keys, rows)
        cursors.number("int16")
        self._put(rows, cursors, cursors.read(layout, layout.last))
        self._bad(rows[~cursors.good], "the key's lengths lead outside it")
        return rows[cursors.good]

    def _read_values(self, rows: npt.NDArray[np.intp]) -> None:
        cursors = Cursors(self._values, rows)
        versions = cursors.number("int16")
        self._bad(rows[~cursors.good], "the value is shorter than a version")
        known = cursors.good & (versions >= 0) & (versions <= OFFSET_COMMIT_VALUE.last)
        self._bad(rows[cursors.good & ~known], f"the value's version is none of 0 to {OFFSET_COMMIT_VALUE.last}")
        for version in np.unique(versions[known]).tolist():
            some = rows[known & (versions == version)]
            cursors = Cursors(self._values, some)
            cursors.number("int16")
            self._put(some, cursors, cursors.read(OFFSET_COMMIT_VALUE, version))
            self._kind[some[cursors.good]] = _KINDS.index(_COMMIT)
            self._bad(some[~cursors.good], "the value's lengths lead outside it")

    def _put(self, rows: npt.NDArray[np.intp], cursors: Cursors, fields: dict[str, Any]) -> None:
        good = cursors.good
        for name, field in fields.items():
            if isinstance(field, Texts):
                mine = self._texts[name]
                mine.starts[rows[good]], mine.sizes[rows[good]] = field.starts[good], field.sizes[good]
            else:
                self._numbers[name][rows[good]] = field[good]

    def _bad(self, rows: npt.NDArray[np.intp], why: str) -> None:
        self._problems.update(dict.fromkeys(rows.tolist(), why))

    def _made(self) -> dict[str, Any]:
        kind = self._kind
        has_commit = kind == _KINDS.index(_COMMIT)
        of_commits = has_commit | (kind == _KINDS.index(_DELETED))
        numbers = {name: np.where(has_commit, column, NONE) for name, column in self._numbers.items()}
        partition = np.where(of_commits, self._numbers["partition"], NONE)
        return {
            "kind": _named(kind),
            "group": self._text("group", self._keys, of_commits | (kind == _KINDS.index(_GROUP))),
            "topic": self._text("topic", self._keys, of_commits),
            "partition": partition.astype(np.int32),
            "offset": numbers["offset"],
            "leader_epoch": numbers["leader_epoch"].astype(np.int32),
            "metadata": self._text("metadata", self._values, has_commit),
            "commit_time": times(numbers["commit_time"]),
            "expire_time": times(numbers["expire_time"]),
            "problem": texts(self._problems.get(row) for row in range(len(kind))),
        }

    def _text(self, name: str, column: BinaryColumn, there: npt.NDArray[np.bool_]) -> StringColumn:
        return text_column(column, self._texts[name], there)


def _there(column: BinaryColumn) -> npt.NDArray[np.bool_]:
    return np.ones(len(column), np.bool_) if column.valid is None else column.valid


def _named(kind: npt.NDArray[np.int8]) -> StringColumn:
    return texts(map(_KINDS.__getitem__, kind.tolist()))
