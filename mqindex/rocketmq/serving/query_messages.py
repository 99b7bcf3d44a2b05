"""Messages of many keys at once: one search of the index for all, the log's frames decoded and compared together."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mqindex.columns.columns import BinaryColumn, Columns, StringColumn
from mqindex.columns.keys import Keys, key_hashes
from mqindex.columns.texts import TextSet, equal_rows, pieces_of, text_column, words_of
from mqindex.rocketmq.index.index_service import IndexService
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.serving.messages_at import messages_at
from mqindex.rocketmq.serving.query_message import readable

_Ints = npt.NDArray[np.int64]
_Pairs = tuple[_Ints, _Ints]
"""Numbers of keys, and as many phy offsets."""

_COMPARED = ("topic", "uniq_key", "keys", "tags")
_TAGS_PREFIX = np.frombuffer(b"T#", np.uint8)  # a 5.4 broker indexes TAGS as topic#T#TAGS


def query_messages(
    index: IndexService | None,
    log: CommitLog,
    topic: str,
    keys: Keys,
    max_num: int,
    begin: int,
    end: int,
    names: tuple[str, ...],
    *,
    exact: bool,
    decompress: bool,
) -> Columns:
    """What `query_message` gives for each key, one after the other, with the column `key_number` before the others."""
    if isinstance(keys, Iterator):
        keys = list(keys)
    hashes = key_hashes(keys, topic=topic)
    if index is None or not index.files:
        numbers = places = np.empty(0, np.int64)
        if log.files:
            said = f"{log.files[0].path}: the store of this log has no index file, and no message is found by its key"
            warnings.warn(f"{said}; repair the store, or read the log: scan(keys=...)", UserWarning, stacklevel=3)
    elif exact:
        numbers, places = _exact(index, log, topic, _column(keys), hashes, max_num, begin, end)
    else:
        numbers, places = _answered(index, hashes, max_num, begin, end)
    order = np.lexsort((places, numbers))
    rows, found = messages_at(log, places[order], names, readable, decompress=decompress)
    return Columns({"key_number": numbers[order][rows], **found}, num_rows=len(rows))


def _answered(index: IndexService, hashes: npt.NDArray[np.int32], max_num: int, begin: int, end: int) -> _Pairs:
    hits = index._hits(hashes, max_num, begin, end)
    return np.repeat(np.arange(len(hits)), np.diff(hits.offsets)), hits.values


def _exact(
    index: IndexService,
    log: CommitLog,
    topic: str,
    keys: BinaryColumn,
    hashes: npt.NDArray[np.int32],
    max_num: int,
    begin: int,
    end: int,
) -> _Pairs:
    """The newest `max_num` messages that really have each key. Who has too few of them is asked for more places."""
    asked, most = np.arange(len(keys)), max_num
    parts: list[_Pairs] = [(asked[:0], asked[:0])]
    while len(asked):
        numbers, places = _answered(index, hashes[asked], most, begin, end)
        answered = np.bincount(numbers, minlength=len(asked))
        numbers, places = _once(numbers, places)
        kept = _having(log, topic, keys, asked[numbers], places)
        numbers, places = numbers[kept], places[kept]
        rank = np.arange(len(numbers)) - np.searchsorted(numbers, numbers)
        done = (answered < most) | (np.bincount(numbers, minlength=len(asked)) >= max_num)
        chosen = (rank < max_num) & done[numbers]
        parts.append((asked[numbers[chosen]], places[chosen]))
        asked, most = asked[~done], 4 * most
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _once(numbers: _Ints, places: _Ints) -> _Pairs:
    """Each pair where it comes first."""
    order = np.lexsort((places, numbers))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(numbers[order]) != 0) | (np.diff(places[order]) != 0)
    first = np.sort(order[new])
    return numbers[first], places[first]


def _having(log: CommitLog, topic: str, keys: BinaryColumn, numbers: _Ints, places: _Ints) -> npt.NDArray[np.bool_]:
    """Which places hold a message that a broker indexes by `topic#key`: `has_key` of many."""
    rows, found = messages_at(log, places, _COMPARED, readable, decompress=False)
    having = np.zeros(len(places), np.bool_)
    having[rows] = _of_topic(topic, found["topic"]) & _with_keys(found, keys.take(numbers[rows]))
    return having


def _of_topic(topic: str, column: StringColumn) -> npt.NDArray[np.bool_]:
    return TextSet([_encoded(topic)]).among(column.well_formed()) if topic else np.diff(column.offsets) == 0


def _with_keys(messages: Columns, keys: BinaryColumn) -> npt.NDArray[np.bool_]:
    """Which messages have the key of their row: as unique key, among their KEYS, or as "T#" and their tags."""
    found = equal_rows(messages["uniq_key"].well_formed(), keys)
    words, rows = words_of(messages["keys"].well_formed())
    found[rows[equal_rows(words, keys.take(rows))]] = True
    starts, stops = keys.offsets[:-1], keys.offsets[1:]
    of_tags = np.flatnonzero(stops - starts > len(_TAGS_PREFIX))
    head = keys.data[starts[of_tags, None] + np.arange(len(_TAGS_PREFIX))]
    of_tags = of_tags[(head == _TAGS_PREFIX).all(axis=1)]
    tags = pieces_of(keys.data, starts[of_tags] + len(_TAGS_PREFIX), stops[of_tags])
    found[of_tags] |= equal_rows(messages["tags"].well_formed().take(of_tags), tags)
    return found & (stops > starts)


def _column(keys: Keys) -> BinaryColumn:
    """Keys of any origin that were hashed, so they are text."""
    as_list = next((name for name in ("to_pylist", "to_list", "tolist") if hasattr(keys, name)), None)
    texts = list(keys) if as_list is None else getattr(keys, as_list)()
    return text_column(text if isinstance(text, bytes) else _encoded(text) for text in texts)


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
