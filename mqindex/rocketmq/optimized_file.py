"""One index file brought into the order of its slots, with a fence and a filter of it alone, in a scratch."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace

from mqindex._native.index_file import IndexCore
from mqindex._words import plural
from mqindex.errors import CorruptIndexError, FileStateError, GeometryError, IndexFullError
from mqindex.files import disk
from mqindex.files.places.place import Place
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.results import staging
from mqindex.files.results.delivery import copied, deliver_all, workshop
from mqindex.rocketmq import catalogue, layout
from mqindex.rocketmq.checks.check import structural_finding
from mqindex.rocketmq.index import geometry
from mqindex.rocketmq.index.compare import next_entry
from mqindex.rocketmq.index.geometry_fit import Geometry
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.sidecar.reading import find_sidecars, read_fence_header
from mqindex.rocketmq.sidecar.writing import write_sidecars


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """In place the filter that is there, whose files are told by their fences: it `knows` these.

    `outside`: it knows them not, and never will: two have the same fence, or it is full. `beside`: the fences of files
    that are not optimized now, known or not.
    """

    knows: frozenset[bytes] = frozenset()
    outside: frozenset[bytes] = frozenset()
    beside: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class FileTask:
    """One file. `skip`: it stays if it is optimized already."""

    path: str
    own: Geometry
    geometry: Geometry
    scratch: str
    skip: bool
    there: KnownFiles


@dataclass(frozen=True, slots=True)
class MadeFile:
    """New files in the scratch: an index file and its fence, if it had no good ones, and a filter of it alone.

    `known`: what a filter knows the file by; b"": it has no entries.
    """

    path: str | None
    entries: int
    known: bytes = b""
    fence: str | None = None
    keys: str | None = None
    fsync_seconds: float = 0.0


def optimize_file(task: FileTask) -> MadeFile:
    """Write one file anew in the scratch, complete and on the disk."""
    with workshop(task.scratch) as home:
        made = _optimized(replace(task, scratch=home))
        files = [one for one in (made.path, made.fence, made.keys) if one is not None]
        there = dict(zip(files, deliver_all(files, task.scratch), strict=True))
        path, fence, keys = (one and there[one] for one in (made.path, made.fence, made.keys))
        return replace(made, path=path, fence=fence, keys=keys)


def _optimized(task: FileTask) -> MadeFile:
    length, wanted = geometry.file_size(task.path), layout.index_file_size(*task.own)
    if length != wanted:
        raise GeometryError(
            "an index file has another length", path=task.path, expected=wanted, got=length, hint=_REPAIR
        )
    with _opened(task) as source:
        _require_sound(source)
        entries = next_entry(source) - 1
        if task.skip and source._order().entries == entries:
            return _as_it_is(source, task, entries)
        if entries >= task.geometry[1]:
            raise IndexFullError(
                "an index file has too many entries for this geometry", path=task.path,
                expected=f"{plural(task.geometry[1] - 1, 'entry')} or fewer", got=entries,
                hint=f"pass index_num= (--index-num) of {entries + 1} or more",
            )  # fmt: skip
        if task.geometry[0] % task.own[0] and source._order().moved:
            raise _order_lost(task)
        path = disk.temporary(task.scratch, "part")
        size = layout.index_file_size(*task.geometry)
        with MappedFile.create(path, size, like=staging.rights_in(task.scratch)) as file:
            file.advise_huge()
            _fill(source, IndexCore(file.map, *task.geometry, True, task.path))
            started = time.perf_counter()
            file.flush()
            elapsed = time.perf_counter() - started
    return _with_sidecars(path, path, task, entries, elapsed)


def _opened(task: FileTask) -> IndexFile:
    """The file to read, of which all is needed, here and there: of one elsewhere a copy."""
    if not isinstance(task.path, Place):
        return IndexFile._open_known(task.path, task.own)
    return IndexFile(copied(task.path, task.scratch), *task.own, contextlib.ExitStack())


def _order_lost(task: FileTask) -> GeometryError:
    """A look-up ends at the first entry that is too old, of any key: a slot's entries must be in time order."""
    slots = f"--hash-slot-num {task.geometry[0]}"
    return GeometryError(
        "the index file is optimized already, so that entries of different slots cannot share one", path=task.path,
        expected=f"a multiple of {plural(task.own[0], 'slot')}", got=task.geometry[0],
        hint=f"rebuild the index from the log with {slots} (mqindex rebuild), and optimize that",
    )  # fmt: skip


def _as_it_is(source: IndexFile, task: FileTask, entries: int) -> MadeFile:
    """A file that stays; new sidecars where it has no good ones."""
    with (
        MappedFile.open(source.path) as file,
        contextlib.closing(IndexCore(file.map, *task.own, False, source.path)) as core,
    ):
        there = find_sidecars(file, task.own)
        if there is not None:
            with contextlib.closing(there):
                known = there.header.of_filter()
                settled = known in task.there.knows or known in task.there.outside
                if settled and there.lead_to_all(core, filtered=known in task.there.knows):
                    return MadeFile(None, entries, known)
    return _with_sidecars(None, source.path, task, entries)


def _with_sidecars(
    path: str | None, ordered: str, task: FileTask, entries: int, fsync_seconds: float = 0.0
) -> MadeFile:
    sides = write_sidecars(ordered, task.scratch, geometry=task.geometry)
    if sides is None:
        return MadeFile(path, entries, fsync_seconds=fsync_seconds)
    return MadeFile(path, entries, read_fence_header(sides[0]).of_filter(), *sides, fsync_seconds)


def _fill(source: IndexFile, core: IndexCore) -> None:
    """Fill the new file. An error in it was in the source, which was good a moment ago: a broker wrote to it."""
    try:
        source._sort_into(core)
        if _errors(core.check()):
            raise _written(source.path)
    finally:
        core.close()


_REPAIR = "repair the store first (mqindex repair)"


def _require_sound(source: IndexFile) -> None:
    before = source.header
    faults = _errors(source._check())
    if not faults:
        return
    if source.header != before:
        raise _written(source.path)
    meaning, first = catalogue.INDEX_FAULTS[faults[0][0]].meaning, structural_finding(source.path, faults[0])
    raise CorruptIndexError(
        meaning.removesuffix("."), path=source.path, at=first.at, field=first.field, expected=first.expected,
        got=first.got, hint=_REPAIR,
    )  # fmt: skip


def _errors(faults: list[tuple[str, int, int, int, int]]) -> list[tuple[str, int, int, int, int]]:
    """What makes look-ups wrong; the others are kept with the header."""
    return [fault for fault in faults if catalogue.INDEX_FAULTS[fault[0]].severity == "error"]


def _written(path: str) -> FileStateError:
    hint = "stop the broker first, or optimize a copy of the store"
    return FileStateError("the index file was written meanwhile", path=path, hint=hint)
