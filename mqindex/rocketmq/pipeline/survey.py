"""A look at a store before any work: which files it has, and the settings that no file records.

A survey runs as a stage, in a task, because the driver of a cluster need not see the files. It reads headers, the
last file of the log, and a few entries.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mqindex.errors import FileStateError, GeometryError, MQIndexError
from mqindex.files.mapped_file import MappedFile
from mqindex.report import Finding, Value
from mqindex.rocketmq import layout, store
from mqindex.rocketmq.index import geometry
from mqindex.rocketmq.index.compare import Comparison, first_in_log, next_entry
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.log.log_entries import FileWalk, LogEntries, LogSpan
from mqindex.rocketmq.log.log_files import LogFile, data_end, last_file_with_frames, survey_directories
from mqindex.rocketmq.options import StoreOptions, tags_indexed
from mqindex.rocketmq.pipeline.queue_survey import QueueSurvey, survey_queues

__all__ = ["Survey", "estimated_entries", "survey"]

_RULES = (("4.9.3", False), ("5.4.0", True))
_SAMPLE = 1000
_SAMPLE_BYTES = 4 << 20
_NAME_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Survey:
    """What a store consists of. Picklable; `geometry` and `broker_version` say where they came from."""

    options: StoreOptions
    spans: tuple[LogSpan, ...]
    index_files: tuple[str, ...]
    geometry: Value
    broker_version: Value
    unclean: bool
    findings: tuple[Finding, ...]
    queues: QueueSurvey

    @property
    def tags(self) -> bool:
        """Whether TAGS give entries, by the broker's version."""
        return tags_indexed(self.broker_version.value)

    @property
    def min_phy_offset(self) -> int:
        return self.spans[0].file_start if self.spans else 0

    @property
    def log_bytes(self) -> int:
        return sum(span.stop - span.file_start for span in self.spans)


def survey(options: StoreOptions) -> Survey:
    """Survey one store. A path that is not a store, or a geometry that cannot be told, is an error."""
    store.require_store(options.root)
    files = _log_files(options.commitlog)
    spans = _spans(files)
    index_files = store.index_paths(options.index)
    chosen = _geometry(options, index_files)
    version = _version(options, spans, index_files, chosen.value)
    return Survey(
        options=options,
        spans=spans,
        index_files=tuple(index_files),
        geometry=chosen,
        broker_version=version,
        unclean=store.was_unclean(options.root),
        findings=tuple(_strays(options.index) + _holes(files, spans)),
        queues=survey_queues(options, version.value),
    )


def estimated_entries(found: Survey) -> tuple[int, int]:
    """How many entries and units the log holds, from a few MiB of its first, middle and last file."""
    spans = [found.spans[at] for at in sorted({0, len(found.spans) // 2, len(found.spans) - 1})] if found.spans else []
    read = entries = units = 0
    for span in spans:
        with MappedFile.open(span.path) as log:
            stop = min(span.stop, span.file_start + _SAMPLE_BYTES)
            table = found.queues.rules.table()
            walk = FileWalk(log, replace(span, last=False), span.file_start, stop, tags=found.tags, queues=table)
            for _ in walk:
                units += len(walk.units)
            read += stop - span.file_start
            entries += walk.entries
    return (entries * found.log_bytes // read, units * found.log_bytes // read) if read else (0, 0)


def _log_files(directories: Sequence[str]) -> list[LogFile]:
    """The log's files. Where there are others only, it is no log: taken for an empty one, it would cost every index."""
    files, skipped = survey_directories(directories)
    if not files and any(_is_stranger(os.path.basename(one.path)) for one in skipped):
        raise FileStateError(
            "no file of a commit log",
            path=directories[0],
            expected=f"names of {_NAME_DIGITS} digits",
            hint="give the directory that holds them: commitlog= (--commitlog)",
        )
    return files


def _is_stranger(name: str) -> bool:
    """Neither an empty file of a log nor what a file system puts into every directory."""
    return len(name) != _NAME_DIGITS and name != "lost+found" and not name.startswith(".")


def _spans(files: list[LogFile]) -> tuple[LogSpan, ...]:
    last = last_file_with_frames(files)
    spans = [LogSpan(file.path, file.start, file.start + file.size) for file in files[:last]]
    if 0 <= last < len(files):
        end = files[last].start + min(data_end(files[last].path), files[last].size)
        spans.append(LogSpan(files[last].path, files[last].start, end, last=True))
    return tuple(spans)


def _holes(files: list[LogFile], spans: tuple[LogSpan, ...]) -> list[Finding]:
    return [
        Finding(
            "error",
            "log-file-missing",
            path=one.path,
            expected=f"the next file at phy offset {one.stop}",
            got=following.file_start,
            hint="messages between the two are not in this store",
        )
        for one, following in itertools.pairwise(spans)
        if one.stop != following.file_start
    ]


def _strays(directory: str) -> list[Finding]:
    return [
        Finding("warning", "stray-file", path=os.path.join(directory, name), hint="the broker skips it")
        for name in store.stray_index_names(directory)
    ]


def _geometry(options: StoreOptions, index_files: list[str]) -> Value:
    if options.hash_slot_num is not None and options.index_num is not None:
        pair = options.hash_slot_num, options.index_num
        layout.index_file_size(*pair)
        return Value(pair, dict(options.sources).get("hash_slot_num", "given"))
    sizes = [os.path.getsize(path) for path in index_files]
    if options.hash_slot_num is not None or options.index_num is not None:
        pair = _half(options, max(sizes, default=0))
        return Value(pair, "given in part, the rest " + ("from the length" if sizes else "the broker's default"))
    if not index_files:
        return Value((layout.HASH_SLOT_NUM, layout.INDEX_NUM), "the broker's default, no index file to infer it from")
    return Value(geometry.infer(index_files, thorough=True), "inferred from the index files")


def _half(options: StoreOptions, size: int) -> geometry.Geometry:
    if size:
        pair = geometry.resolve(options.hash_slot_num, options.index_num, size)
    else:
        pair = options.hash_slot_num or layout.HASH_SLOT_NUM, options.index_num or layout.INDEX_NUM
    assert pair is not None
    layout.index_file_size(*pair)
    return pair


def _version(
    options: StoreOptions, spans: tuple[LogSpan, ...], index_files: list[str], pair: geometry.Geometry
) -> Value:
    """The rule that the newest index entries follow, where they tell one rule from the other."""
    given = options.value("broker_version")
    if given is not None:
        return given
    for path in reversed(index_files):
        agreeing = [version for version, tags in _RULES if _agrees(path, spans, pair, tags)]
        if len(agreeing) == 1:
            return Value(agreeing[0], f"inferred from {os.path.basename(path)}")
    return Value(_RULES[0][0], "default: no index file tells 5.4 and later from earlier brokers")


def _agrees(path: str, spans: tuple[LogSpan, ...], pair: geometry.Geometry, tags: bool) -> bool:
    try:
        with (
            IndexFile.open(path, hash_slot_num=pair[0], index_num=pair[1]) as index,
            LogEntries(spans, tags=tags) as log,
        ):
            return first_in_log(index, log) < next_entry(index) and Comparison.of_end(index, log, _SAMPLE).ok
    except (MQIndexError, GeometryError, OSError):
        return False
