"""`MessageStore`: a broker's store directory, read as its consumers and tools do, and written as its producers do."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Unpack

from mqindex._native.numbers import period
from mqindex._options import with_options_of
from mqindex.columns.columns import Columns
from mqindex.columns.keys import Keys
from mqindex.columns.limits import whole_count
from mqindex.columns.numbers import Time, int64s
from mqindex.errors import ReadOnlyFileError, require_switch
from mqindex.files.closable import Closable
from mqindex.files.fork_lock import new_rlock
from mqindex.files.paths import join
from mqindex.files.places.place import given_path
from mqindex.rocketmq.directories.rocksdb import queues_in_rocksdb, refuse_config_in_rocksdb, refuse_queues_in_rocksdb
from mqindex.rocketmq.dispatch.reput import OnReput, ReputResult, Stop
from mqindex.rocketmq.index.index_service import IndexService
from mqindex.rocketmq.layout import MAX_TIMESTAMP
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.log.dledger import refuse_dledger
from mqindex.rocketmq.log.expiry import LogExpiredError
from mqindex.rocketmq.log.writing.message_columns import MessageColumns
from mqindex.rocketmq.log.writing.message_encoder import AppendMessageResult, NewMessage, require_message
from mqindex.rocketmq.messages.log_columns import COLUMNS, require_columns
from mqindex.rocketmq.messages.message import Message
from mqindex.rocketmq.metadata.checkpoint import Checkpoint
from mqindex.rocketmq.metadata.consumer_offsets import ConsumerOffsets, read_delay_offsets
from mqindex.rocketmq.metadata.topic_configs import TopicConfig, read_topic_configs
from mqindex.rocketmq.options import StoreArguments, StoreOptions, store_options
from mqindex.rocketmq.queue.batch.batch_consume_queue import batch_queue_end
from mqindex.rocketmq.queue.consume_queue import ConsumeQueue
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable
from mqindex.rocketmq.queue.queue_names import QueueName, given_queue
from mqindex.rocketmq.serving.get_message import (
    GetMessageResult,
    TransferLimits,
    bounds_of,
    get_message,
    goes_back_to_min,
    require_request,
)
from mqindex.rocketmq.serving.get_messages import LogParts, get_messages, said_by_units
from mqindex.rocketmq.serving.known_places import KnownPlaces
from mqindex.rocketmq.serving.messages_at import get_many
from mqindex.rocketmq.serving.opening import open_index, open_log, open_queues, require_a_part
from mqindex.rocketmq.serving.query_message import (
    QueryMessageResult,
    look_message,
    parse_msg_id,
    query_exact,
    query_message,
    require_names,
)
from mqindex.rocketmq.serving.query_messages import query_messages
from mqindex.rocketmq.serving.served_log import ServedLog
from mqindex.rocketmq.serving.store_writer import PutMessagesResult, StoreWriter
from mqindex.rocketmq.serving.tag_filter import tag_filter

if TYPE_CHECKING:
    import numpy.typing as npt


class MessageStore(Closable):
    """A whole store: commit log, consume queues, index and side files.

    Reading needs no lock and changes nothing: the store may be a running broker's, or a copy made while it ran.

    Writing is for one object at a time, and no broker beside it; a read-only store refuses it.

    Safe from several threads; closing while a call runs is safe, later calls are `ClosedFileError`.
    Source: RocketMQ 4.9.3 `DefaultMessageStore`.

    Examples
    --------
    >>> with MessageStore.open("store") as opened:
    ...     result = opened.get_message("LostTopic", 0, 0, max_msg_nums=32, tags="TagA || pay-success")
    ...     found = opened.query_message("LostTopic", "user-3", exact=True, max_num=2).messages
    >>> result.status.name, result.next_begin_offset, [message.phy_offset for message in found]
    ('FOUND', 50, [124833, 125657])
    """

    _thing = "store"
    _path_attribute = "root"

    def __init__(
        self,
        options: StoreOptions,
        log: CommitLog,
        queues: ConsumeQueueTable | None,
        writer: StoreWriter | None = None,
    ) -> None:
        self.root = options.root
        self._options = options
        self._queues = queues
        self._rocksdb = queues_in_rocksdb(options) if queues is None else None
        self._index: IndexService | None = None if writer is None else writer.index
        self._writer = writer
        self._limits = TransferLimits.of(options)
        self._back_to_min = goes_back_to_min(options)
        self._parts = LogParts()
        self._places = KnownPlaces()
        self._lock = new_rlock()
        self._served = ServedLog(log, options, self._lock, written_here=writer is not None)

    @classmethod
    @with_options_of(store_options)
    def open(
        cls, root: str | os.PathLike[str], *, writable: bool = False, **given: Unpack[StoreArguments]
    ) -> MessageStore:
        """Open a store.

        Parameters
        ----------
        root : path of the store's root, as `storePathRootDir`, or its URL
        config, commitlog, hash_slot_num, index_num, broker_version, storage_options : store options; what is not given
            is inferred
        writable : bool
            True: also to put messages. A store that does not exist yet is made. After an unclean exit index and queues
            are repaired first. The lock of the store is held until `close`. One that is dropped without `close` gives
            a `ResourceWarning` and is left as by an unclean exit: nothing in the log is lost.

        Raises
        ------
        StoreInUseError : a broker, or another writer, has the store, and it is to be written
        FileNotFoundError : the root or a directory of the commit log does not exist
        BadMagicError : the root is no store
        FileStateError : its log is kept by DLedger
        GeometryError : files and settings disagree
        """
        options = store_options(given_path("root", root, given.get("storage_options")), **given)
        refuse_dledger(options)
        with ExitStack() as failing:
            if writable:
                writer = StoreWriter.open(options)
                failing.callback(writer.close)
                opened = cls(options, writer.log, writer.queues, writer)
            else:
                require_a_part(options)
                log = failing.enter_context(open_log(options))
                opened = cls(options, log, open_queues(options))
            failing.pop_all()
        return opened

    # ---- reading as a consumer

    def get_message(
        self, topic: str, queue_id: int, offset: int, *, max_msg_nums: int = 32, tags: str | None = None
    ) -> GetMessageResult[list[Message]]:
        """Messages of one queue from a queue offset on, as a broker answers one pull request.

        Parameters
        ----------
        topic, queue_id, offset : the queue, and the queue offset to begin with
        max_msg_nums : int, most messages
        tags : an expression like `TagA || TagB`; None or `*`: all. Compared by hash and then as strings, as the broker
            and its consumers do it: with a collision fewer messages are left, none perhaps, and the status is `FOUND`.

        Returns
        -------
        GetMessageResult
            Go on at `next_begin_offset`, whatever the status. An unknown topic or queue is an empty queue, as in the
            broker. One request reads one file of the queue, and not more than 800 units or `max_msg_nums`.

        Raises
        ------
        FormatError : a unit leads to no message though the log has that place
        FileStateError : the broker keeps its consume queues in RocksDB, which is not read

        Notes
        -----
        The settings that limit a broker's answers (`maxTransferCountOnMessageInMemory`,
        `maxTransferBytesOnMessageInMemory`) hold where `config` has them. Messages have their checksums compared. One
        that is good is answered also behind a damaged one of the last file, where a broker that starts cuts the log.
        Of a topic with the attribute cleanup.policy=COMPACTION a broker of 5.x answers from a log of its own,
        which has the newest message of each key; this answers from the commit log, with all of them.
        Source: RocketMQ 4.9.3 `DefaultMessageStore.getMessage`, `PullAPIWrapper.processPullResult`.
        """
        queue_id, offset, max_msg_nums = require_request(topic, queue_id, offset, max_msg_nums, tags)
        wanted = tag_filter(tags)
        while True:
            queue = self._queue(topic, queue_id)
            bounds = bounds_of(queue)
            log, limits = self._served.covering(bounds), self._limits
            try:
                return get_message(queue, bounds, log, offset, max_msg_nums, wanted, limits, self._back_to_min)
            except LogExpiredError:
                self._served.begin_later(log)

    def get_messages(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        max_msg_nums: int,
        tags: str | None = None,
        exact: bool = True,
        columns: Iterable[str] | None = None,
    ) -> GetMessageResult[Columns]:
        """Messages of one queue in bulk: as many as asked, if the queue has them, as columns.

        The statuses of `get_message`, but no limit of a request counts. The checksums of bodies are not compared
        (`verify` does).

        Parameters
        ----------
        exact : bool
            True: messages are read, and every one has one of the tags. False: the hashes of tags alone count, as in
            the broker, whose consumers compare the strings; for the columns queue_offset, phy_offset and size alone
            the units are taken at their word then, and the log is not read.
        columns : names as for `CommitLog.scan`; None: all but `body` and `properties`
        """
        if exact is not False:  # the ordinary call makes no other
            require_switch("exact", exact)
        if not exact:
            answer = self._places.answer(self._served.log, topic, queue_id, offset, max_msg_nums, tags, columns)
            if answer is not None:
                return answer  # type: ignore[no-any-return]
        queue_id, offset, max_msg_nums = require_request(topic, queue_id, offset, max_msg_nums, tags)
        wanted, chosen = tag_filter(tags), require_columns(columns)
        back = self._back_to_min
        while True:
            queue = self._queue(topic, queue_id)
            bounds = bounds_of(queue)
            log = self._served.covering(bounds)
            parts = self._parts.of(log)
            try:
                answer = get_messages(queue, bounds, log, parts, offset, max_msg_nums, wanted, chosen, exact, back)
            except LogExpiredError:
                self._served.begin_later(log)
            else:
                if not exact and said_by_units(chosen):
                    self._places.remember(queue, (topic, queue_id), bounds, log, parts, tags, answer)
                return answer

    # ---- writing

    def put_message(self, message: NewMessage) -> AppendMessageResult:
        """Store one message, as a broker stores what a producer sends: its queue offset is the next of its queue.

        Returns
        -------
        AppendMessageResult
            Under synchronous flush (`flushDiskType=SYNC_FLUSH` in `config`) once the message is on the disk; callers
            in several threads share one sync.

        Raises
        ------
        ReadOnlyFileError : the store was opened for reading
        CapacityError, ValueError : no broker takes the message; nothing is written
        OSError : the disk is full, or fails; the message is not in the log, or under synchronous flush perhaps not
            durably
        FileStateError : queues or index met that before: close the store and open it again, which repairs it

        Notes
        -----
        A message with a delay level (the property DELAY) goes to the queue of that level in `SCHEDULE_TOPIC_XXXX`,
        where a broker will deliver it. With `enableMultiDispatch` the further queues of INNER_MULTI_DISPATCH get it
        too. Queues and index have it when somebody looks, at `flush` and at `close`.
        Source: RocketMQ 4.9.3 `DefaultMessageStore.putMessage`, `CommitLog.asyncPutMessage`, `MultiDispatch`.
        """
        require_message(message)
        return self._writing().put_message(message)

    def put_messages(self, messages: MessageColumns, *, whole: bool = False) -> PutMessagesResult:
        """Store many messages in one pass, all or none, each with the next offset of its queue.

        Parameters
        ----------
        messages : as for `CommitLog.append_messages`, without queue offsets
        whole : bool; True: one batch of a producer, which a broker never cuts in two files

        Returns
        -------
        PutMessagesResult : phy_offsets int64[n], sizes int32[n], queue_offsets int64[n]
        """
        require_switch("whole", whole)
        return self._writing().put_messages(messages, whole=whole)

    def reput(self, *, follow: bool = False, stop: Stop | None = None, progress: OnReput | None = None) -> ReputResult:
        """Dispatch what the log has and queues and index have not, once or until `stop` is set.

        Reading does it by itself. With `follow` it is done all the time, for other readers of the directory.

        Parameters
        ----------
        stop : a `threading.Event`, or anything with its `is_set` and `wait`; None: for ever
        progress : called about once a second, and at the end, with a `ReputProgress`
        """
        require_switch("follow", follow)
        writer = self._writing()
        return writer.follow(stop or threading.Event(), progress) if follow else writer.dispatch()

    def flush(self) -> None:
        """Return when everything that was put is on the disk, in queues and index too, and in the checkpoint."""
        self._writing().flush()

    # ---- reading by key, id and place

    def query_message(
        self,
        topic: str,
        key: str,
        *,
        max_num: int = 64,
        begin: Time = 0,
        end: Time = MAX_TIMESTAMP,
        exact: bool = False,
    ) -> QueryMessageResult:
        """Messages of a topic with a key, or with a unique key.

        Parameters
        ----------
        max_num : int, most messages; the broker caps it by `maxMsgsNumBatch` (64), this does not
        begin, end : int, ms since the epoch, or an aware datetime or a datetime64; both inclusive, compared with times
            of 1 s resolution. A begin after the end, and times in seconds, are answered with a UserWarning
        exact : bool
            False: the broker's answer, which may hold messages of other keys and topics with the same hash, and a
            message twice; collisions count as found. True: only messages that have the key, each once.

        Notes
        -----
        Oldest first. Places whose message the log does not have any more are passed over. The index files are those
        of the first query; they are seen growing. Source: RocketMQ 4.9.3 `DefaultMessageStore.queryMessage`.
        """
        require_names(topic, key)
        require_switch("exact", exact)
        most = whole_count("max_num", max_num)
        first, last = period(begin, end)
        log, index = self.commit_log, self._index_service()
        if index is None:
            return QueryMessageResult([], 0, 0)
        query = query_exact if exact else query_message
        return query(index, log, topic, key, most, first, last)

    def query_messages(
        self,
        topic: str,
        keys: Keys,
        *,
        max_num: int = 64,
        begin: Time = 0,
        end: Time = MAX_TIMESTAMP,
        exact: bool = True,
        columns: Iterable[str] | None = None,
        decompress: bool = True,
    ) -> Columns:
        """`query_message` of many keys at once, as one table.

        Parameters
        ----------
        keys : list[str], ndarray of text, Arrow, polars or pandas strings, shape (n,)
        max_num, begin, end : for each key as in the single call
        exact : bool; True: only messages that have the key, each once for a key; False: the broker's answer
        columns : names, and types, as for `rocketmq.scan`; None: all
        decompress : bool; False: bodies as stored

        Returns
        -------
        Columns : a row for each message that is found, and before the other columns `key_number`, int64, the number of
            its key in `keys`. Sorted by it; the messages of one key are oldest first

        Notes
        -----
        A body that does not decompress is null, and a UserWarning says so, as where there is no index file. Damaged
        messages, and those that the log or the index does not have, are left out, as in the single call;
        `rocketmq.scan` with `keys` reads the log.

        Examples
        --------
        >>> with MessageStore.open("store") as opened:
        ...     found = opened.query_messages("LostTopic", ["user-3", "no such"], max_num=2, columns=["phy_offset"])
        >>> found["key_number"].tolist(), found["phy_offset"].tolist()
        ([0, 0], [124833, 125657])
        """
        require_names(topic, "")
        require_switch("exact", exact)
        require_switch("decompress", decompress)
        names = COLUMNS if columns is None else require_columns(columns)
        most = whole_count("max_num", max_num)
        first, last = period(begin, end)
        log, index = self.commit_log, self._index_service()
        return query_messages(
            index, log, topic, keys, most, first, last, names, exact=exact, decompress=decompress,
        )  # fmt: skip

    def get_many(
        self, phy_offsets: npt.ArrayLike, *, columns: Iterable[str] | None = None, decompress: bool = True
    ) -> Columns:
        """The messages that begin at many phy offsets, in the order asked.

        Parameters
        ----------
        phy_offsets : int64[n], in any order, also twice
        columns, decompress : as for `query_messages`

        Returns
        -------
        Columns : a row for each place where a message begins, and before the other columns `row`, int64, the number of
            the place in `phy_offsets`. A place where the log has none has no row; one behind damage of the last file,
            where a broker that starts cuts the log, has its message

        Raises
        ------
        FormatError : what begins at one of them is damaged

        Examples
        --------
        >>> with MessageStore.open("store") as opened:
        ...     found = opened.get_many([124833, 5, 666], columns=["keys"])
        >>> found["row"].tolist(), found["keys"].to_pylist()
        ([0, 2], ['user-2 user-18 ORD33985645 user-3', 'ORD59361344'])
        """
        require_switch("decompress", decompress)
        names = COLUMNS if columns is None else require_columns(columns)
        places = int64s("phy_offsets", phy_offsets)
        self._require_open()
        return get_many(self._served.log, places, names, decompress=decompress)

    def look_message_by_offset(self, phy_offset: int) -> Message | None:
        """The message that begins at `phy_offset`; None: the log has none there.

        Behind damage of the last file, where a broker that starts cuts the log, messages are found as before it.

        Raises
        ------
        FormatError : what begins there is damaged
        """
        self._require_open()
        return look_message(self._served.log, phy_offset)

    def view_message(self, msg_id: str) -> Message | None:
        """The message of an offset id (32 or 56 hex digits, as `Message.msg_id`); None: this store does not have it."""
        phy_offset = parse_msg_id(msg_id)
        message = None if phy_offset is None else self.look_message_by_offset(phy_offset)
        return message if message is not None and message.msg_id == msg_id.upper() else None

    # ---- what there is

    @property
    def commit_log(self) -> CommitLog:
        """The log."""
        self._require_open()
        return self._served.log

    @property
    def queues(self) -> list[QueueName]:
        """(topic, queue_id) of every consume queue."""
        self._require_queues()
        self._up_to_date()
        return [] if self._queues is None else self._queues.queues()

    def consume_queue(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The consume queue of `topic` and `queue_id`; None: there is none."""
        return self._queue(*given_queue(topic, queue_id))

    @property
    def consumer_offsets(self) -> ConsumerOffsets:
        """What groups have consumed, as the broker last saved it, and their lag."""
        self._require_open()
        refuse_config_in_rocksdb(self._options)
        return ConsumerOffsets._read(self._config, self._max_offset)

    @property
    def delay_offsets(self) -> dict[int, int]:
        """Delay level (1 first) -> next offset of its queue in `SCHEDULE_TOPIC_XXXX`, as the broker last saved it."""
        self._require_open()
        return read_delay_offsets(self._config)

    @property
    def topics(self) -> dict[str, TopicConfig]:
        """Topic -> its configuration, as the broker last saved it."""
        self._require_open()
        refuse_config_in_rocksdb(self._options)
        return read_topic_configs(self._config)

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The times up to which the files are known to be on the disk; None: there is no checkpoint."""
        self._require_open()
        return Checkpoint.read(join(self.root, "checkpoint"))

    def close(self) -> None:
        """Let everything go; may be called twice. A writable store is flushed first, and left as a broker leaves it."""
        with self._lock:
            self._closed = True
            self._places.close()
            if self._writer is not None:
                self._writer.close()
                return
            for part in (self._index, self._queues, self._served.log):
                if part is not None:
                    part.close()

    def __del__(self) -> None:
        writer: StoreWriter | None = getattr(self, "_writer", None)  # none where it could not be opened
        if writer is not None and not writer.closed:
            warnings.warn(f"a writable store was not closed: {self.root}", ResourceWarning, stacklevel=2, source=self)
            writer.abandon()

    def __repr__(self) -> str:
        return f"MessageStore({self.root!r})"

    # ---- within

    def _writing(self) -> StoreWriter:
        self._require_open()
        if self._writer is None:
            raise ReadOnlyFileError("the store is read-only", path=self.root, hint="open it with writable=True")
        return self._writer

    def _require_queues(self) -> None:
        self._require_open()
        refuse_queues_in_rocksdb(self._rocksdb)

    def _up_to_date(self) -> None:
        if self._writer is not None:
            self._writer.dispatch()

    @property
    def _config(self) -> str:
        return join(self.root, "config")

    def _queue(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue, whose minimum is where the log still has its messages."""
        self._require_queues()
        self._up_to_date()
        queue = None if self._queues is None else self._queues.get(topic, queue_id)
        if queue is not None:
            self._served.correct(queue, (topic, queue_id))
        return queue

    def _max_offset(self, topic: str, queue_id: int) -> int:
        queue = self._queue(topic, queue_id)
        if queue is not None:
            return queue.max_offset_in_queue
        return batch_queue_end(self._options.batch_consume_queue, topic, queue_id) or 0

    def _index_service(self) -> IndexService | None:
        self._up_to_date()
        with self._lock:
            if self._index is None:
                self._index = open_index(self._options)
            return self._index
