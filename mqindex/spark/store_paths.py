"""Where in a store the files of a path are. A path of something else is an error, never a result without rows.

A part of a store that is empty has no rows. Only a log without messages, where the index or queues have entries for
some, is an error: its volume is not mounted.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqindex.errors import BadMagicError, FileStateError, MQIndexError
from mqindex.files import disk
from mqindex.files.paths import absolute, base_name, join, list_names, parent_of
from mqindex.kafka.directories.survey import partitions_at
from mqindex.kafka.kinds import is_partition
from mqindex.rocketmq.kinds import (
    are_queues,
    beginning_of,
    is_index_name,
    is_left_of_store,
    is_rocksdb,
    offset_of,
    require_finished,
    strangers,
)
from mqindex.rocketmq.log.dledger import refuse_entries_beside
from mqindex.rocketmq.pipeline.survey import log_gone_from
from mqindex.rocketmq.queue.consume_queue_table import list_queues

LOG, INDEX, QUEUES, BATCH_QUEUES = "commitlog", "index", "consumequeue", "batchconsumequeue"
_A_LOG = "a store's root directory, or that of a commit log: files named by 20 digits"
_AN_INDEX = "a store's root directory, or that of index files: names of 17 digits"
_OF_QUEUES = "a store's root directory, or that of consume queues: consumequeue/"


def log_directories(paths: Sequence[str]) -> list[str]:
    """The directories of a commit log, from those of stores or of logs; some of several may still be empty."""
    homes = [_log_directory(path, among_others=len(paths) > 1) for path in paths]
    root = next((parent_of(home) for home in homes if _is_called(home, LOG)), None)
    if root is not None and not any(map(_log_files, homes)):
        refuse_entries_beside(root)
    gone = None if root is None else log_gone_from(root, homes)
    if gone is not None:
        hint = "is its volume mounted? If the log is elsewhere, give the paths of all its directories"
        raise FileStateError(
            "the commit log is missing", path=gone.path, expected=gone.expected, got=gone.got, hint=hint
        )
    return homes


def index_directory(path: str) -> str:
    """The directory of index files, from that or a store's."""
    home = _part(path, [INDEX], _AN_INDEX)[0]
    if not (_is_called(home, INDEX) or any(map(is_index_name, list_names(home)))):
        raise _wrong("no index directory", home, _AN_INDEX)
    return home


def queue_directories(path: str) -> list[str]:
    """The directories of consume queues, from a store's or one of them."""
    homes = _part(path, [QUEUES, BATCH_QUEUES], _OF_QUEUES)
    for home in homes:
        require_finished(home)
        if is_rocksdb(home):
            expected = "directories of topics"
            raise FileStateError("the consume queues are in RocksDB", path=home, expected=expected, got="its files")
        if not (_is_called(home, QUEUES, BATCH_QUEUES) or _holds_queues(home)):
            raise _wrong("no consume queues", home, _OF_QUEUES)
    return homes


def _log_directory(path: str, *, among_others: bool) -> str:
    home = _part(path, [LOG], _A_LOG)[0]
    files = _log_files(home)
    known = _is_called(home, LOG) or (among_others and not files) or any(map(_begins_as_a_log, files))
    if strangers(home) or not known:
        raise _wrong("no commit log", home, _A_LOG)
    return home


def _log_files(home: str) -> list[str]:
    return [join(home, name) for name in list_names(home) if offset_of(name) is not None]


def _part(path: str, parts: Sequence[str], expected: str) -> list[str]:
    """The parts that a store has, or the path itself where it is not a store's."""
    if not disk.is_there(path):
        raise FileNotFoundError(2, "no such directory", path)
    if not disk.is_directory(path):
        raise BadMagicError("no directory", path=path, expected=expected, got="a file")
    if _is_called(path, QUEUES, BATCH_QUEUES) and are_queues(path):
        return [path]  # in which a topic may have the name of a part
    inner = [join(path, part) for part in parts]
    found = [part for part in inner if disk.is_directory(part)]
    if not found and not _is_called(path, *parts) and is_left_of_store(path):
        hint = "if that is elsewhere, give its own path"
        raise FileStateError(f"the store has no {parts[0]}/", path=path, hint=hint)
    return found or [path]


def _is_called(path: str, *names: str) -> bool:
    return base_name(absolute(path)) in names


def _begins_as_a_log(path: str) -> bool:
    """Whether a file begins with a message, or is still empty: a queue's file has the same name."""
    return beginning_of(path) in ("message", "zeros")


def _holds_queues(home: str) -> bool:
    return any(_log_files(join(home, topic, str(queue_id))) for topic, queue_id in list_queues(home)[0])


def _wrong(what: str, path: str, expected: str) -> BadMagicError:
    return BadMagicError(what, path=path, expected=expected, got=_seen(path))


def _seen(path: str) -> str:
    """What a directory is instead, if that is known."""
    if not list_names(path):
        return "an empty directory"
    if is_partition(path):
        return "a Kafka partition"
    try:
        return "a Kafka log dir" if partitions_at(path) else "none of it"
    except MQIndexError:
        return "none of it"
