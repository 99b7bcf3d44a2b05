"""Whether a commit log, or a part of it, is missing, though index or queues have entries for its messages.

A volume may not be mounted, or a directory be wrong. If it were taken for an empty log, a store would lose its index
and its queues.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from mqindex._words import plural
from mqindex.errors import MQIndexError
from mqindex.files import disk
from mqindex.files.paths import relative
from mqindex.files.places.place import require_answer
from mqindex.files.reading.regular import reading
from mqindex.report import Finding
from mqindex.rocketmq import catalogue, kinds
from mqindex.rocketmq.directories import store
from mqindex.rocketmq.index.geometry import candidates
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.layout import INDEX_HEADER_SIZE, QUEUE_UNIT_SIZE, IndexHeader
from mqindex.rocketmq.log.expiry import was_deleted
from mqindex.rocketmq.log.log_entries import LogSpan
from mqindex.rocketmq.log.log_files import LogFile, list_log_files
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.queue.queue_files import queue_file_paths


def find_log_gone(options: StoreOptions, files: Sequence[LogFile], spans: Sequence[LogSpan]) -> Finding | None:
    """An error where the log, or one directory of several, is missing; None: nothing of it is missing.

    An unclean exit before anything had reached the disk may leave a first file without any message, and the next one,
    which a broker makes beforehand.
    """
    if 0 < len(files) <= 2 and not spans and store.was_unclean(options.root):
        return None
    if not spans:
        witness = next(_witnesses(options), None)
        if witness is None:
            return None
        # of several directories, one that is not there is the reason that no file of the others counts
        absent = next((one for one in options.commitlog if not disk.is_directory(one)), None)
        what = "no message in it" if absent is None else "no such directory"
        got = f"{what}, but entries in {relative(witness, options.root)}"
        return catalogue.LOG_MISSING.finding(absent or options.commitlog[0], expected="the commit log", got=got)
    empty = _empty_shares(options)
    if not empty:
        return None
    hole = next((one.stop for one, two in itertools.pairwise(spans) if one.stop < two.file_start), None)
    if hole is None and any(end >= spans[-1].stop and _reaches(path, end) for path, end in _indexed(options)):
        hole = spans[-1].stop
    if hole is None:
        return None  # a directory whose turn has not come yet
    got = f"no file in it, and no log from phy offset {hole} on"
    return catalogue.LOG_MISSING.finding(empty[0], expected="its share of the commit log", got=got)


def find_perhaps_gone(options: StoreOptions, spans: Sequence[LogSpan]) -> list[Finding]:
    """A warning where a directory of several is empty, and index files end before the log begins.

    Expired with their messages, a broker would have deleted them soon after, but the last one, which it keeps for ever;
    the directory may have had these messages. Source: RocketMQ 4.9.3 and 5.3.0 `IndexService.deleteExpiredFile`.
    """
    empty = _empty_shares(options)
    if not empty or not spans:
        return []
    begin = spans[0].file_start
    before = sum(end < begin and _reaches(path, end, begin) for path, end in [*_indexed(options)][:-1])
    if not before:
        return []
    got = (
        f"no file in it, and {plural(before, 'index file')} of messages before phy offset {begin}, where the log begins"
    )
    return [catalogue.LOG_PERHAPS_MISSING.finding(empty[0], expected="its share of the commit log", got=got)]


def find_ends_early(options: StoreOptions) -> list[Finding]:
    """A warning where the index or the queues go on after the last file of the log, and for each file that cannot be
    read and may say so: who builds from the log needs none of them.

    The log's last file is looked for last: a broker makes it before its first message, and then the entries.
    """
    unread: list[OSError] = []
    indexed = sorted(((end, path) for path, end in _indexed(options, unread)), reverse=True)
    units = sorted(_first_units(options, unread), reverse=True)
    files = list_log_files(options.commitlog)
    if not files:
        return []
    stop = files[-1].stop
    silent = [catalogue.FILE_UNREAD.finding(str(one.filename), error=one) for one in unread]
    beyond = itertools.chain(
        ((end, path) for end, path in indexed if end >= stop and _reaches(path, end)),
        ((at, path) for at, path in units if at >= stop and _goes_on(path, at)),
    )
    newest = next(beyond, None)
    if newest is None:
        return silent
    expected = f"messages up to phy offset {newest[0]}, as {relative(newest[1], options.root)} says"
    got = f"its last file, which ends at {stop}"
    return [catalogue.LOG_ENDS_EARLY.finding(files[-1].path, expected=expected, got=got), *silent]


def first_phy_offsets(options: StoreOptions) -> Iterator[int]:
    """The first phy offset in each file of the index and the queues that has an entry."""
    for path, _ in _indexed(options):
        with reading(path) as file:
            yield IndexHeader.from_bytes(file.read(INDEX_HEADER_SIZE)).begin_phy_offset
    yield from (phy_offset for phy_offset, _ in _first_units(options))


def _first_units(options: StoreOptions, unread: list[OSError] | None = None) -> Iterator[tuple[int, str]]:
    """The phy offset of the first unit in each file of the queues that has one, and the file."""
    for path in queue_file_paths(options.consume_queue):
        unit = _head(path, QUEUE_UNIT_SIZE, unread)
        if any(unit):
            yield int.from_bytes(unit[:8], "big", signed=True), path


def _empty_shares(options: StoreOptions) -> list[str]:
    """The directories without a file, of a log that has several."""
    several = options.commitlog if len(options.commitlog) > 1 else ()
    return [directory for directory in several if not kinds.numbered(directory)]


def _witnesses(options: StoreOptions) -> Iterator[str]:
    """Files with entries of messages."""
    yield from (path for path, _ in _indexed(options))
    yield from (path for _, path in _first_units(options))


def _indexed(options: StoreOptions, unread: list[OSError] | None = None) -> Iterator[tuple[str, int]]:
    """Index files with entries, and the phy offset of the last one as the header says it."""
    for path in kinds.index_paths(options.index):
        if disk.is_file(path):
            head = _head(path, INDEX_HEADER_SIZE, unread)
            if len(head) == INDEX_HEADER_SIZE and (header := IndexHeader.from_bytes(head)).index_count > 1:
                yield path, header.end_phy_offset


def _head(path: str, size: int, unread: list[OSError] | None) -> bytes:
    """The first bytes of a file; none if it cannot be read, where `unread` gets its error. None: that is raised."""
    try:
        with reading(path) as file:
            return file.read(size)
    except OSError as error:
        if unread is None or was_deleted(error):
            raise
        require_answer(error, path)
        unread.append(error)
        return b""


def _reaches(path: str, phy_offset: int, stop: int = 2**63) -> bool:
    """Whether the last of an index file's own entries is at a phy offset or after it, but before `stop`.

    One header that is damaged may say anything: it alone is no sign that the log is missing.
    """
    try:
        for pair in candidates(path, thorough=False):
            with IndexFile._open_known(path, pair) as index:
                if phy_offset <= _last_entry(index) < stop:
                    return True
    except MQIndexError as error:  # verify says what it is
        require_answer(error, path)
    return False


def _last_entry(index: IndexFile) -> int:
    """The phy offset of the entry that was written last, wherever `optimize` has brought it."""
    count = index.header.index_count
    last = int(index.entries(count - 1, count)["phy_offset"][0])
    return max(last, index._order().last_phy_offset)


def _goes_on(path: str, phy_offset: int) -> bool:
    """Whether the second unit of a queue's file, if there is one, is after the first; else one of them is damaged."""
    with reading(path) as file:
        file.seek(QUEUE_UNIT_SIZE)
        unit = file.read(QUEUE_UNIT_SIZE)
    return not any(unit) or int.from_bytes(unit[:8], "big", signed=True) > phy_offset
