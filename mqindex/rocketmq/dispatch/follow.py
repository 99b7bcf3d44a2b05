"""Follow: a side-car that keeps index and queues beside the store of a live broker, and never writes into that store.

`out` is shaped like a store's root, without a commit log of its own:

```
out/index/...  out/consumequeue/...    what dispatch writes, byte for byte the broker's
out/checkpoint  out/lock  out/abort    as in a broker's store: `abort` stays where the exit was not clean
out/follow.json                        whose log this is, and the settings that shaped the files
```
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Unpack

from mqindex._options import with_options_of
from mqindex.engines import Engine
from mqindex.engines.engine import chosen_engine
from mqindex.engines.tasks import announce
from mqindex.errors import ReadOnlyFileError, StoreInUseError, TruncatedFileError, path_of
from mqindex.files import disk
from mqindex.files.few_threads import started
from mqindex.files.paths import absolute, parent_of
from mqindex.files.places.place import is_url
from mqindex.files.rights import as_owner_of
from mqindex.rocketmq.checks.diagnosis import check_files
from mqindex.rocketmq.directories import store as stores
from mqindex.rocketmq.dispatch.abort_mark import AbortMark
from mqindex.rocketmq.dispatch.dispatch_flush import DispatchFlush, Stored
from mqindex.rocketmq.dispatch.dispatched import dispatched_offset
from mqindex.rocketmq.dispatch.follow_home import FollowHome, settle
from mqindex.rocketmq.dispatch.outputs import open_outputs
from mqindex.rocketmq.dispatch.reput import OnReput, Reput, ReputProgress, ReputResult, Stop
from mqindex.rocketmq.index.index_service import IndexService
from mqindex.rocketmq.log.expiry import read_again, was_deleted
from mqindex.rocketmq.log.growing_log import LogChangedError
from mqindex.rocketmq.log.log_files import list_log_files
from mqindex.rocketmq.options import StoreArguments, store_options
from mqindex.rocketmq.pipeline.log_end import fix_log_end
from mqindex.rocketmq.pipeline.log_gone import find_ends_early
from mqindex.rocketmq.pipeline.parts import check_parts
from mqindex.rocketmq.pipeline.splits import SPLIT_SIZE
from mqindex.rocketmq.pipeline.survey import survey
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable, remove_scraps
from mqindex.rocketmq.repair import repair_store
from mqindex.zones.cache import Cache, ZoneCache

_TRIES = 5  # repairs in a row without progress
_SLOW = 1.0  # seconds of the last flush, after which a note explains why it takes so long


@dataclass(slots=True)
class FollowReport:
    """What a follower did until it was stopped: counts of this run, and where it stopped.

    Attributes
    ----------
    store, out : str, the paths
    phy_offset : int, everything before it was dispatched
    lag_bytes : int, about how much of the log was not dispatched
    messages, entries, units : int
    store_timestamp : int, ms since the epoch, of the last message; 0: none
    repairs : int, how often `out` had to be repaired
    refused : int, units of queues that no file system can name
    seconds : float

    Notes
    -----
    Counts are of this run of `follow`. Source: RocketMQ 4.9.3 `DefaultMessageStore.ReputMessageService`.
    """

    store: str
    out: str
    phy_offset: int = 0
    lag_bytes: int = 0
    messages: int = 0
    entries: int = 0
    units: int = 0
    store_timestamp: int = 0
    repairs: int = 0
    refused: int = 0
    seconds: float = 0.0


@with_options_of(store_options)
def follow(
    store: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    stop: Stop,
    progress: OnReput | None = None,
    interval: float = 0.001,
    cache: Cache = None,
    engine: Engine | None = None,
    **given: Unpack[StoreArguments],
) -> FollowReport:
    """Keep an index and consume queues in `out` up to date with a store's growing commit log, until `stop` is set.

    A message is found in `out/index` a few milliseconds after its append. After a stop the next run
    continues there; after a kill it first repairs `out` from the log. Only one follower at a time may have `out`.

    Parameters
    ----------
    store : path of a store's root; it is only read, a broker may be writing it.
    out : path; does not exist yet, or is empty, or was followed into before.
    stop : a `threading.Event`, or anything with its `is_set` and `wait`.
    progress : called about once a second with a `ReputProgress`.
    interval : seconds between looks at the log while messages come.
    cache : where zone maps of the log's files are kept, as of `scan`, and grow with it; False: nowhere.
    config, commitlog, hash_slot_num, index_num, broker_version, storage_options : store options, as for `rebuild`. The
        first run decides; `out` remembers.
    engine : where a repair of `out` runs; None: `LocalEngine()`.

    Raises
    ------
    StoreInUseError : another follower has `out`.
    OutputExistsError : `out` holds something else.
    ValueError : `out` is in the store, or was made with other settings.
    FileNotFoundError : the store is gone, at the start or later.
    ReadOnlyFileError : a path is a URL.

    Notes
    -----
    Where the log is cut, or written anew below what was dispatched, `out` is repaired and following continues. An
    extension file of consume queues is not written: units then hold the plain tag hash.
    Source: RocketMQ 4.9.3 `DefaultMessageStore.ReputMessageService`.

    Examples
    --------
    >>> from threading import Event
    >>> stop = Event()
    >>> def until_it_has_610(progress):
    ...     if progress.messages == 610:
    ...         stop.set()
    >>> report = follow("store", "followed", stop=stop, progress=until_it_has_610)
    >>> report.messages, report.entries, report.units
    (610, 1466, 610)
    """
    started = time.perf_counter()
    engine = chosen_engine(engine)
    for path in (path_of("store", store), path_of("out", out)):
        _require_here(path)
    options, place = store_options(store, **given), absolute(path_of("out", out))
    for path in options.commitlog:
        _require_here(path)
    kept = ZoneCache.of(cache, lambda: [*stores.homes_of(options.root, options.commitlog), place])
    with as_owner_of(place):
        home = settle(options, place, say=partial(announce, engine))
        for warning in read_again(lambda: find_ends_early(options)):
            announce(engine, str(warning))
        report = FollowReport(options.root, home.out)
        tries = 0
        while True:
            _require_alone(home)
            try:
                with _cuts_as_changes(home):
                    mended = home.unclean and mend(home, engine)
                    report.repairs += mended
                    _run(home, stop, interval, progress, engine, report, kept, mended=mended)
                break
            except LogChangedError as changed:
                if not list_log_files(home.commitlog):  # as on an unmounted volume: that is no log that was cut
                    raise FileNotFoundError(errno.ENOENT, "the commit log is gone", home.commitlog[0]) from None
                tries = 0 if report.messages else tries + 1
                if tries > _TRIES:
                    raise
                announce(engine, f"{changed}; {home.out} is repaired")
            except OSError as error:
                error.filename = error.filename or home.out  # a full disk does not say where
                raise
    report.seconds = time.perf_counter() - started
    return report


def _require_here(path: str) -> None:
    if is_url(path):
        what, hint = "a log that grows is followed on the broker's own disk", "rebuild reads and writes a URL, once"
        raise ReadOnlyFileError(what, path=path, hint=hint)


def _require_alone(home: FollowHome) -> None:
    try:
        with stores.hold_lock(home.out):
            pass
    except StoreInUseError:
        raise StoreInUseError(
            "another follower, or a broker, has this directory", path=home.out, hint="choose another place"
        ) from None


@contextmanager
def _cuts_as_changes(home: FollowHome) -> Iterator[None]:
    """A file of the log that is cut, or deleted, while it is read, also by a repair, is one more change of the log."""
    try:
        yield
    except TruncatedFileError as cut:
        if parent_of(cut.path or "") not in home.commitlog:
            raise
        raise LogChangedError.of(cut) from None
    except FileNotFoundError as error:
        if parent_of(error.filename or "") not in home.commitlog or not was_deleted(error):
            raise
        raise LogChangedError("the log's files were deleted while they were read", path=error.filename) from None


def _dispatched(home: FollowHome, index: IndexService | None, queues: ConsumeQueueTable) -> tuple[int, int]:
    """How far the index and the queues reach; one that is not written counts as reaching as far as the other."""
    of_queues = dispatched_offset(home.commitlog, None, queues, tags=home.tags, rules=home.rules)
    of_index = of_queues if index is None else dispatched_offset(home.commitlog, index, None, tags=home.tags)
    return of_index, of_queues


def _run(
    home: FollowHome,
    stop: Stop,
    interval: float,
    progress: OnReput | None,
    engine: Engine,
    report: FollowReport,
    cache: ZoneCache,
    *,
    mended: bool,
) -> None:
    """Follow until the stop. `abort` stays unless all went well."""
    with stores.hold_lock(home.out), AbortMark(home.out) as mark, ExitStack() as opened:
        mark.set(str(os.getpid()).encode())
        index, queues = open_outputs(opened, home.options, home.geometry, file_size=home.rules.file_size)
        done = _dispatched(home, index, queues)
        # A repair of a log that grows meanwhile may see more of it for the queues than for the index, or less.
        start = min(done) if mended else max(done)
        reput = opened.enter_context(
            Reput(
                home.commitlog,
                index,
                queues,
                tags=home.tags,
                rules=home.rules,
                start=start,
                indexed=done[0],
                batch_topics=home.batch_topics,
                cache=cache,
            )
        )
        reput.watch()  # the last message may have been torn when it was dispatched: it is compared, then watched
        if _dispatched(home, index, queues) != done:
            raise LogChangedError("the log changes while it is repaired", path=home.commitlog[0])
        announce(engine, f"follows {home.store} into {home.out} from phy offset {start:,}")
        keeper = _Housekeeping(home, index, queues, reput, progress)
        try:
            reput.follow(stop, interval=interval, progress=keeper.tick)
            reput.zones.keep()
        except BaseException:
            keeper.flush.abandon()
            raise
        finally:
            _fill(report, reput, keeper.lag_bytes)
        with _explained_if_slow(engine, home):
            keeper.flush.close()
        mark.proven = True


@contextmanager
def _explained_if_slow(engine: Engine, home: FollowHome) -> Iterator[None]:
    """Show a note where the flush is slow: an index file has hundreds of megabytes, and a disk may be busy."""
    note = f"everything is dispatched; {home.out} goes to the disk, or is repaired by the next run if that is killed"
    over = threading.Event()

    def explain() -> None:
        if not over.wait(_SLOW):
            announce(engine, note)

    started(explain, "slow")
    try:
        yield
    finally:
        over.set()


class _Housekeeping:
    """Once a second: raise errors of the flush, remove what is of expired messages, and report the progress."""

    def __init__(
        self,
        home: FollowHome,
        index: IndexService | None,
        queues: ConsumeQueueTable,
        reput: Reput,
        progress: OnReput | None,
    ) -> None:
        self._home, self._index, self._progress, self._zones = home, index, progress, reput.zones
        self._minimum = 0
        self.lag_bytes = 0
        self.flush = DispatchFlush(
            home.checkpoint, index, queues, lambda: Stored(reput.store_timestamp, reput.queued_phy_offset)
        )

    def tick(self, progress: ReputProgress) -> None:
        self.flush.check()
        self._zones.tick()
        self.lag_bytes = progress.lag_bytes
        files = list_log_files(self._home.commitlog)
        if not files and self._minimum:
            raise FileNotFoundError(errno.ENOENT, "the commit log is gone", self._home.commitlog[0])
        if files and files[0].start > self._minimum:
            self._minimum = files[0].start
            if self._index is not None:
                self._index.delete_expired_file(self._minimum)
        if self._progress is not None:
            self._progress(progress)


def _fill(report: FollowReport, reput: Reput, lag_bytes: int) -> None:
    done: ReputResult = reput.result()
    report.messages += done.messages
    report.entries += done.entries
    report.units += done.units
    report.phy_offset, report.lag_bytes = done.phy_offset, lag_bytes
    report.store_timestamp = done.store_timestamp or report.store_timestamp
    report.refused += sum(reput.refused.values())


_NEWEST = 3  # index files that a changed end of the log reaches


def mend(home: FollowHome, engine: Engine) -> bool:
    """Repair index and queues; False: there are none yet."""
    if not home.has_files:
        return False
    remove_scraps(home.consume_queue)
    _drop_newest(home, engine)
    repair_store(home.options, check_parts(None), cut_damaged=True, engine=engine, look_again=False)
    return True


def _drop_newest(home: FollowHome, engine: Engine) -> None:
    """Remove the newest index files from the first bad one on: then the repair continues as an uninterrupted follower.

    A repair keeps every good file, also one after a bad file, whose gap then gets files that are not full.
    """
    found, _ = fix_log_end(engine, survey(home.options), SPLIT_SIZE)
    count = len(found.index_files)
    newest = range(max(0, count - _NEWEST), count)
    checked = check_files(engine, found, newest, deep=False)
    bad = next((number for number, one in zip(newest, checked, strict=True) if not one.good), count)
    for path in found.index_files[bad:]:
        disk.remove(path)
