"""Settings that decide what would be written, and that were not given and are in no file.

`repair` refuses to guess them, `verify` reports them, `rebuild`, which writes elsewhere, takes the broker's defaults
and warns. A setting is required only where a result depends on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mqindex._settings import Setting
from mqindex.engines import Engine
from mqindex.errors import FileStateError, GeometryError
from mqindex.files.paths import join
from mqindex.report import Finding, Kind
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.diagnosis import Diagnosis
from mqindex.rocketmq.checks.queues.queue_diagnosis import QueueDiagnosis
from mqindex.rocketmq.log.frame_windows import find_in
from mqindex.rocketmq.log.log_entries import ALL_TAGS, NO_TAGS, FileWalk, drained
from mqindex.rocketmq.pipeline.splits import SPLIT_SIZE, LogRange, cut
from mqindex.rocketmq.pipeline.stages import Split
from mqindex.rocketmq.pipeline.survey import Survey
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import SCHEDULE_TOPIC
from mqindex.rocketmq.queue.unit_places import joined
from mqindex.rocketmq.settings import MAX_HASH_SLOT_NUM, MAX_INDEX_NUM, MESSAGE_DELAY_LEVEL

_STEP = 4 << 20  # bytes of log; most logs show in the first few messages whether there are tags
_DEFAULT = "the broker's default"


@dataclass(frozen=True, slots=True)
class UnknownSetting:
    """A setting that is not known: what, where it decides, which value was taken, and how to give it."""

    kind: Kind
    what: str
    path: str
    taken: str
    option: str

    def finding(self) -> Finding:
        """As `verify` and `rebuild` report it."""
        return self.kind.finding(self.path, expected=self.what, got=self.taken, option=self.option)


def unknown_settings(found: Survey, *, index: bool, tags: bool, queues: Collection[QueueName]) -> list[UnknownSetting]:
    """The unknown settings of what is to be written: index files, entries that TAGS may give, units of these queues."""
    options = found.options
    unknown = []
    if index and not found.geometry_known:
        option = f"--hash-slot-num {MAX_HASH_SLOT_NUM.default} --index-num {MAX_INDEX_NUM.default} if the "
        option += "broker runs with its defaults, or "
        what = MAX_INDEX_NUM.decides
        unknown += [
            UnknownSetting(catalogue.GEOMETRY_UNKNOWN, what, options.index, _DEFAULT, f"{option}--broker-conf FILE")
        ]
    if tags and not found.version.known:
        what = "the broker's version, since TAGS are indexed from 5.4 on"
        option = "--broker-version V, the one that runs on this store"
        unknown += [
            UnknownSetting(catalogue.BROKER_VERSION_UNKNOWN, what, options.index, "the rules before 5.4", option)
        ]
    return unknown + _of_queues(found, queues)


def _of_queues(found: Survey, queues: Collection[QueueName]) -> list[UnknownSetting]:
    options, known = found.options, found.queues
    batches = any(topic in known.batch_topics for topic, _ in queues)
    units = [name for name in queues if name[0] not in known.batch_topics]
    unknown: list[UnknownSetting] = []

    def add(kind: Kind, what: str, path: str, setting: Setting[Any]) -> None:
        said = f"with {setting.name}={setting.default} in it if the broker runs with its defaults"
        option = f"--broker-conf FILE, {said}; FILE is the broker's own, whole"
        unknown.append(UnknownSetting(kind, what, path, _DEFAULT, option))

    for one in known.lengths:
        if not one.known and (batches if one.batch else units):
            add(catalogue.QUEUE_FILE_SIZE_UNKNOWN, one.setting.decides, one.directory, one.setting)
    levels = {queue_id + 1 for topic, queue_id in units if topic == SCHEDULE_TOPIC}
    if known.known_levels is not None and levels - known.known_levels:
        what = f"the delay of delay level {_listed(levels - known.known_levels)}"
        path = join(options.consume_queue, SCHEDULE_TOPIC)
        add(catalogue.DELAY_LEVEL_UNKNOWN, what, path, MESSAGE_DELAY_LEVEL)
    return unknown


def _listed(numbers: Iterable[int]) -> str:
    ranges = joined([(number, number + 1) for number in numbers])
    return ", ".join(str(start) if stop - start == 1 else f"{start} to {stop - 1}" for start, stop in ranges)


def wanted_settings(engine: Engine, index: Diagnosis | None, queues: QueueDiagnosis | None) -> list[UnknownSetting]:
    """The settings that a repair of these findings needs, and that were not given."""
    found = index.survey if index is not None else queues.survey if queues is not None else None
    assert found is not None
    gaps = [filled for filled in index.gaps if filled.extracted.messages] if index is not None else []
    writes = any(filled.entries for filled in gaps)
    tags = not found.version.known and tags_matter(engine, found, [filled.gap.stretch for filled in gaps])
    written = (*queues.missing, *queues.bad, *queues.bad_batches) if queues is not None else ()
    return unknown_settings(found, index=writes or tags, tags=tags, queues=written)


def refuse(unknown: Sequence[UnknownSetting]) -> None:
    """Refuse to write by a guess; the error names all that has to be given."""
    if unknown:
        kind = GeometryError if any(one.kind is catalogue.GEOMETRY_UNKNOWN for one in unknown) else FileStateError
        raise kind(
            "nothing shows " + ", nor ".join(one.what for one in unknown),
            path=unknown[0].path,
            hint="give " + "; and ".join(one.option for one in unknown),
        )


def find_unknown_tags(engine: Engine, index: Diagnosis) -> list[Finding]:
    """Where the rule for TAGS changes among entries that no file has: from where on is taken, and not known."""
    found, said = index.survey, []
    for gap in [one.gap for one in index.gaps if one.entries]:
        stretch = gap.stretch
        changes = any(stretch.start <= at <= stretch.stop for at in found.tags.changes if at > found.min_phy_offset)
        if changes and tags_matter(engine, found, [stretch]):
            kind = catalogue.TAGS_UNKNOWN_AT_END if gap.before is None else catalogue.TAGS_UNKNOWN
            got = f"none from phy offset {stretch.start} to {stretch.stop - 1}"
            said.append(kind.finding(found.options.index, expected="entries that show the rule for TAGS", got=got))
    return said


def tags_matter(engine: Engine, found: Survey, stretches: Iterable[LogRange]) -> bool:
    """Whether a message of these stretches gives one entry more from 5.4 on."""
    splits = [
        split for stretch in stretches for split in cut(found.spans, stretch, SPLIT_SIZE, tags=ALL_TAGS, out=None)
    ]
    return any(
        engine.map(
            _tags_matter, splits, name="look for tags", weights=[one.stop - one.start for one in splits], unit="byte"
        )
    )


def _tags_matter(split: Split) -> bool:
    try:
        log = split.span.open()
    except FileNotFoundError:  # a broker deleted it meanwhile
        return False
    with log:
        start = split.span.file_start
        at = find_in(log, start, split.start, split.stop) if split.resync else split.start
        while 0 <= at < split.stop:
            stop = min(at + _STEP, split.stop)
            walks = [drained(FileWalk(log, split.span, at, stop, tags=tags)) for tags in (NO_TAGS, ALL_TAGS)]
            if walks[0].entries != walks[1].entries:
                return True
            at = walks[0].end if walks[0].fault is None else -1
    return False
