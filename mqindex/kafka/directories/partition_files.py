"""The files of a partition, as a broker that starts there would take them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain, zip_longest
from typing import NamedTuple, TypeVar

from mqindex.files import lock
from mqindex.files.paths import join
from mqindex.kafka.kinds import (
    LOCK,
    OTHER_FILES,
    MetadataSnapshot,
    SegmentName,
    files_in,
    metadata_snapshot,
    require_finished,
    segment_name,
)
from mqindex.kafka.layout import MAX_BASE_OFFSET, IndexKind
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_files import SegmentFiles

_INDEXES = tuple(f".{kind}" for kind in IndexKind)
_NUMBERED = re.compile(r"([0-9]+)\.", re.ASCII)
_OTHER_ENDINGS = (".checkpoint", ".checkpoint.deleted", ".checkpoint.part")  # the metadata log's own snapshots

Result = TypeVar("Result")


class PartitionFiles(NamedTuple):
    """What a directory holds.

    Attributes
    ----------
    segments : by base offset. snapshots : of the producers' state, by offset.
    leftovers : what a starting broker deletes: `.deleted`, `.cleaned`, and files that a `.swap` replaces.
    orphans : index files without a log, which it deletes too. skipped : files that are no partition's.
    not_files : what has the name of a segment's file and is no file; it is skipped.
    metadata_snapshots : of a metadata log, which has no snapshots of its producers.
    """

    directory: str
    segments: tuple[SegmentFiles, ...]
    snapshots: dict[int, str]
    leftovers: tuple[str, ...]
    orphans: tuple[str, ...]
    skipped: tuple[str, ...]
    not_files: tuple[str, ...] = ()
    metadata_snapshots: tuple[MetadataSnapshot, ...] = ()


# ---- a partition


def list_segments(directory: str | os.PathLike[str]) -> PartitionFiles:
    """The segments that a broker would serve from `directory`, and what else is there. Nothing is changed.

    Notes
    -----
    Source: Kafka 4.1.0 `LogLoader.load`, whose deletions and renames are only simulated here. A name that makes the
    broker give up (`notes.log`) is skipped, and one that it takes for another (`30.log`): see `mqindex.kafka.kinds`.
    """
    root = os.fspath(directory)
    names, others = files_in(root)
    kept, gone = _swapped(root, names)
    segments: dict[int, dict[str, str]] = {}
    skipped = []
    for name in sorted(kept):
        named = _segment_file(name)
        if named is not None:
            segments.setdefault(named.base_offset, {})[named.ending] = join(root, kept[name])
        elif name not in OTHER_FILES and not name.endswith(_OTHER_ENDINGS):
            skipped.append(join(root, kept[name]))
    bases = [base for base, files in sorted(segments.items()) if "log" in files]
    orphans = [files[kind] for files in segments.values() if "log" not in files for kind in IndexKind if kind in files]
    if orphans and not bases:
        require_finished(root)  # what `mqindex.kafka.rebuild` makes has no logs
    return PartitionFiles(
        root,
        tuple(
            SegmentFiles(
                base,
                segments[base]["log"],
                {kind: path for kind in IndexKind if (path := segments[base].get(kind))},
                following,
            )
            for base, following in zip_longest(bases, bases[1:])
        ),
        {base: files["snapshot"] for base, files in sorted(segments.items()) if "snapshot" in files},
        tuple(join(root, name) for name in sorted(gone)),
        tuple(orphans),
        tuple(skipped),
        tuple(join(root, name) for name in others if _segment_file(name) or name in OTHER_FILES),
        tuple(found for name in sorted(kept) if (found := metadata_snapshot(join(root, name))) is not None),
    )


def while_files_go(directory: str, use: Callable[[PartitionFiles], Result]) -> Result:
    """Call `use` with a partition's files; if one disappears meanwhile, with a new listing: brokers delete segments.

    If a file is missing though the listing stays the same, the caller gets the `FileNotFoundError`.
    """
    before: PartitionFiles | None = None
    while True:
        files = list_segments(directory)
        try:
            return use(files)
        except FileNotFoundError:
            if files == before:
                raise
            before = files


def _swapped(root: str, names: set[str]) -> tuple[dict[str, str], set[str]]:
    """Final names and the names they have now; and names that are deleted (the first three passes of a load)."""
    if not any(name.endswith((".deleted", ".cleaned", ".swap")) for name in names):
        return {name: name for name in names}, set()
    gone = {name for name in names if name.endswith(".deleted") and not name.endswith(".checkpoint.deleted")}
    cleaned = {name for name in names if name.endswith(".cleaned")}
    swaps = {name for name in names if name.endswith(".swap")}
    first_cleaned = min((offset for name in cleaned if (offset := _number(name)) is not None), default=None)
    if first_cleaned is not None:
        gone |= {name for name in swaps if (offset := _number(name)) is not None and offset >= first_cleaned}
    gone |= cleaned
    swaps -= gone
    logs = [
        SegmentFiles(named.base_offset, join(root, name))
        for name in swaps
        if (named := _segment_file(name.removesuffix(".swap"))) is not None and named.ending == "log"
    ]
    low = min((files.base_offset for files in logs), default=0)
    high = max(map(_next_offset, logs), default=0)
    plain = names - gone - swaps
    gone |= {name for name in plain if (offset := _number(name)) is not None and low <= offset < high}
    kept = {name: name for name in plain - gone}
    for name in swaps:
        final = name.removesuffix(".swap")
        if final in kept:
            gone.add(final)
        kept[final] = name
    return kept, gone


def _next_offset(files: SegmentFiles) -> int:
    with LogSegment._of_files(files) as segment:
        return segment.next_offset


def _segment_file(name: str) -> SegmentName | None:
    found = segment_name(name)
    return None if found is None or found.after or found.base_offset > MAX_BASE_OFFSET else found


def _number(name: str) -> int | None:
    match = _NUMBERED.match(name)
    return None if match is None else int(match[1])


# ---- its lock


def hold_lock(log_dir: str | os.PathLike[str]) -> AbstractContextManager[None]:
    """Hold the log dir's `.lock` as a broker would, so that none starts meanwhile; a file that is missing is not made.

    Raises
    ------
    StoreInUseError : a broker runs, or this process holds it already.

    Notes
    -----
    Source: Kafka 4.1.0 `LogManager.lockLogDirs`.
    """
    return lock.hold(join(os.fspath(log_dir), LOCK), create=False)


@contextmanager
def hold_writers(partitions: Iterable[str], log_dir: str) -> Iterator[None]:
    """Hold the log dir's `.lock`, and be the only writer of this package in the indexes of some of its partitions.

    They are only tried: there may be more of them than files may be open.
    """
    with hold_lock(log_dir):
        for path in chain.from_iterable(map(_index_paths, partitions)):
            with suppress(OSError), lock.hold_file(path, "index"):  # who cannot open it does not write it
                pass
        yield


def _index_paths(directory: str) -> list[str]:
    """The index files in a directory; none where it is gone."""
    try:
        names = files_in(directory)[0]
    except FileNotFoundError:
        return []
    return [join(directory, name) for name in names if name.removesuffix(".swap").endswith(_INDEXES)]
