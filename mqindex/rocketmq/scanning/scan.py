"""`scan`: the messages of a log that match, as typed columns."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from typing import Final, Unpack

from mqindex._native.numbers import whole_number
from mqindex._options import with_options_of
from mqindex.columns.columns import Column, Columns, chosen_columns
from mqindex.columns.numbers import Time
from mqindex.errors import BadMagicError, FormatError, require_switch
from mqindex.files import disk
from mqindex.files.closable import Closable
from mqindex.files.paths import absolute, base_name, parent_of
from mqindex.files.places.place import Place, given_path
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.directories.store import homes_of
from mqindex.rocketmq.kinds import kind_of_directory
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.log.damage import Damage
from mqindex.rocketmq.log.log_files import LogFile
from mqindex.rocketmq.log.log_scan import first_at
from mqindex.rocketmq.messages.body_column import decompressed_bodies
from mqindex.rocketmq.messages.log_columns import COLUMNS, no_messages, typed
from mqindex.rocketmq.options import StoreArguments, store_options
from mqindex.rocketmq.scanning.indexed_keys import IndexedKeys
from mqindex.rocketmq.scanning.log_end import LogEnd
from mqindex.rocketmq.scanning.matches import Matches
from mqindex.rocketmq.scanning.message_filter import MessageFilter
from mqindex.rocketmq.serving.opening import open_log, require_a_part
from mqindex.rocketmq.tally.log_zones import LogZones
from mqindex.zones.cache import Cache, ZoneCache

_AT_ONCE: Final = 8192  # places from the index: a key may be that of every message


@with_options_of(store_options)
def scan(
    store: str | os.PathLike[str],
    *,
    topic: str | Iterable[str] | None = None,
    queue_id: int | Iterable[int] | None = None,
    begin: Time | None = None,
    end: Time | None = None,
    start_offset: int | None = None,
    end_offset: int | None = None,
    keys: str | Iterable[str] | None = None,
    tags: str | None = None,
    columns: Iterable[str] | None = None,
    decompress: bool = True,
    cache: Cache = None,
    **given: Unpack[StoreArguments],
) -> Scan:
    """The messages of a store's log that match all that is given, in the log's order.

    The log alone decides what matches: queues and index files, which may lack messages, are not believed. Where a
    period or a topic is given, the first scan reads the heads of all messages once, and keeps the least and greatest
    time and the topics of each quarter of a MiB in `cache`; later scans read what can match. `verify(deep=True)` keeps
    there too which files of the log the index has wholly: keys of a topic are then looked up for these, and compared.

    Parameters
    ----------
    store : path or URL of a store, of the directory of a commit log, or of one of its files
    topic : str, or several
    queue_id : int, or several
    begin, end : ms since the epoch, an aware datetime or a datetime64, of the store timestamp: begin <= t < end
    start_offset, end_offset : int, phy offsets at which messages begin
    keys : str, or several: messages that have one of them as unique key, among their KEYS, or as "T#" and their tags
    tags : an expression like `TagA || TagB`, compared as strings
    columns : names; None: all: topic, queue_id int32, queue_offset, phy_offset int64, size int32, store_timestamp,
        born_timestamp datetime64[ms] (UTC), tags, keys, uniq_key (null where there is none), sys_flag, flag, body_crc,
        reconsume_times int32, prepared_transaction_offset int64, born_host, store_host, msg_id, body (bytes),
        properties (a map)
    decompress : bool; False: bodies as stored
    cache : a directory; None: `mqindex/zones` in the user's cache directory; False: nothing is kept
    config, commitlog, hash_slot_num, index_num, broker_version, storage_options : store options

    Returns
    -------
    Scan : an iterator of `Columns`

    Raises
    ------
    ValueError, TypeError : a column that does not exist, an argument of another kind
    FileNotFoundError, BadMagicError : there is no log
    ImportError : a body of LZ4 or ZSTD needs the extra `codecs`

    Notes
    -----
    Source: RocketMQ 4.9.3 `CommitLog.checkMessageAndReturnSize`, `MessageDecoder`, and for tags `FilterAPI`.

    Examples
    --------
    >>> with scan("store", topic="LostTopic", keys=["ORD59361344"], columns=["phy_offset", "tags", "body"]) as messages:
    ...     for batch in messages:
    ...         print(len(batch), batch["phy_offset"].tolist(), batch["tags"].to_pylist())
    1 [666] ['polygenelubricants']
    """
    chosen = COLUMNS if columns is None else chosen_columns(columns, COLUMNS)
    require_switch("decompress", decompress)
    wanted = MessageFilter.of(topic, queue_id, begin, end, keys, tags)
    start = 0 if start_offset is None else whole_number("start_offset", start_offset)
    stop = 2**63 - 1 if end_offset is None else whole_number("end_offset", end_offset)
    path = given_path("store", store, given.get("storage_options"))
    log, first, last, index = _opened(path, given)
    kept = ZoneCache.of(cache, lambda: homes_of(absolute(path), {parent_of(file.path) for file in log.files}))
    return Scan(log, wanted, max(start, first), min(stop, last), chosen, decompress, kept, index)


class Scan(Closable):
    """The answer of `scan`: an iterator of `Columns`, and a context manager. For one thread.

    Attributes
    ----------
    columns : tuple of str
    bytes_read, files_read : int, so far: bytes of the frames that were walked, files of the log that were opened
    damage : list of what was left out so far, each with its sentence as str: stretches of the log, and bodies that do
        not decompress, which are null

    Notes
    -----
    What is appended while it is read is among the answer as far as the last file had it when it was come to. Files
    that a broker deletes meanwhile are left out, and are in `expired`.
    Source: RocketMQ 4.9.3 `CommitLog.checkMessageAndReturnSize`.

    Examples
    --------
    >>> with scan("store", end=1_680_170_240_000, columns=["keys"], cache=False) as found:
    ...     print(found.columns, sum(map(len, found)), found.files_read, found.damage)
    ('keys',) 7 9 []
    """

    _thing = "scan"
    _path_attribute = "path"

    def __init__(
        self,
        log: CommitLog,
        wanted: MessageFilter,
        start: int,
        stop: int,
        columns: tuple[str, ...],
        decompress: bool,
        cache: ZoneCache,
        index: str | None,
    ) -> None:
        self.columns = columns
        self.bytes_read = self.files_read = 0
        self.damage: list[Damage | FormatError] = []
        self._log, self._wanted, self._start, self._stop, self._decompress = log, wanted, start, stop, decompress
        self._indexed = IndexedKeys(wanted, index, cache)
        self._cache = cache
        self._zones = LogZones(cache, looking=self._require_open, read=self._count, damaged=self._left_out)
        more = ("sys_flag",) if decompress and "body" in columns else ()
        self._taken = tuple(dict.fromkeys((*columns, *more)))
        self._matches = Matches(
            wanted, self._taken, check_crc=False, looking=self._require_open, read=self._count,
            damaged=self._left_out,
        )  # fmt: skip
        self._log_end: LogEnd | None = None
        self._is_good = False  # every message before `_stop` in the log's last file
        self._batches = self._log._over_files(start, stop, self._of_file)

    def _until(self, end: LogEnd) -> Scan:
        """The same up to where the first of several scans found the log's end."""
        self._log_end, self._stop = end, min(self._stop, end.most(self._log))
        self._batches = self._log._over_files(self._start, self._stop, self._of_file)
        return self

    @property
    def path(self) -> str | None:
        """Where the log's first file is."""
        return self._log.files[0].path if self._log.files else None

    @property
    def expired(self) -> list[str]:
        """The oldest files of the log, where a broker deleted them before the scan came to them."""
        return [file.path for file in self._log.expired]

    def empty(self) -> Columns:
        """The columns, without a row."""
        return self._finished(no_messages(self._taken))

    def __iter__(self) -> Iterator[Columns]:
        return self

    def __next__(self) -> Columns:
        self._require_open()
        try:
            return next(self._batches)
        except StopIteration:
            self._log.close()
            raise

    def close(self) -> None:
        """Let the log go; may be called twice."""
        self._closed = True
        self._batches.close()  # type: ignore[attr-defined]
        self._log.close()

    # ---- inside

    def _of_file(self, file: LogFile, last: bool) -> Iterator[Columns]:
        self.files_read += 1
        with file.open() as mapped:
            if self._log_end is not None:
                self._end_at(*self._log_end.of(file, mapped, self._cache))
            start = yield from self._by_index(file, mapped)
            if start < min(self._stop, file.stop):
                yield from map(self._finished, self._walked(file, mapped, start, last=last))

    def _by_index(self, file: LogFile, mapped: MappedFile) -> Generator[Columns, None, int]:
        """What matches of a file, as far as the index is known to lead to it; returns where that ends."""
        start, indexed = self._start, self._indexed.of(file)
        if indexed is None:
            return start
        end, places = indexed
        places = places[(places >= start) & (places < self._stop)]
        for first in range(0, len(places), _AT_ONCE):
            some = places[first : first + _AT_ONCE]
            if (found := self._matches.at(file, mapped, some)) is None:
                return start
            yield from map(self._finished, found)
            start = int(some[-1]) + 1
        return max(start, end)

    def _walked(self, file: LogFile, mapped: MappedFile, start: int, *, last: bool) -> Iterator[Columns]:
        """What matches of a file from `start` on, by the heads of its messages."""
        if self._wanted.has_zones and self._cache.keeps:  # to make a map alone costs as much as to look
            zones = self._zones.of(file, mapped, last=last)
            for at, stop in self._wanted.stretches(zones, start, self._stop):
                yield from self._matches.of(file, mapped, at, stop, start=start, last=False)
        else:
            last = last and not self._is_good  # else bodies are checked once more
            at = first_at(file, mapped, start, self._stop, last=last)
            yield from self._matches.of(file, mapped, at, self._stop, start=start, last=last)

    def _end_at(self, end: int | None, behind: Damage | None) -> None:
        self._is_good = end is not None
        if end is not None and end <= self._stop:
            self._stop = end
            if behind is not None:
                self._left_out(behind)

    def _left_out(self, damage: Damage) -> None:
        if damage not in self.damage:  # it may be met twice
            self.damage.append(damage)

    def _finished(self, batch: Columns) -> Columns:
        """The columns that were asked for, in their order, as users get them."""
        made: dict[str, Column] = {name: batch[name] for name in self.columns}
        if "body" in made and self._decompress:
            made["body"] = decompressed_bodies(batch["body"], batch["sys_flag"], self._broken)
        return typed(Columns._of_length(made, len(batch)))

    def _broken(self, row: int, error: FormatError) -> None:
        self.damage.append(error)

    def _count(self, size: int) -> None:
        self.bytes_read += size


def _opened(path: str, given: StoreArguments) -> tuple[CommitLog, int, int, str | None]:
    """The log that a path names, the phy offsets that are meant of it, and where its index is, if it is on a disk."""
    if not disk.is_directory(path) and disk.exists(path):
        log = CommitLog.open([parent_of(absolute(path))])
        for file in log.files:
            if base_name(file.path) == base_name(path):
                return log, file.start, file.stop, None
        raise BadMagicError("not a file of a commit log", path=path, expected="a name of 20 digits, and messages in it")
    if given.get("commitlog") is None and disk.is_directory(path) and kind_of_directory(path) == "commitlog-dir":
        return CommitLog.open(path), 0, 2**63 - 1, None
    options = store_options(path, **given)
    require_a_part(options)
    on_disk = not isinstance(options.index, Place) and disk.is_directory(options.index)
    return open_log(options), 0, 2**63 - 1, options.index if on_disk else None
