"""`ConsumeQueueTable`: all consume queues of a store, opened at their first use."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from mqindex._native.owner import Owner
from mqindex.errors import FormatError, ReadOnlyFileError, require_switch
from mqindex.files import disk
from mqindex.files.closable import Closable
from mqindex.files.entries import leads_to_directory
from mqindex.files.fork_lock import new_lock
from mqindex.files.paths import Entry, join, parent_of, scan
from mqindex.files.places.place import given_path, require_here
from mqindex.files.reading.file_maps import FileMaps
from mqindex.files.sync_trust import SyncTrust
from mqindex.rocketmq import kinds
from mqindex.rocketmq.directories import store
from mqindex.rocketmq.directories.rocksdb import refuse_queues_in_rocksdb
from mqindex.rocketmq.directories.wrong_place import refuse_other_place
from mqindex.rocketmq.kinds import is_rocksdb, require_finished
from mqindex.rocketmq.layout import QUEUE_FILE_SIZE, QUEUE_UNIT_SIZE
from mqindex.rocketmq.log.log_files import Skipped
from mqindex.rocketmq.queue.consume_queue import ConsumeQueue
from mqindex.rocketmq.queue.consume_queue_ext import ConsumeQueueExt
from mqindex.rocketmq.queue.queue_files import UnitFiles, file_size_of, given_file_size, list_queue_files
from mqindex.rocketmq.queue.queue_names import QueueName, given_queue, name_problem
from mqindex.rocketmq.queue.queue_units import QueueBounds, bounds_of_files

_OPEN_MAPS = 256  # of all queues together: a process may have 1024 files open
_SCRAP = rf"\.mqindex-[0-9]{{{kinds.OFFSET_DIGITS}}}"
_SIZE_FROM = 64  # queues read to find the size of files


class ConsumeQueueTable(Mapping[QueueName, ConsumeQueue], Closable):
    """The queues below `<store>/consumequeue`, by (topic, queue_id). For several threads, as `ConsumeQueue` is.

    A queue stays open after its first use; the files of all queues share a small number of maps. One table at a time
    may be open for writing, in one process: another is a `StoreInUseError`, and a forked child may not write.
    Source: RocketMQ 4.9.3 `DefaultMessageStore.loadConsumeQueue`, `findConsumeQueue`.

    Examples
    --------
    >>> import tempfile
    >>> with ConsumeQueueTable.open(tempfile.mkdtemp(), writable=True) as table:
    ...     written = table.find_or_create("T", 3).put_message_position_info(0, 100, 0, 0)
    ...     table.queues(), table["T", 3].max_offset_in_queue, table.get("T", 4)
    ([('T', 3)], 1, None)
    """

    _thing = "table of queues"
    _path_attribute = "directory"

    def __init__(
        self, directory: str, file_size: int | None, writable: bool, ext_directory: str | None, held: ExitStack
    ) -> None:
        self.directory = directory
        self.writable = writable
        self._given_size = file_size
        self._ext_directory = ext_directory
        self._held = held  # the lock of the only writer
        self._maps = FileMaps("queue", _OPEN_MAPS)
        self._owner = Owner(directory)
        self._lock = new_lock()
        self._open: dict[QueueName, ConsumeQueue] = {}
        self._created: set[str] = set()
        self._syncs = SyncTrust()

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        file_size: int | None = None,
        writable: bool = False,
        ext_directory: str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> ConsumeQueueTable:
        """Open `<store>/consumequeue`, a path or a URL.

        Parameters
        ----------
        file_size : int or None
            Bytes of each file of a new queue; None: as of the other queues, 6 000 000 without any.
        writable : bool; True: also creates the directory.
        ext_directory : path or None
            `<store>/consumequeue_ext`: queues that have extension files there follow their addresses.
        storage_options : for a URL, as of `obstore.store.from_url`, for `hdfs://` the configuration of hdfs-native

        Raises
        ------
        FileNotFoundError : there is no such directory, and it is not to be written
        BadMagicError : it is to be read, and is another directory of a store, or has entries but no queue
        FileStateError : RocketMQ 5 keeps its queues there in RocksDB, and not in files too
        StoreInUseError : `writable`, and a broker holds the store, or somebody has a queue of it open for writing
        """
        require_switch("writable", writable)
        where = given_path("directory", directory, storage_options)
        require_finished(where)
        file_size = given_file_size(file_size)
        ext = None if ext_directory is None else given_path("ext_directory", ext_directory, storage_options)
        refuse_queues_in_rocksdb(where if is_rocksdb(where) and not _has_queues(where) else None)
        with ExitStack() as held:
            if writable:
                require_here(where)
                disk.make_directories(where, inherit=True)
                held.enter_context(store.hold_part(where, "queue"))
                remove_scraps(where)
            elif not disk.is_directory(where):
                number = errno.ENOTDIR if disk.is_there(where) else errno.ENOENT
                raise OSError(number, os.strerror(number), where)
            else:
                refuse_other_place(where, "queues", has_files=_has_queues(where))
            return cls(where, file_size, writable, ext, held.pop_all())

    def queues(self) -> list[QueueName]:
        """(topic, queue_id) of every queue that has a directory now, in the order of their names."""
        self._require_open()
        return list_queues(self.directory)[0]

    @property
    def skipped(self) -> list[Skipped]:
        """What else is among the directories of topics and queues."""
        return list_queues(self.directory)[1]

    def _bounds(self, names: Iterable[QueueName]) -> Iterator[tuple[QueueName, QueueBounds]]:
        """The bounds of these queues as their files show them; none of them stays open."""
        self._require_open()
        maps = FileMaps("queue")
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                yield name, bounds_of_files(UnitFiles(self._path(*name), QUEUE_UNIT_SIZE, maps))

    @property
    def file_size(self) -> int:
        """Bytes of each file of a new queue."""
        if self._given_size is None:
            self._given_size = self._size_seen() or QUEUE_FILE_SIZE
        return self._given_size

    @property
    def max_phy_offset(self) -> int:
        """The phy offset after the last message of all queues; -1: there is no unit. Opens every queue."""
        return max((self[name].max_phy_offset for name in self.queues()), default=-1)

    def get(self, topic: str, queue_id: int) -> ConsumeQueue | None:  # type: ignore[override]
        """The queue; None: there is none."""
        self._require_open()
        topic, queue_id = given_queue(topic, queue_id)
        with self._lock:
            queue = self._open.get((topic, queue_id))
            if queue is None and name_problem(topic, queue_id) is None:
                path = self._path(topic, queue_id)
                if disk.is_directory(path):
                    queue = self._opened(topic, queue_id, path)
            return queue

    def find_or_create(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The queue, with a new directory if it had none.

        Raises
        ------
        FormatError : the topic, which may come from a log, cannot be a directory's name
        """
        topic, queue_id = given_queue(topic, queue_id)
        queue = self.get(topic, queue_id)
        if queue is not None:
            return queue
        if not self.writable:
            raise ReadOnlyFileError("the queues are read-only", path=self.directory, hint="open them writable")
        self._owner.require()
        if (problem := name_problem(topic, queue_id)) is not None:
            raise FormatError(
                f"no queue can have this name: {problem}", path=self.directory, got=f"{topic[:80]!r} {queue_id}"
            )
        with self._lock:
            path = self._path(topic, queue_id)
            self._make(parent_of(path))
            self._make(path)
            return self._open.get((topic, queue_id)) or self._opened(topic, queue_id, path)

    def correct_min_offset(self, min_phy_offset: int) -> None:
        """`ConsumeQueue.correct_min_offset` of every queue."""
        for name in self.queues():
            self[name].correct_min_offset(min_phy_offset)

    def truncate_dirty_logic_files(self, phy_offset: int) -> None:
        """`ConsumeQueue.truncate_dirty_logic_files` of every queue with files: one without can be filled again."""
        for name in self.queues():
            queue = self[name]
            if queue.files:
                queue.truncate_dirty_logic_files(phy_offset)

    def flush(self) -> None:
        """Bring all units of all queues to the disk."""
        self._require_open()
        self._owner.require()
        with self._lock:
            queues, created = list(self._open.values()), sorted(self._created)
        for queue in queues:
            queue.flush()
        with self._syncs:
            for path in created:
                disk.sync_directory(parent_of(path))
                self._created.discard(path)

    def close(self) -> None:
        """Close every queue; may be called twice and changes no byte."""
        self._closed = True
        with self._lock:
            for queue in self._open.values():
                queue.close()
            self._maps.close()
        self._held.close()

    def __getitem__(self, name: QueueName) -> ConsumeQueue:
        queue = self.get(*name)
        if queue is None:
            raise KeyError(name)
        return queue

    def __iter__(self) -> Iterator[QueueName]:
        return iter(self.queues())

    def __len__(self) -> int:
        return len(self.queues())

    def __repr__(self) -> str:
        return f"ConsumeQueueTable({self.directory!r}, {len(self._open)} open)"

    def _path(self, topic: str, queue_id: int) -> str:
        return join(self.directory, topic, str(queue_id))

    def _opened(self, topic: str, queue_id: int, path: str) -> ConsumeQueue:
        queue = ConsumeQueue._of(
            path,
            self._maps,
            file_size=self.file_size if self.writable else self._given_size,
            writable=self.writable,
            ext=self._ext(topic, queue_id),
            shared=True,
        )
        self._open[topic, queue_id] = queue
        return queue

    def _ext(self, topic: str, queue_id: int) -> ConsumeQueueExt | None:
        if self._ext_directory is None:
            return None
        path = join(self._ext_directory, topic, str(queue_id))
        return ConsumeQueueExt._of(path, self._maps) if disk.is_directory(path) else None

    def _make(self, path: str) -> None:
        try:
            disk.make_directory(path)
        except FileExistsError:
            return
        self._created.add(path)
        disk.own_like(path, parent_of(path))

    def _size_seen(self) -> int | None:
        for topic, queue_id in list_queues(self.directory)[0][:_SIZE_FROM]:
            files, _ = list_queue_files(self._path(topic, queue_id), QUEUE_UNIT_SIZE)
            if (size := file_size_of(files, QUEUE_UNIT_SIZE)) is not None:
                return size
        return None


def _has_queues(directory: str) -> bool:
    """Whether there is a queue, also an empty one, and no directory of another kind that is named by a number."""
    return any(
        kinds.queue_id_of(queue.name) is not None and not kinds.strangers(queue.path)
        for topic in _directories(directory, [])
        for queue in _directories(topic.path, [])
    )


def list_queues(directory: str) -> tuple[list[QueueName], list[Skipped]]:
    """The queues below a directory of topics, in the order of their names, and what is no queue."""
    found: list[QueueName] = []
    skipped: list[Skipped] = []
    for topic in _directories(directory, skipped):
        for entry in _directories(topic.path, skipped):
            queue_id = kinds.queue_id_of(entry.name)
            if queue_id is not None:
                found.append((topic.name, queue_id))
            else:
                skipped.append(Skipped(entry.path, "not a directory named by a queue id"))
    return sorted(found), skipped


def remove_scraps(directory: str) -> None:
    """Remove new files of queues that a killed writer had not renamed yet. Nobody else may write there now."""
    for topic in _directories(directory, []):
        disk.remove_temporaries(topic.path, _SCRAP)


def _directories(directory: str, skipped: list[Skipped]) -> Iterator[Entry]:
    try:
        entries = sorted(scan(directory), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):  # deleted meanwhile
        return
    for entry in entries:
        if entry.name.startswith(".mqindex-"):
            continue  # a file of ours that does not have its name yet
        if not leads_to_directory(entry):
            skipped.append(Skipped(entry.path, "not a directory"))
        elif name_problem(entry.name, 0) is not None:
            skipped.append(Skipped(entry.path, "a name that is no UTF-8 text"))
        else:
            yield entry
