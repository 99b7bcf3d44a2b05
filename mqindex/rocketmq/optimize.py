"""Optimize: index files whose entries of one slot are side by side, so that a cold look-up reads few pages."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.engines.engine import chosen_engine
from mqindex.engines.publishing import exchange_all, publish_all
from mqindex.engines.tasks import announce, held, require_seen, run_one, scratch_for, scratch_in
from mqindex.errors import GeometryError, OutputExistsError, require_switch
from mqindex.files import disk
from mqindex.files.backups.backup import backup_in
from mqindex.files.backups.exchange import Change, Exchange
from mqindex.files.paths import absolute, base_name, join, parent_of, real_path, status_of
from mqindex.files.places.place import given_path, require_here
from mqindex.files.results import output_place, staging
from mqindex.files.results.delivery import deliver, fetch_all, workshop
from mqindex.files.results.publication import Publication
from mqindex.report import RebuildReport, Value
from mqindex.rocketmq import kinds, layout
from mqindex.rocketmq.directories import store as stores
from mqindex.rocketmq.directories.wrong_place import refuse_other_place
from mqindex.rocketmq.index import geometry
from mqindex.rocketmq.index.geometry_fit import Geometry
from mqindex.rocketmq.optimized_file import FileTask, KnownFiles, MadeFile, optimize_file
from mqindex.rocketmq.sidecar.layout import FILTER_MOST_FILES
from mqindex.rocketmq.sidecar.names import DIRECTORY, FENCE, FILTER, fence_path, filter_path
from mqindex.rocketmq.sidecar.weaving import known_files, known_of, weave
from mqindex.rocketmq.sidecar.writing import sidecar_space

_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH


def optimize(
    index: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    hash_slot_num: int | None = None,
    index_num: int | None = None,
    overwrite: bool = False,
    engine: Engine | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> RebuildReport:
    """Write index files anew, the entries of each slot side by side: a look-up in a cold file reads few pages.

    Brokers serve such files, with the same answers in the same order as before, and continue to write after their last
    entries. Headers are kept, and so are the names of the files.

    Parameters
    ----------
    index : path or URL of a store's root, of a directory of index files, or of one such file. A task copies one from
        elsewhere to this machine first, beside the new one or where TMPDIR says.
    out : path or URL; gets the structure of a store, `index/<17 digits>`, and `mqindex-index/` with a fence for each
        and one key filter for all, which look-ups of this package use until something is written after the entries that
        they cover. It must not exist or be empty, or `overwrite=True` moves it to `<out>.backup-<UTC>`. The root of the
        same store with `overwrite=True`: in place, each file by one rename; the old ones go to
        `<store>/mqindex-backup-<UTC>/`, and `undo_repair` puts them back. The broker must be stopped for that. A URL
        is never written in place, and in an object store nothing is overwritten.
    hash_slot_num, index_num : int or None
        Another geometry, not in place: a broker reads all files with that of its configuration. Any number of slots is
        possible, as files hold the whole hash of a key; for files that are optimized already only a multiple of theirs,
        as the order of different slots' entries is lost in them. A look-up with `begin` ends at the first entry of its
        slot that is older, of any key: where clocks went back, another number of slots may change what it finds.
        index_num must be more than the entries of each file. None: the geometry of the files. For files that do not
        show their own geometry: give theirs.
    engine : where the stages run, a task for each file; None: `LocalEngine()`.
    storage_options : of URLs, as of `mqindex.rocketmq.rebuild`.

    Returns
    -------
    RebuildReport
        `files` and `entries` that were written; `settings["geometry"]` of them; `backup`: where the old ones are.

    Raises
    ------
    FileNotFoundError : no such path, or no index file there
    CorruptIndexError : a file contradicts itself; repair the store first
    FileStateError : a broker wrote to a file meanwhile; or a worker of a cluster does not see the files as others do
    IndexFullError : a file has more entries than `index_num` allows
    GeometryError : the geometry of the files cannot be found, or they are optimized already and do not allow the new
        one, or no broker could map it
    OutputExistsError : `out` holds something, and `overwrite` is False; or is a link, mount point or current directory
    StoreInUseError : in place, and a broker holds the store; or it holds an `out` that would be moved
    OSError : the disk lacks the space, which is checked beforehand; nothing was published
    RebuildError : a worker died; nothing was published, or, if it died while files got their places, what the message
        says

    Notes
    -----
    `out` appears by one rename, complete and on the disk, or not at all; in place every file is the old or the new one.
    In an object store its list of files, mqindex.json, comes last.
    In place, files that are optimized already stay untouched, and the filter gets what is new beside what it has.
    Source of what a broker's look-up does: RocketMQ 4.9.3 `IndexFile.selectPhyOffset`, `putKey`.

    Examples
    --------
    >>> report = optimize("store", "ordered")
    >>> report.files, report.entries
    (1, 208)
    >>> optimize("store", "store", overwrite=True).entries
    208
    """
    started = time.perf_counter()
    engine = chosen_engine(engine)
    require_switch("overwrite", overwrite)
    where, place = (absolute(given_path(*one, storage_options)) for one in (("index", index), ("out", out)))
    order = _Order(where, place, *layout.given_geometry(hash_slot_num, index_num), overwrite)
    engine = require_seen(engine, [where, join(where, "index"), parent_of(order.out)])
    plan = run_one(engine, _begin, order, "look at the files")
    announce(engine, plan.note)
    report = RebuildReport(where, settings={"geometry": plan.geometry})
    alone = held(engine, stores.hold_writers, order.out) if plan.in_place else contextlib.nullcontext()
    made_in = scratch_in(engine, plan.home) if plan.in_place else scratch_for(engine, order.out)
    with alone, made_in as (seeing, scratch):
        there = run_one(seeing, _look_at_filter, plan, "look at the key filter")
        tasks = [FileTask(path, plan.own, plan.geometry.value, scratch, plan.in_place, there) for path in plan.paths]
        weights = [plan.size] * len(tasks)
        made = seeing.map(optimize_file, tasks, name="bring entries together", weights=weights, unit="byte")
        woven = run_one(seeing, _weave, _Weave(plan, scratch, there, tuple(made)), "write the key filter")
        _publish(seeing, order, plan, scratch, made, woven, report)
    report.files = sum(one.path is not None for one in made)
    report.entries = sum(one.entries for one in made if one.path is not None)
    report.fsync_seconds += woven.fsync_seconds + sum(one.fsync_seconds for one in made)
    report.seconds = time.perf_counter() - started
    return report


@dataclass(frozen=True, slots=True)
class _Order:
    """The input of the first task."""

    index: str
    out: str
    hash_slot_num: int | None
    index_num: int | None
    overwrite: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """`own`: the geometry of the files at `paths`; `geometry`: of the new ones, each of `size` bytes.

    `home`: where the scratch goes. `note`: shown before the work.
    """

    paths: tuple[str, ...]
    own: Geometry
    geometry: Value
    size: int
    home: str
    in_place: bool
    note: str


@dataclass(frozen=True, slots=True)
class _Weave:
    """The input of the task that writes the filter."""

    plan: _Plan
    scratch: str
    there: KnownFiles
    made: tuple[MadeFile, ...]


@dataclass(frozen=True, slots=True)
class _Woven:
    """The new filter in the scratch, or None; `like`: the index file whose owner and mode it takes.

    `gone`: sidecars that go without one that takes their place.
    """

    path: str | None
    like: str
    gone: tuple[str, ...]
    fsync_seconds: float


# ---- before the work ----------------------------------------------------------------------------------------------


def _begin(order: _Order) -> _Plan:
    """Everything that may be refused is refused here, before the first byte is written."""
    directory, paths = _files_of(order.index)
    in_place = real_path(join(order.out, "index")) == real_path(directory)
    own, new = _geometries(order, paths)
    if in_place:
        require_here(order.out)
        _require_in_place(order, own, new.value)
        home = staging.home_of(directory)
        staging.sweep(home)
    else:
        _require_elsewhere(order, directory)
        home = parent_of(order.out)
    size = layout.index_file_size(*new.value)
    needed = (size + sidecar_space(new.value)) * len(paths)
    free = disk.check_space(home, needed)
    needs = f"needs {needed:,} bytes in {home}, where {free}"
    note = f"reads {plural(len(paths), 'index file')}, {needs}"
    return _Plan(tuple(paths), own, new, size, home, in_place, note)


def _look_at_filter(plan: _Plan) -> KnownFiles:
    """After the store is held: another run may have been there before."""
    if not plan.in_place:
        return KnownFiles()
    directory = parent_of(plan.paths[0])
    knows = known_files(filter_path(directory), plan.own)
    beside = tuple(known_of(path for path in kinds.index_paths(directory) if path not in plan.paths))
    times = Counter([*beside, *known_of(plan.paths)])
    full = len(knows) >= FILTER_MOST_FILES
    return KnownFiles(knows, frozenset(one for one, n in times.items() if n > 1 or full) - knows, beside)


def _files_of(index: str) -> tuple[str, list[str]]:
    """The directory of the files, and the files to optimize."""
    if not disk.is_there(index):
        raise FileNotFoundError(errno.ENOENT, "no such index", index)
    if not disk.is_directory(index):
        kinds.require_finished(index)
        return parent_of(index), [index]
    inside = join(index, "index")
    directory = inside if disk.is_directory(inside) else index
    kinds.require_finished(directory)
    paths = kinds.index_paths(directory)
    if not paths and directory == index and kinds.is_left_of_store(index):
        raise FileNotFoundError(errno.ENOENT, "the store has no index; `mqindex repair` builds it", inside)
    refuse_other_place(directory, "index", has_files=bool(paths))
    if not paths:
        raise FileNotFoundError(errno.ENOENT, "no index file there", directory)
    return directory, paths


def _geometries(order: _Order, paths: Sequence[str]) -> tuple[Geometry, Value]:
    """The geometries of the files as they are, and as they will be."""
    given = order.hash_slot_num, order.index_num
    try:
        own = geometry.infer(paths)  # by a quick look: each file is checked whole before it is sorted
    except GeometryError:
        length = geometry.file_size(paths[0])
        shown = geometry.resolve(*given, length)
        if shown is None or layout.index_file_size(*shown) != length:
            raise
        return shown, Value(shown, "given")
    chosen = (given[0] or own[0], given[1] or own[1])
    layout.index_file_size(*chosen)
    return own, Value(chosen, "that of the files" if chosen == own else "given")


def _require_in_place(order: _Order, own: Geometry, new: Geometry) -> None:
    if not order.overwrite:
        raise OutputExistsError(
            "the index files are there",
            path=order.out,
            hint="choose another place, or overwrite (--force): the old files then go to a backup in the store",
        )
    if own != new:
        raise GeometryError(
            "another geometry goes elsewhere, because a broker reads all files with its own",
            path=order.out,
            expected=f"hash_slot_num {own[0]}, index_num {own[1]}",
            got=f"hash_slot_num {new[0]}, index_num {new[1]}",
        )


def _require_elsewhere(order: _Order, directory: str) -> None:
    real = real_path(directory)
    alone = base_name(real) != "index" and not disk.is_directory(order.index)  # a copy, with anything beside it
    roots = dict.fromkeys(map(parent_of, (directory, real)))  # two, where the index is a link to another disk
    parts = [place for root in roots if kinds.is_left_of_store(root) for place in stores.places_of(root)]
    output_place.require_apart(order.out, [order.index if alone else directory, *parts], "the store of the index has")
    output_place.require_new(order.out, overwrite=order.overwrite)


# ---- the filter -----------------------------------------------------------------------------------------------------


def _weave(item: _Weave) -> _Woven:
    """One filter of all files in the scratch; None, where that in place has them all.

    Two files by whose fences it cannot tell them apart are left out: they may hold everything.
    """
    plan, directory = item.plan, parent_of(item.plan.paths[0])
    new = {one.known: one.keys for one in item.made if one.keys is not None}
    times = Counter([*item.there.beside, *(one.known for one in item.made if one.known)])
    wanted = [one for one, n in times.items() if n == 1 and (one in new or one in item.there.knows)]
    path, seconds = _filter_of(item, wanted, new) if new and wanted else (None, 0.0)
    if not plan.in_place:
        return _Woven(path, "", (), seconds)
    old = [fence_path(place) for place, one in zip(plan.paths, item.made, strict=True) if not one.known]
    old += [filter_path(directory)] if new and not wanted else []
    gone = tuple(base_name(one) for one in old if disk.exists(one))
    there = kinds.index_paths(directory) or plan.paths
    # the file that the fewest may read, the newest of several: the filter has something of all
    like = min(reversed(there), key=lambda path: status_of(path).st_mode & _OTHERS_READ)
    return _Woven(path, base_name(like), gone, seconds)


def _filter_of(item: _Weave, wanted: Sequence[bytes], new: Mapping[bytes, str]) -> tuple[str, float]:
    """The filter in the scratch, and the time to bring it to the disk."""
    with workshop(item.scratch) as home:
        here = dict(zip(new, fetch_all(list(new.values()), home), strict=True))
        path = here.get(wanted[0]) if len(wanted) == 1 else None  # a filter of one file is that of it alone
        if path is None:
            path = disk.temporary(home, "filter")
            before = filter_path(parent_of(item.plan.paths[0]))
            weave(path, wanted[-FILTER_MOST_FILES:], here, before, item.plan.geometry.value)
        started = time.perf_counter()
        disk.sync_file(path)
        seconds = time.perf_counter() - started
        return deliver(path, item.scratch), seconds


def _moves(name: str, made: MadeFile) -> Iterator[tuple[str, str]]:
    """Where the files of one task go."""
    if made.path is not None:
        yield made.path, join("index", name)
    if made.fence is not None:
        yield made.fence, join(DIRECTORY, name + FENCE)


# ---- publication -------------------------------------------------------------------------------------------


def _publish(
    engine: Engine,
    order: _Order,
    plan: _Plan,
    scratch: str,
    made: Sequence[MadeFile],
    woven: _Woven,
    report: RebuildReport,
) -> None:
    names = [base_name(path) for path in plan.paths]
    moves = [(name, move) for name, one in zip(names, made, strict=True) for move in _moves(name, one)]
    if woven.path is not None:
        moves.append((woven.like, (woven.path, join(DIRECTORY, FILTER))))
    if not plan.in_place:
        aside = order.out + f".backup-{staging.backup_name()}" if order.overwrite else None
        about = tuple(zip(("hash_slot_num", "index_num"), plan.geometry.value, strict=True))
        publication = Publication(scratch, order.out, aside, tuple(move for _, move in moves), ("index",), about)
        published = publish_all(engine, publication)
        report.out_files, report.backup = published.paths, published.backup
        report.fsync_seconds += published.fsync_seconds
        return
    # Only who may read an index file may know what is in it: a fence takes its owner and mode, the filter those of the
    # one that the fewest may read.
    changes = [Change(place, path, join(order.out, "index", name)) for name, (path, place) in moves]
    changes += [Change(join(DIRECTORY, name)) for name in woven.gone]
    if changes:
        report.backup = join(order.out, run_one(engine, backup_in, [order.out], "make a backup"))
        report.out_files = exchange_all(engine, Exchange(order.out, report.backup, tuple(changes)))
