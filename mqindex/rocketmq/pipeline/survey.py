"""A look at a store before any work: which files it has, and the settings that no file records.

A survey runs as a stage, in a task, because the driver of a cluster need not see the files. It reads headers, the
last file of the log, and a few entries.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeVar

from mqindex._rules import Broker
from mqindex.errors import FileStateError, FormatError, GeometryError
from mqindex.files import disk, lock
from mqindex.files.paths import base_name, join, one_look
from mqindex.report import Finding, Report, Value
from mqindex.rocketmq import catalogue, kinds, layout
from mqindex.rocketmq.brokers import TAGS_INDEXED
from mqindex.rocketmq.directories import store
from mqindex.rocketmq.index import geometry
from mqindex.rocketmq.index.geometry_fit import Geometry
from mqindex.rocketmq.log.dledger import plain_log_files, refuse_dledger, refuse_entries_after
from mqindex.rocketmq.log.expiry import read_again, was_deleted
from mqindex.rocketmq.log.frame_windows import MARGIN
from mqindex.rocketmq.log.log_entries import FileWalk, LogSpan, Tags
from mqindex.rocketmq.log.log_files import EMPTY, LogFile, Skipped, begins_with_frame, data_end, last_file_with_frames
from mqindex.rocketmq.metadata.topic_configs import TopicConfig, read_topic_configs
from mqindex.rocketmq.options import StoreOptions, store_options
from mqindex.rocketmq.pipeline.log_gone import find_log_gone, find_perhaps_gone, first_phy_offsets
from mqindex.rocketmq.pipeline.surveys.queue_survey import QueueSurvey, survey_queues
from mqindex.rocketmq.pipeline.surveys.version_survey import (
    InferredVersion,
    log_traces,
    refuse_unread,
    survey_version,
    version_again,
)
from mqindex.rocketmq.settings import MAX_HASH_SLOT_NUM, MAX_INDEX_NUM

_INFERRED = "inferred"
_SAMPLE_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Survey:
    """What a store consists of. Picklable.

    `geometry_known`: `geometry` is not a guess. `log_gone`: why the log cannot be complete. `held`: the repair that
    made the survey holds the store's lock, so no broker runs.
    `index_directories`: directories where index files belong. `unread`: errors of files that could not be read, so
    what they show of the settings is not known. `emptied`: files of the log that have no byte, before its last.
    """

    options: StoreOptions
    spans: tuple[LogSpan, ...]
    index_files: tuple[str, ...]
    geometry: Value
    geometry_known: bool
    version: InferredVersion
    unclean: bool
    findings: tuple[Finding, ...]
    queues: QueueSurvey
    index_directories: tuple[str, ...] = ()
    log_gone: Finding | None = None
    held: bool = False
    unread: tuple[OSError, ...] = ()
    emptied: tuple[str, ...] = ()

    @property
    def tags(self) -> Tags:
        """Where TAGS give entries, by the version of the broker that was there."""
        return self.version.tags

    @property
    def min_phy_offset(self) -> int:
        return self.spans[0].file_start if self.spans else 0

    @property
    def log_bytes(self) -> int:
        return sum(span.stop - span.file_start for span in self.spans)

    @property
    def next_broker(self) -> Broker:
        """The broker of the next start: who wrote the files before 5.4 may have been replaced since."""
        inferred = self.options.broker_version is None and self.version.broker.does(TAGS_INDEXED)
        return self.version.broker if inferred else self.options.broker

    def is_in_use(self) -> bool:
        """Whether another process holds the store's lock now: a broker, or a writer of this package."""
        return lock.state(join(self.options.root, "lock")) == "held" and not self.held


def survey(options: StoreOptions) -> Survey:
    """Survey one store. A path that is not a store, a geometry that cannot be found, an unread file: each is an error.

    If a broker deletes files meanwhile, the survey begins again without them.
    """
    found = read_again(lambda: _survey(options))
    require_read(found)
    return found


def _survey(options: StoreOptions) -> Survey:
    with one_look(options.root, *options.commitlog):
        return _surveyed(options)


def _surveyed(options: StoreOptions) -> Survey:
    store.require_store(options.root)
    kinds.require_finished(options.root)
    refuse_dledger(options)
    files, skipped = _log_files(options)
    spans = _spans(files)
    gone = find_log_gone(options, files, spans)
    if gone is not None and not spans:
        refuse_entries_after(options, first_phy_offsets(options))
    index_files, directories = kinds.index_paths(options.index), kinds.index_directories(options.index)
    with options.blaming(GeometryError, MAX_HASH_SLOT_NUM, MAX_INDEX_NUM):
        chosen, known = _geometry(options, index_files)
    traces, topics = log_traces(spans), _topics(options)
    unread: list[OSError] = []
    version = survey_version(options, spans, index_files, chosen.value, traces, topics or {}, unread)
    return Survey(
        options=options,
        spans=spans,
        index_files=tuple(index_files),
        geometry=chosen,
        geometry_known=known,
        version=version,
        unclean=store.was_unclean(options.root),
        findings=tuple(
            _no_directories(options)
            + [catalogue.LINKED_DIRECTORY.finding(path) for path in store.linked_directories(options.root)]
            + _strays(options.index)
            + _directories(directories)
            + _holes(files, spans)
            + find_perhaps_gone(options, spans)
        ),
        queues=survey_queues(options, version.broker, traces.batch_topics, topics, unread),
        index_directories=tuple(directories),
        log_gone=gone,
        unread=tuple(unread),
        emptied=_emptied(files, skipped),
    )


def survey_in_place(options: StoreOptions) -> Survey:
    """Survey a store whose own files are checked; a geometry that they refute is an error.

    A file that could not be read is none here: what writes calls `require_read`.
    """

    def look() -> Survey:
        found = _survey(options)
        if not found.geometry.source.startswith(_INFERRED):
            with options.blaming(GeometryError, MAX_HASH_SLOT_NUM, MAX_INDEX_NUM):
                geometry.require(found.index_files, found.geometry.value, found.geometry.source)
        return found

    return read_again(look)


def survey_again(found: Survey, doubtful: Set[int] | None) -> Survey:
    """The same, with the rules for TAGS that index files of these numbers show: they differ from the log by the old.
    None: those whose ends do.
    """
    try:
        version = version_again(found.version, found.spans, found.index_files, found.geometry.value, doubtful)
    except OSError as error:
        if not was_deleted(error):
            raise
        return found  # by a broker; what is left is found out later
    return replace(found, version=version)


def require_read(found: Survey) -> None:
    """Raise the error of a file that could not be read, before anything is written by a setting that it may refute."""
    refuse_unread(found.unread)


def require_log(found: Survey) -> None:
    """Raise if the log is missing: it must never count as one without messages."""
    refuse_log_gone(found.log_gone)


def refuse_log_gone(gone: Finding | None) -> None:
    """The same of what `log_gone_from` says."""
    if gone is not None:
        raise FileStateError(
            "the commit log is missing", path=gone.path, expected=gone.expected, got=gone.got, hint=gone.hint
        )


def log_gone_from(root: str, directories: Sequence[str]) -> Finding | None:
    """Why a store's log in these directories cannot be complete, for who reads it without a survey."""
    options = store_options(root, commitlog=directories)
    files, _ = _log_files(options)
    if len(options.commitlog) == 1 and files and begins_with_frame(files[0]):
        return None  # and nothing was read to know it
    return find_log_gone(options, files, _spans(files))


def require_directories(found: Survey) -> None:
    """Raise if something else is in the place of the index or of the queues: it is not replaced."""
    for one in found.findings:
        if one.kind == catalogue.NOT_A_DIRECTORY.name:
            raise FileStateError("not a directory", path=one.path, expected=one.expected, got=one.got, hint=one.hint)


def require_lengths(found: Survey) -> None:
    """Raise where a broker.conf leaves the length of queues' files to the broker's default, and they have another.

    They are of a broker with another configuration: all of them would be written anew, in a length that it refuses.
    """
    options = found.options
    if options.broker_conf is None:
        return
    for one in found.queues.lengths:
        if options.given(one.setting) is None and one.usual not in (None, one.size.value):
            raise FileStateError(
                "the queues' files have another length than the broker's default", path=one.directory,
                expected=f"{one.size.value} bytes, as {options.broker_conf} sets no other", got=one.usual,
                hint="give the broker's own, whole configuration (--broker-conf), "
                f"with {one.setting.name}={one.usual} if that is right",
            )  # fmt: skip


AnyReport = TypeVar("AnyReport", bound=Report)


def start_report(report: AnyReport, found: Survey) -> AnyReport:
    """Fill in what every report says from the survey."""
    report.settings = {
        "geometry": found.geometry,
        "broker_version": found.version.reported,
        **dict(found.queues.settings),
        **dict(found.options.unlike),
    }
    report.findings += found.findings
    report.bytes = found.log_bytes
    return report


def index_switched_off(options: StoreOptions) -> Finding:
    """No index file is expected or written."""
    return catalogue.INDEX_SWITCHED_OFF.finding(options.index, field=options.index_switch, got="false")


def estimated_entries(found: Survey) -> tuple[int, int]:
    """How many entries and units the log holds, from the first 256 KiB of its first, middle and last file."""
    spans = [found.spans[at] for at in sorted({0, len(found.spans) // 2, len(found.spans) - 1})] if found.spans else []
    read = entries = units = 0
    for span in spans:
        with span.open() as log:
            log.window(0, _SAMPLE_BYTES + MARGIN)  # by one request
            stop = min(span.stop, span.file_start + _SAMPLE_BYTES)
            table = found.queues.rules.table()
            walk = FileWalk(log, replace(span, last=False), span.file_start, stop, tags=found.tags, queues=table)
            for _ in walk:
                units += len(walk.units)
            read += walk.end - span.file_start  # a large message ends after the stop
            entries += walk.entries
    return (entries * found.log_bytes // read, units * found.log_bytes // read) if read else (0, 0)


def _log_files(options: StoreOptions) -> tuple[list[LogFile], list[Skipped]]:
    """The log's files, and what was skipped. With other files only it is no log: as an empty one, it would cost the
    store its index."""
    directories = options.commitlog
    try:
        files, skipped = plain_log_files(directories)
    except (FileNotFoundError, NotADirectoryError):
        if find_log_gone(options, (), ()) is None:
            store.require_parts(options.root)
            raise
        return [], []
    if not files and any(map(kinds.strangers, directories)):
        raise FileStateError(
            "no file of a commit log",
            path=directories[0],
            expected=f"names of {kinds.OFFSET_DIGITS} digits",
            hint="give the directory that holds them: commitlog= (--commitlog)",
        )
    return files, skipped


def _emptied(files: list[LogFile], skipped: list[Skipped]) -> tuple[str, ...]:
    """A broker makes the newest file empty, and cuts none: what those before it held is lost."""
    last = files[-1].start if files else 0
    return tuple(one.path for one in skipped if one.reason == EMPTY and int(base_name(one.path)) < last)


def _spans(files: list[LogFile]) -> tuple[LogSpan, ...]:
    last = last_file_with_frames(files)
    if last < 0:
        return ()
    spans = [LogSpan(file.path, file.start, file.start + file.size) for file in files[:last]]
    end = files[last].start + min(data_end(files[last].path), files[last].size)
    spans.append(LogSpan(files[last].path, files[last].start, end, last=True))
    return tuple(spans)


def _holes(files: list[LogFile], spans: tuple[LogSpan, ...]) -> list[Finding]:
    return [
        catalogue.LOG_FILE_MISSING.finding(
            one.path, expected=f"the next file at phy offset {one.stop}", got=following.file_start
        )
        for one, following in itertools.pairwise(spans)
        if one.stop != following.file_start
    ]


def _no_directories(options: StoreOptions) -> list[Finding]:
    return [
        catalogue.NOT_A_DIRECTORY.finding(path, expected="a directory", got=disk.kind_of(path))
        for path in (options.index, options.consume_queue, options.batch_consume_queue)
        if disk.exists(path) and not disk.is_directory(path)
    ]


def _topics(options: StoreOptions) -> dict[str, TopicConfig] | None:
    """Those of the configuration; without the file a broker has none. None: verify reports why it cannot be read."""
    try:
        return read_topic_configs(join(options.root, "config"))
    except FormatError:
        return None


def _strays(directory: str) -> list[Finding]:
    names = kinds.stray_index_names(directory)
    return [catalogue.STRAY_FILE.finding(join(directory, name)) for name in names]


def _directories(paths: list[str]) -> list[Finding]:
    kind = catalogue.INDEX_IS_DIRECTORY
    return [kind.finding(path, expected="a file", got="a directory") for path in paths]


def _geometry(options: StoreOptions, index_files: list[str]) -> tuple[Value, bool]:
    """The geometry, and whether it is known."""
    given = options.reported(MAX_HASH_SLOT_NUM)
    if given is not None and options.hash_slot_num is not None and options.index_num is not None:
        pair = options.hash_slot_num, options.index_num
        layout.index_file_size(*pair)
        return Value(pair, given.source), True
    sizes = [geometry.file_size(path) for path in index_files]
    if options.hash_slot_num is not None or options.index_num is not None:
        pair, fits = _half(options, max(sizes, default=0))
        rest = "from the length" if fits else "the broker's default"
        return Value(pair, f"given in part, the rest {rest}"), fits
    if max(sizes, default=0) >= layout.index_file_size(1, 1):
        return Value(geometry.infer(index_files, thorough=True), f"{_INFERRED} from the index files"), True
    return Value((layout.HASH_SLOT_NUM, layout.INDEX_NUM), "the broker's default, no index file shows it"), False


def _half(options: StoreOptions, size: int) -> tuple[Geometry, bool]:
    """The half that is given, and the other from the length of the files, if one fits it; else the default one."""
    slots, entries = options.hash_slot_num, options.index_num
    pair = geometry.resolve(slots, entries, size)
    if pair is not None and layout.index_file_size(*pair) == size:
        return pair, True
    pair = slots or layout.HASH_SLOT_NUM, entries or layout.INDEX_NUM
    layout.index_file_size(*pair)
    return pair, False
