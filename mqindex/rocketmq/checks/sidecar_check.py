"""Fences and key filters beside the index: does each fit its index file, and find every entry of it?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from mqindex._native.index_file import IndexCore
from mqindex._words import plural
from mqindex.errors import MQIndexError
from mqindex.files.mapped_file import MappedFile
from mqindex.report import Finding
from mqindex.rocketmq import catalogue, layout, store
from mqindex.rocketmq.layout import INDEX_HEADER_SIZE, IndexHeader
from mqindex.rocketmq.sidecar.names import sidecar_directory, sidecar_paths
from mqindex.rocketmq.sidecar.reading import Sidecars

__all__ = ["SidecarTask", "check_sidecar", "sidecars_to_check"]


@dataclass(frozen=True, slots=True)
class SidecarTask:
    """One index file that has a sidecar, or with `index` None: names that are not those of any file's sidecars."""

    index: str | None
    geometry: tuple[int, int]
    alone: tuple[str, ...] = ()


def sidecars_to_check(directory: str, index_files: Sequence[str], geometry: tuple[int, int]) -> list[SidecarTask]:
    """A task for each index file that has a fence or a filter, and one for all other names there."""
    beside = sidecar_directory(directory)
    names = {name for name in store.names_in(beside) if not name.startswith(".")}
    tasks = []
    for index in index_files:
        own = {os.path.basename(path) for path in sidecar_paths(index)}
        if own & names:
            tasks.append(SidecarTask(index, geometry))
            names -= own
    alone = tuple(os.path.join(beside, name) for name in sorted(names))
    return [*tasks, SidecarTask(None, geometry, alone)] if alone else tasks


def check_sidecar(task: SidecarTask) -> list[Finding]:
    """All findings of one task; every entry of the file is looked up, and nothing is written."""
    if task.index is None:
        return [catalogue.SIDECAR_ALONE.finding(path) for path in task.alone]
    try:
        with MappedFile.open(task.index) as file:
            if file.size != layout.index_file_size(*task.geometry):
                return []  # a finding of the index file itself
            return _checked(file, task)
    except MQIndexError as error:
        path = sidecar_paths(task.index)[0] if error.path == task.index else error.path
        return [
            catalogue.SIDECAR_UNUSED.finding(
                path, field=error.field, expected=error.expected, got=error.got, what=error.what
            )
        ]
    except OSError as error:
        return [catalogue.SIDECAR_UNUSED.finding(error.filename, what=error.strerror)]


def _checked(file: MappedFile, task: SidecarTask) -> list[Finding]:
    sidecars = Sidecars(file, task.geometry)
    core = IndexCore(file.map, *task.geometry, False, file.path)
    fence, keys = sidecar_paths(file.path)
    try:
        entries = IndexHeader.from_bytes(file.map[:INDEX_HEADER_SIZE]).index_count - 1
        if entries != sidecars.covered:
            covered = plural(entries, "entry")
            return [catalogue.SIDECAR_BEHIND.finding(fence, field="covered", expected=covered, got=sidecars.covered)]
        sidecars.require_content()
        file.populate()
        page, entry = sidecars.search.wrong_page(core), sidecars.search.missing_entry(core)
        if page is not None:
            return [catalogue.SIDECAR_WRONG.finding(fence, layout.SIDECAR_HEADER_SIZE + 4 * page)]
        if entry is not None:
            return [catalogue.SIDECAR_WRONG.finding(keys, field=f"entry {entry}")]
        return []
    finally:
        core.close()
        sidecars.close()
