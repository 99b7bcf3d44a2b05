"""The segments that a scan reads: of a log dir, of a partition, or one; listed once, with their lengths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

from mqindex._native.numbers import whole_number
from mqindex.columns.limits import several
from mqindex.files import disk
from mqindex.files.paths import absolute, as_it_is, one_look, parent_of, status_of
from mqindex.kafka.directories.log_dir import named_partition
from mqindex.kafka.directories.partition_files import while_files_go
from mqindex.kafka.directories.survey import partitions_at
from mqindex.kafka.kinds import PartitionDirectory
from mqindex.kafka.layout import base_offset_of, require_file
from mqindex.kafka.log.segment_files import SegmentFiles


class ChosenSegment(NamedTuple):
    """A segment, and what its log was when the scan began."""

    files: SegmentFiles
    status: os.stat_result


class ChosenPartition(NamedTuple):
    """A partition as it is when a scan begins.

    Attributes
    ----------
    place : its directory. segments : by base offset. is_whole : False: one log of it was named
    """

    place: PartitionDirectory
    segments: tuple[ChosenSegment, ...]
    is_whole: bool = True


class FirstSeen:
    """What several scans answer of while brokers append: each partition is as the first of them found it. For threads.

    Partitions that were not there yet at `begin` are left out.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._there: set[str] | None = None
        self._partitions: dict[str, ChosenPartition] = {}
        self._stable: dict[str, int] = {}

    def begin(self, path: str) -> None:
        """List the partitions of a path, before a scan does; only the first call does so."""
        with self._lock:
            if self._there is None:
                where = absolute(path)
                homes = [named_partition(parent_of(where))] if disk.is_file(where) else partitions_at(where)
                self._there = {home.path for home in homes}

    def of(self, found: Sequence[ChosenPartition]) -> list[ChosenPartition]:
        """The same partitions, as they were."""
        with self._lock:
            there = [one for one in found if one.place.path in (self._there or ())]
            return [self._partitions.setdefault(one.place.path, one) for one in there]

    def stable(self, directory: str, offset: int) -> int:
        """Where committed records of a partition end; `offset`: now."""
        with self._lock:
            return self._stable.setdefault(directory, offset)


def chosen_partitions(path: str, partitions: Any) -> list[ChosenPartition]:
    """Those of a path that are asked for, by topic and number; `partitions` None: all that are in use.

    Raises
    ------
    FileNotFoundError, BadMagicError : it is none of these
    ValueError : a partition that is not there
    """
    where = absolute(path)
    with one_look(where):
        if disk.is_file(where):
            log = require_file(where, "log")
            home = named_partition(parent_of(where))
            chosen_homes([home], partitions, where)
            return [ChosenPartition(home, (_as_it_is(SegmentFiles(base_offset_of(log), log)),), is_whole=False)]
        homes = partitions_at(where)
        used = [home for home in homes if home.state is None or home.path == where]
        return [found for home in chosen_homes(used, partitions, where) if (found := _listed(home, where)) is not None]


def _listed(home: PartitionDirectory, root: str) -> ChosenPartition | None:
    """None: a broker deleted it meanwhile."""
    try:
        return while_files_go(
            home.path, lambda files: ChosenPartition(home, tuple(_as_it_is(segment) for segment in files.segments))
        )
    except FileNotFoundError:
        if home.path == root:
            raise
        return None


def _as_it_is(files: SegmentFiles) -> ChosenSegment:
    log, _ = as_it_is(files.log)
    return ChosenSegment(replace(files, log=log), status_of(log))


def chosen_homes(homes: Sequence[PartitionDirectory], asked: Any, path: str) -> Iterable[PartitionDirectory]:
    """Those that are asked for, each once, in the order of `homes`; `path`: where they are, for an error."""
    if asked is None:
        return homes
    expected = 'names like "orders-0" or "orders", or pairs like ("orders", 0)'
    wanted = [asked] if isinstance(asked, str) else several("partitions", asked, expected)
    numbers = {number for one in wanted for number in _numbers_of(homes, _name_of(one, expected), path)}
    return [homes[number] for number in sorted(numbers)]


def _name_of(asked: Any, expected: str) -> str:
    if isinstance(asked, str):
        return asked
    if isinstance(asked, tuple) and len(asked) == 2 and isinstance(asked[0], str):
        return f"{asked[0]}-{whole_number('partitions', asked[1])}"
    raise TypeError(f"partitions: expected {expected}, got {asked!r:.80} among them")


def _numbers_of(homes: Sequence[PartitionDirectory], name: str, path: str) -> Iterator[int]:
    """Of a partition's name, or of all of a topic."""
    names = [_full_name(home) for home in homes]
    found = [number for number, known in enumerate(names) if known == name]
    found = found or [number for number, home in enumerate(homes) if home.topic == name]
    if not found:
        from difflib import get_close_matches  # only needed for a name that is not there

        near = get_close_matches(name, [*names, *(home.topic for home in homes)], 1, 0)
        hint = f"; the nearest is {near[0]!r}" if near else "; there is none"
        raise ValueError(f"partitions: expected partitions or topics of {path}, got {name!r}{hint}")
    return iter(found)


def _full_name(home: PartitionDirectory) -> str:
    return home.topic if home.partition < 0 else f"{home.topic}-{home.partition}"
