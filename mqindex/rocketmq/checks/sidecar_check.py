"""Fences and the key filter beside the index: does each fit its index file, and find every entry of it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mqindex._native.index_file import IndexCore
from mqindex._words import plural
from mqindex.errors import MQIndexError
from mqindex.files.paths import base_name, join
from mqindex.files.places.place import require_answer
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.reading.opening import map_file
from mqindex.report import Finding
from mqindex.rocketmq import catalogue, kinds, layout
from mqindex.rocketmq.layout import INDEX_HEADER_SIZE, IndexHeader
from mqindex.rocketmq.sidecar.key_filter import FilterFile
from mqindex.rocketmq.sidecar.layout import FENCE_HEADER_SIZE
from mqindex.rocketmq.sidecar.names import FILTER, fence_path, sidecar_directory
from mqindex.rocketmq.sidecar.reading import Sidecars
from mqindex.rocketmq.sidecar.weaving import known_of


@dataclass(frozen=True, slots=True)
class SidecarTask:
    """One index file that has a fence, or the filter and the files that it may know, or names that are neither."""

    index: str | None = None
    geometry: tuple[int, int] = (0, 0)
    filter: str | None = None
    fenced: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()


def sidecars_to_check(directory: str, index_files: Sequence[str], geometry: tuple[int, int]) -> list[SidecarTask]:
    """A task for each index file that has a fence, one for the filter, and one for all other names there."""
    beside = sidecar_directory(directory)
    try:
        names = {name for name in kinds.names_in(beside) if not name.startswith(".")}
    except OSError as error:  # what it holds may not be seen: nor may the filter be opened, which says so
        require_answer(error, beside)
        return [SidecarTask(filter=join(beside, FILTER))]
    fenced = tuple(path for path in index_files if base_name(fence_path(path)) in names)
    tasks = [SidecarTask(index=path, geometry=geometry) for path in fenced]
    if FILTER in names:
        tasks.append(SidecarTask(filter=join(beside, FILTER), fenced=fenced))
    alone = sorted(names - {FILTER, *(base_name(fence_path(path)) for path in fenced)})
    return [*tasks, SidecarTask(alone=tuple(join(beside, name) for name in alone))] if alone else tasks


def check_sidecar(task: SidecarTask) -> list[Finding]:
    """All findings of one task; every entry of the file is looked up, and nothing is written."""
    if task.index is None and task.filter is None:
        return [catalogue.SIDECAR_ALONE.finding(path) for path in task.alone]
    try:
        return _check_fence(task.index, task.geometry) if task.index else _check_filter(task.filter or "", task.fenced)
    except MQIndexError as error:
        require_answer(error, error.path)
        path = fence_path(task.index) if task.index and error.path == task.index else error.path
        return [
            catalogue.SIDECAR_UNUSED.finding(
                path, field=error.field, expected=error.expected, got=error.got, what=error.what
            )
        ]
    except OSError as error:
        require_answer(error, task.index or task.filter or "")
        return [catalogue.SIDECAR_UNUSED.finding(error.filename, what=error.strerror)]


def _check_fence(index: str, geometry: tuple[int, int]) -> list[Finding]:
    with map_file(index) as file:
        file.window(0, INDEX_HEADER_SIZE)
        if file.size != layout.index_file_size(*geometry):
            return []  # a finding of the index file itself
        sidecars = Sidecars(file, geometry)
        core = IndexCore(file.map, *geometry, False, file.path)
        try:
            return _checked(file, core, sidecars)
        finally:
            core.close()
            sidecars.close()


def _checked(file: MappedFile, core: IndexCore, sidecars: Sidecars) -> list[Finding]:
    fence = sidecars.fence
    entries = IndexHeader.from_bytes(file.read(0, INDEX_HEADER_SIZE)).index_count - 1
    if entries != sidecars.covered:
        covered = plural(entries, "entry")
        return [catalogue.SIDECAR_BEHIND.finding(fence, field="covered", expected=covered, got=sidecars.covered)]
    file.populate()
    page = sidecars.search.wrong_page(core)
    if page is not None:
        return [catalogue.SIDECAR_WRONG.finding(fence, FENCE_HEADER_SIZE + 4 * page)]
    keys = sidecars.filter
    entry = None if keys is None else keys.rows.missing_entry(sidecars.number, core, sidecars.covered)
    if keys is not None and entry is not None:
        return [catalogue.SIDECAR_WRONG.finding(keys.path, field=f"entry {entry} of {base_name(file.path)}")]
    return []


def _check_filter(path: str, fenced: Sequence[str]) -> list[Finding]:
    """A filter that knows a file which is gone, or has been written to, is not looked at for that file."""
    with map_file(path) as file:
        file.populate()
        found = FilterFile(file)
        found.require_content()
    if any(one in found.numbers for one in known_of(fenced)):
        return []
    return [catalogue.SIDECAR_ALONE.finding(path)]
