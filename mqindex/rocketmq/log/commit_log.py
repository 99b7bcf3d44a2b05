"""`CommitLog`: the messages of a broker's commit log, as columns and one at a time."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import numpy.typing as npt

from mqindex._native.guard import Mapping
from mqindex._native.numbers import int64, whole_number
from mqindex._words import plural
from mqindex.columns.columns import Columns
from mqindex.columns.limits import whole_number_from
from mqindex.errors import FormatError, ReadOnlyFileError, require_switch
from mqindex.files import disk
from mqindex.files.places.place import require_here
from mqindex.rocketmq.broker_conf import Config
from mqindex.rocketmq.directories.wrong_place import refuse_other_place, refuse_strangers
from mqindex.rocketmq.log.damage import Damage
from mqindex.rocketmq.log.dledger import plain_log_files
from mqindex.rocketmq.log.expiry import LOOK_AGAIN_SECONDS
from mqindex.rocketmq.log.log_files import LogFile, Skipped, last_file_with_frames, newest_begun, require_length
from mqindex.rocketmq.log.log_scan import end_of_file, scan_file
from mqindex.rocketmq.log.mapped_log import MappedLog
from mqindex.rocketmq.log.writing.log_appender import AppendMessagesResult, LogAppender
from mqindex.rocketmq.log.writing.log_recovery import hold_directories, make_directories, recover
from mqindex.rocketmq.log.writing.log_writer import LogWriter
from mqindex.rocketmq.log.writing.message_columns import MessageColumns
from mqindex.rocketmq.log.writing.message_encoder import AppendMessageResult, NewMessage, require_message
from mqindex.rocketmq.log.writing.write_rules import flush_rules, places_of_new_files, write_rules
from mqindex.rocketmq.messages.log_columns import require_columns
from mqindex.rocketmq.messages.message import Message, read_message
from mqindex.rocketmq.options import StoreOptions, given_directories, store_options
from mqindex.rocketmq.settings import LOG_FILE_SIZE

if TYPE_CHECKING:
    from collections import abc

    from typing_extensions import Buffer

_T = TypeVar("_T")
_NOWHERE: tuple[int, int, Buffer | None, str, float] = 0, 0, None, "", 0.0


class CommitLog(MappedLog):
    """The messages of a commit log, which may be spread over several directories; opened writable, its end too.

    Safe from several threads. Files are mapped while they are needed; not more than a few at a time.

    Attributes
    ----------
    files : list of LogFile (path, start, size), by start.
    skipped : list of Skipped (path, reason): what else is in the directories.
    damage : list of Damage (path, at, stop, kind, ...) that the scans so far have met.
    expired : list of LogFile: the oldest files, those that a broker deleted before a scan came to them.

    Notes
    -----
    In the last file that holds messages the first bad record is the end of the log, and bodies are checked there;
    in an earlier file it is damage, and a scan goes on at the next record.
    Source: RocketMQ 4.9.3 `CommitLog.checkMessageAndReturnSize`, `MappedFileQueue`; record version 2 as in 5.1.

    Examples
    --------
    >>> with CommitLog.open("store/commitlog") as log:
    ...     for batch in log.scan(131072, columns=["topic", "keys", "phy_offset"]):
    ...         print(batch.num_rows, batch["topic"][0], batch["phy_offset"][:3].tolist())
    ...     log.get_message(666).keys
    5 LostTopic [131072, 131292, 131517]
    'ORD59361344'
    """

    def __init__(self, files: Sequence[LogFile], skipped: Sequence[Skipped] = ()) -> None:
        super().__init__(files, skipped)
        self.damage: list[Damage] = []
        self._begun: int | None = None
        self._last: int | None = None
        self._end: int | None = None
        self._good = 0  # up to there every record is known to be good
        self._appender: LogAppender | None = None
        self._near = _NOWHERE  # start, stop, map and path of the file that was read last, and until when it counts

    @classmethod
    def open(
        cls,
        directories: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        mapped_file_size: int | None = None,
        writable: bool = False,
        flush: str | None = None,
        config: Config | None = None,
        broker_version: str | None = None,
        storage_options: abc.Mapping[str, Any] | None = None,
    ) -> CommitLog:
        """Open a log, to append to it with `writable=True`.

        Parameters
        ----------
        directories : path or URL, or several: the union of their files is the log
        mapped_file_size : int or None
            What every file but the last must be long; None: any length goes. For writing also the length of new files:
            that of the files there, else the broker's default.
        flush : "sync": an append returns when its bytes are on the disk; "async": it does not wait for that;
            None: as `config` says, else async
        config, broker_version : what decides how messages are encoded and flushed; see Notes
        storage_options : of URLs, as of `obstore.store.from_url`, for `hdfs://` the configuration of hdfs-native

        Raises
        ------
        FileNotFoundError : a directory does not exist (a writable log makes it)
        BadMagicError : a store's root, or another part of it; or nothing but files of others
        FileStateError : a log that DLedger keeps; files of two logs
        FormatError : a file has not `mapped_file_size`
        StoreInUseError : a broker, or another writer, has the log open for writing

        Notes
        -----
        A writable log is recovered first, as a broker recovers it: the first bad record in its last three files
        is its end, and bodies are checked there. What follows the end goes to `mqindex-backup-<UTC>` beside the
        directory and becomes zeros, so that nothing stale is ever taken for a message.
        Settings, by the broker's names: mappedFileSizeCommitLog, maxMessageSize, enabledAppendPropCRC,
        autoMessageVersionOnTopicLen, brokerIP1 and listenPort (the store host), flushDiskType, flushIntervalCommitLog,
        flushCommitLogLeastPages, flushCommitLogThoroughInterval, readOnlyCommitLogStorePaths. Without a version
        frames are those of 4.9.3, which every broker reads.
        """
        require_switch("writable", writable)
        directories = given_directories("directories", directories, storage_options)
        if mapped_file_size is not None:
            mapped_file_size = whole_number_from(1, "mapped_file_size", mapped_file_size)
        if writable:
            for directory in directories:
                require_here(directory)
            options = store_options(".", config=config, commitlog=directories, broker_version=broker_version)
            return cls._opened(options, mapped_file_size, flush)
        files, skipped = plain_log_files(directories)
        for directory in directories:
            refuse_other_place(directory, "commitlog", has_files=bool(files))
            if not files:  # not even at its place in a store: a survey of the store refuses it too
                refuse_strangers(directory, "a commit log")
        if mapped_file_size is not None:
            require_length(files, mapped_file_size)
        return cls(files, skipped)

    @classmethod
    def _as_set(cls, options: StoreOptions) -> CommitLog:
        """The log of a store, to read; its files are as long as the broker's configuration says."""
        log = cls.open(options.commitlog)
        if (size := options.known(LOG_FILE_SIZE)) is not None:
            with options.blaming(FormatError, LOG_FILE_SIZE):
                require_length(log.files, size)
        return log

    @classmethod
    def _of_store(cls, options: StoreOptions, *, flush: str | None = None) -> CommitLog:
        """The log of a store, to append to it; the caller holds the store's lock."""
        return cls._opened(options, None, flush, store=False)

    @classmethod
    def _opened(
        cls, options: StoreOptions, file_size: int | None, flush: str | None, *, store: bool = True
    ) -> CommitLog:
        make_directories(options.commitlog)
        rules, flushing = write_rules(options), flush_rules(options, flush)
        with ExitStack() as failing:
            failing.enter_context(hold_directories(options.commitlog, store=store))
            position, size = recover(options, file_size)
            log = cls(*plain_log_files(options.commitlog))
            disk.sync_files([file.path for file in log.files])  # what a killed writer left in memory
            writer = LogWriter(places_of_new_files(options), log.files, position, size, log._add)
            log._appender = LogAppender(writer, rules, flushing, failing)
        return log

    @property
    def max_phy_offset(self) -> int:
        """The end of the log: after its last message. Found once, by reading the last file; appending moves it."""
        if self._appender is not None:
            return self._appender.writer.position
        if self._end is None:
            last = self._last_file()
            self._require_open()
            self._end = self._good = self.min_phy_offset if last < 0 else end_of_file(self.files[last])
        return self._end

    @property
    def _most_phy_offset(self) -> int:
        """A phy offset behind which the log does not reach: its end if that is known. Nothing is read."""
        known = self._appender is not None or self._end is not None or not self.files
        return self.max_phy_offset if known else self.files[-1].stop

    def _reaches(self, phy_offset: int) -> bool:
        """Whether the end is there or later. It is looked for only where the newest file must tell."""
        if phy_offset > self._most_phy_offset:
            return False
        begun = self.files[self._newest_begun()].start if self.files and self._appender is None else 0
        return phy_offset <= begun or phy_offset <= self.max_phy_offset

    def scan(
        self,
        start: int | None = None,
        stop: int | None = None,
        *,
        columns: Iterable[str] | None = None,
        check_crc: bool = False,
    ) -> Iterator[Columns]:
        """Columns of the messages that begin at the phy offsets [start, stop), in their order.

        Parameters
        ----------
        start, stop : int or None; None: the log's begin and end. A start inside a message leaves that message out.
            Behind the log's end are no messages, even where its last file holds some of an earlier life.
            Files that a broker deletes before the scan comes to them are left out, and are in `expired`.
        columns : names; None: all but `body` (bytes as stored) and `properties` (text as stored)
        check_crc : bool; True: compare bodies with their checksums in every file, not only in the last

        Yields
        ------
        Columns of at most 65536 rows; fewer where bodies are large

        Raises
        ------
        ValueError : a column that does not exist
        TruncatedFileError : a file shrank meanwhile
        """
        chosen = require_columns(columns)
        require_switch("check_crc", check_crc)
        self._require_open()
        first = self.min_phy_offset if start is None else whole_number("start", start)
        return self._scan(first, 2**63 - 1 if stop is None else whole_number("stop", stop), chosen, check_crc)

    def get_message(self, phy_offset: int, size: int | None = None) -> Message:
        """The message at a phy offset.

        Parameters
        ----------
        size : int or None; what a consume queue says of the message, compared if given

        Raises
        ------
        FormatError : no message begins there (BadMagicError), it is cut short, or its bytes do not agree

        Notes
        -----
        That a broker has deleted the file is seen within 10 ms, until then it may still be read.
        """
        at = whole_number("phy_offset", phy_offset)
        start, stop, mapped, path, until = self._near
        if not (start <= at < stop and monotonic() < until):
            file, mapped = self._file_at(at)
            start, path = file.start, file.path
            if isinstance(mapped, Mapping):  # all of the file
                self._near = start, file.stop, mapped, path, monotonic() + LOOK_AGAIN_SECONDS
            if self._closed:  # meanwhile, by another thread
                self._near = _NOWHERE
        try:
            message = read_message(mapped, start, at, path)
        except FormatError:
            self._near = _NOWHERE
            self._file_at(at)  # one that was cut, or is deleted, says so
            raise
        if size is not None and size != message.size:
            raise FormatError(
                "the message has another size", path=path, at=at - start, field="total_size",
                expected=size, got=message.size,
            )  # fmt: skip
        return message

    def _trust(self, phy_offset: int) -> None:
        """The caller knows that every record up to there is good; scans need not look."""
        self._good = phy_offset

    def append_message(self, message: NewMessage, *, queue_offset: int) -> AppendMessageResult:
        """Append a message, as a broker does.

        Returns
        -------
        AppendMessageResult (phy_offset, size, msg_id, store_timestamp, queue_offset, status)

        Raises
        ------
        CapacityError : it is larger than the broker takes: topic, body, properties or the whole
        OSError : it was not written, or with `flush="sync"` perhaps not durably; after a failed write the log is as
            before, and appends again once there is space
        FileStateError : a sync failed before, so it is not known what the disk has: open the log again. Or this is a
            child that was forked since the log was opened
        ReadOnlyFileError, ClosedFileError

        Notes
        -----
        Safe from several threads; under sync flush those that wait share one fdatasync. A message that is prepared
        or rolled back gets the queue offset 0.
        Source: RocketMQ 4.9.3 `CommitLog.putMessage`, `MessageExtEncoder`; 5.x for version 2 and the checksum.
        """
        require_message(message)
        offset = int64("queue_offset", whole_number("queue_offset", queue_offset))
        return self._writing().append_message(message, queue_offset=offset)

    def append_messages(
        self, messages: MessageColumns, *, queue_offset: npt.ArrayLike | None = None, whole: bool = False
    ) -> AppendMessagesResult:
        """Append many messages in one pass, all or none of them.

        Parameters
        ----------
        messages : columns by name: a mapping of arrays, lists and single values, a batch of `scan`, an Arrow, polars or
            pandas table; or a list of dicts by these names, or of `NewMessage`. Columns: topic and queue_offset, which
            must be there, body, queue_id, tags, keys, uniq_key, properties (a block as stored, or of each row a dict;
            what it lacks of keys, tags and uniq_key is put after it), flag, sys_flag, born_timestamp, born_host,
            store_timestamp, store_host, reconsume_times, prepared_transaction_offset. phy_offset, size, body_crc and
            msg_id may be there, and are made anew.
        queue_offset : int64[n], instead of the column
        whole : bool; True: one request of a producer, which moves to the next file as a whole where it does not fit

        Returns
        -------
        AppendMessagesResult : phy_offsets int64[n], sizes int32[n]

        Raises
        ------
        ValueError, TypeError, CapacityError : a row that no broker takes, named by its number; nothing is written
        OSError : as `append_message`; nothing of the batch is in the log
        """
        require_switch("whole", whole)
        return self._writing().append_messages(messages, queue_offset=queue_offset, whole=whole)

    def flush(self) -> int:
        """Bring everything that was appended to the disk; returns the phy offset after it."""
        return self._writing().flush()

    @property
    def flushed_phy_offset(self) -> int:
        """The phy offset below which everything is on the disk."""
        return self._writing().flushed

    @property
    def store_timestamp(self) -> int:
        """The store timestamp of the last appended message, ms since the epoch; 0: none since the log was opened."""
        return self._writing().store_timestamp

    def _writing(self) -> LogAppender:
        self._require_open()
        if self._appender is None:
            raise ReadOnlyFileError("the commit log is read-only", path=self._path, hint="open it with writable=True")
        return self._appender

    def close(self) -> None:
        """Flush and unmap. May be called twice; a scan that still runs ends with `ClosedFileError`."""
        if self._appender is not None:
            self._appender.close()
        self._closed = True
        self._near = _NOWHERE
        super().close()

    def __repr__(self) -> str:
        return f"CommitLog({plural(len(self.files), 'file')} from phy offset {self.min_phy_offset})"

    def _scan(self, start: int, stop: int, columns: tuple[str, ...], check_crc: bool) -> Iterator[Columns]:
        if self._appender is not None:
            stop = min(stop, self.max_phy_offset)
        return self._over_files(
            start, stop,
            lambda file, last: scan_file(
                file, start, stop, columns, check_crc=check_crc, last=last, looking=self._require_open,
                damaged=self._record, known=self._good,
            ),
        )  # fmt: skip

    def _over_files(self, start: int, stop: int, read: Callable[[LogFile, bool], Iterator[_T]]) -> Iterator[_T]:
        """What `read(file, last)` gives of each file with phy offsets in [start, stop).

        `last`: it is the last one of the log. Files that a broker has deleted meanwhile are in `expired`.
        """
        last = self._last_file(stop)
        for number, file in enumerate(self.files[: last + 1]):
            if file.start < stop and start < file.stop:
                self._require_open()
                try:
                    yield from read(file, number == last)
                except FileNotFoundError:
                    if number == last or not self._has_expired(number):
                        raise

    def _record(self, stretch: Damage) -> None:
        """Remember what a scan could not read."""
        if stretch not in self.damage:
            self.damage.append(stretch)

    def _last_file(self, stop: int = 2**63 - 1) -> int:
        """The number of the file in which the log ends, or of one from `stop` on: to know which, zeros may be read."""
        if self._appender is not None:
            return bisect_right(self._starts, self.max_phy_offset - 1) - 1
        if self._last is None:
            begun = self._newest_begun()
            if self.files and stop <= self.files[begun].start:
                return begun
            self._last = last_file_with_frames(self.files)
        return self._last

    def _newest_begun(self) -> int:
        if self._begun is None:
            self._begun = newest_begun(self.files)
        return self._begun
