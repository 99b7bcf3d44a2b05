"""Rebuild: from a commit log alone, the index and consume queues that an uninterrupted broker would have written."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

from mqindex import several
from mqindex._native.numbers import whole_number
from mqindex._options import with_options_of
from mqindex.engines import Engine
from mqindex.engines.engine import chosen_engine
from mqindex.engines.publishing import publish_all
from mqindex.engines.tasks import scratch_for
from mqindex.files import disk
from mqindex.files.paths import absolute, join, one_look, parent_of
from mqindex.files.places.place import given_path
from mqindex.files.results import output_place, staging
from mqindex.files.results.in_place import in_place
from mqindex.files.results.publication import Publication
from mqindex.report import Finding, RebuildReport
from mqindex.rocketmq import catalogue, layout
from mqindex.rocketmq.checks.wanted_settings import UnknownSetting, tags_matter, unknown_settings
from mqindex.rocketmq.directories import store as stores
from mqindex.rocketmq.log.expiry import read_again
from mqindex.rocketmq.log.log_entries import UNIT
from mqindex.rocketmq.options import StoreArguments, StoreOptions, store_options
from mqindex.rocketmq.pipeline.builds import build_index_files, build_queue_files, index_moves, require_room
from mqindex.rocketmq.pipeline.in_turn import build_in_turn
from mqindex.rocketmq.pipeline.log_end import find_after_end
from mqindex.rocketmq.pipeline.log_gone import find_ends_early
from mqindex.rocketmq.pipeline.parts import PARTS, check_parts
from mqindex.rocketmq.pipeline.queue_build import FILE_BLOCK
from mqindex.rocketmq.pipeline.queue_splits import assign_queues, least_space, left_out_findings, oddity_findings
from mqindex.rocketmq.pipeline.queue_stages import BuiltQueue, BuiltQueues, QueueWork
from mqindex.rocketmq.pipeline.splits import SPLIT_SIZE, Extracted, LogRange, assign, cut, extract
from mqindex.rocketmq.pipeline.stages import Built, Part
from mqindex.rocketmq.pipeline.survey import (
    Survey,
    estimated_entries,
    index_switched_off,
    require_log,
    start_report,
    survey,
    survey_again,
)
from mqindex.rocketmq.pipeline.surveys.queue_survey import queues_elsewhere
from mqindex.rocketmq.pipeline.unit_runs import names_of
from mqindex.rocketmq.queue.consume_queue_ext import EXT_UNIT
from mqindex.rocketmq.settings import LOG_FILE_SIZE
from mqindex.rocketmq.tally.split_zones import keep_zones
from mqindex.zones.cache import Cache, ZoneCache


@dataclass(frozen=True, slots=True)
class _Order:
    """What is rebuilt: the input of the first task."""

    options: StoreOptions
    out: str
    overwrite: bool
    parts: frozenset[str]
    split_size: int
    cache: ZoneCache

    @property
    def path(self) -> str:
        return self.options.root

    @property
    def seen(self) -> list[str]:
        return [*stores.directories_of(self.options.root, self.options.commitlog), parent_of(self.out)]


@with_options_of(store_options)
def rebuild(
    store: several.StrPath | Iterable[several.StrPath],
    out: str | os.PathLike[str],
    *,
    parts: Iterable[str] | None = None,
    split_size: int = SPLIT_SIZE,
    overwrite: bool = False,
    cache: Cache = None,
    engine: Engine | None = None,
    **given: Unpack[StoreArguments],
) -> RebuildReport:
    """Write the index and the consume queues of a store's commit log to `out`, byte for byte as the broker would have.

    `out` has the structure of a store: `index/<17 digits>`, `consumequeue/<topic>/<queueId>/<20 digits>`, where
    extension files are on also `consumequeue_ext/...`, and `batchconsumequeue/...` for topics with batch queues.

    Parameters
    ----------
    store : path of a store's root; it is only read. Or several: one job and one report of all, in which what is wrong
        with one is a finding. The result of each is at `<out>/<name>`, as if it had been rebuilt to there alone; its
        name is that of its directory, or where they all end alike, as `broker-a/store`, that above it: `broker-a`.
    out : path; must not exist or be empty, or `overwrite=True` moves it to `<out>.backup-<UTC>`. Of several stores this
        holds for each `<out>/<name>`.
    parts : names of what to build, of "index" and "consumequeue", which has the batch queues too; None: both.
    config, commitlog, hash_slot_num, index_num, broker_version, storage_options : store options
        (`mqindex.rocketmq.options.StoreArguments`); what is not given is inferred from
        the files that survive, else the broker's defaults hold. Where the broker was replaced by one of the other rule
        for TAGS, the ends of the index files show it; a time that began and ended within one file is not seen.
    split_size : bytes of log for one task, 4096 or more; the result does not depend on it.
    cache : where zone maps of the log's files are kept for later scans, as of `scan`; False: nowhere. They come with
        the consume queues: without these none is made.
    engine : where the stages run; None: `LocalEngine()`.

    Returns
    -------
    RebuildReport
        `ok` is False when a stretch of the log was damaged: the result then holds all that could be read.
        `backup`: where the old `out` is now. Of several stores `stores` has the report of each.

    Raises
    ------
    OutputExistsError : `out` holds something, and `overwrite` is False; or is a link, mount point or current directory
    StoreInUseError : a broker holds an `out` that would be moved
    FileNotFoundError : the store or a directory of its log does not exist
    GeometryError : files and options disagree
    ValueError : `out` is where the store has files of its own; an unknown part; an impossible split size
    OSError : the disk lacks the space, which is checked beforehand; nothing was published
    FileStateError : the commit log is missing; or a worker of a cluster does not see the files as the others do
    RebuildError : a worker died; nothing was published, or, if it died while `out` got its place, what the message says

    Notes
    -----
    `out` appears by one rename, complete and on the disk, or not at all; in an object store its list of files,
    `<out>/mqindex.json`, comes last.
    `hash_slot_count` is what brokers from 4.7.1 on write, the used slots; earlier ones count every entry there.
    A unit is at its message's own queue offset; holes that damage of the log left are blank units, and a finding.
    Source: RocketMQ 4.9.3 `IndexService.buildIndex`, `IndexFile.putKey`, `ConsumeQueue.putMessagePositionInfo`,
    `ConsumeQueueExt.put`, `CommitLog.checkMessageAndReturnSize`; 5.5.0 for the entries of TAGS.

    Examples
    --------
    >>> report = rebuild("store", "rebuilt")
    >>> report.ok, report.messages, report.entries, report.units
    (True, 610, 1466, 610)
    """
    wanted = check_parts(parts)
    split_size = whole_number("split_size", split_size)
    if split_size < 4096:
        raise ValueError(f"split_size: expected 4096 or more, got {split_size}")
    engine = chosen_engine(engine)
    place = absolute(given_path("out", out, given.get("storage_options")))
    paths, alone = several.listed(store)
    options = [store_options(path, **given) for path in paths]
    kept = ZoneCache.of(cache, lambda: [home for one in options for home in stores.homes_of(one.root, one.commitlog)])
    if not alone:
        orders = [
            _Order(each, join(place, name), overwrite, wanted, split_size, kept)
            for each, name in zip(options, _names(options), strict=True)
        ]
        return several.rebuild_each(engine, orders, place, _HOW)
    return several.rebuild_one(engine, _Order(options[0], place, overwrite, wanted, split_size, kept), _HOW)


def _names(stores: Sequence[StoreOptions]) -> list[str]:
    """The names of the results of several stores, of which no two may have one log."""
    names = several.names_of("store", [one.root for one in stores])
    of: dict[str, str] = {}
    for one in stores:
        for log in one.commitlog:
            if (other := of.setdefault(log, one.root)) != one.root:
                raise ValueError(
                    f"commitlog: {log} would be the log of {other} and of {one.root}: "
                    "expected none where there are several stores, as each has its own"
                )
    return names


def _carry_out(engine: Engine, order: _Order, plan: several.Plan[Survey]) -> RebuildReport:
    options, found = order.options, plan.found
    elsewhere, wanted = _elsewhere(found, order.parts), _built(order, found)
    report = start_report(RebuildReport(options.root), found)
    report.findings += [*elsewhere.values(), *_emptied(found)]
    with scratch_for(engine, order.out) as (seeing, scratch):
        splits = cut(
            found.spans,
            _whole(found),
            order.split_size,
            tags=found.tags,
            out=scratch,
            index="index" in wanted,
            rules=found.queues.rules if "consumequeue" in wanted else None,
            zones=order.cache.keeps,
        )
        place = in_place(scratch, order.out)
        in_turn = build_in_turn(seeing, splits, scratch, found.geometry.value, place) if "index" in wanted else None
        extracted = in_turn[0] if in_turn is not None else extract(seeing, [splits])[0]
        rules, runs = found.queues.rules, extracted.units
        work = QueueWork(scratch, rules, names_of(runs), found.queues.batches(options), found.log_bytes)
        batches = assign_queues(runs)
        planned = _index_files(found, extracted, scratch) if "index" in wanted and in_turn is None else []
        require_room(seeing, scratch, planned, least_space(batches, rules))
        built = in_turn[1] if in_turn is not None else build_index_files(seeing, planned)
        queues = build_queue_files(seeing, work, batches)
        report.findings += [one.finding() for one in _unknown(seeing, found, extracted, wanted, queues)]
        index, placed = index_moves(built), tuple(place.placed) if place is not None else ()
        publication = Publication(
            scratch=scratch,
            out=order.out,
            aside=order.out + f".backup-{staging.backup_name()}" if order.overwrite else None,
            moves=(*(() if placed else index), *(move for queue in queues.queues for move in _moves(queue))),
            directories=tuple(part for part in PARTS if part in wanted),
            about=(
                *zip(("hash_slot_num", "index_num"), found.geometry.value, strict=True),
                ("entries", {name: part.entries for (_, name), part in zip(index, built, strict=True)}),
            ),
            placed=placed,
        )
        after_end = find_after_end(seeing, found.spans, extracted.fault)
        # Last, so that no error comes when an old `out` is in its backup.
        published = publish_all(seeing, publication)
        report.out_files, report.backup = published.paths, published.backup
        report.fsync_seconds += published.fsync_seconds
    report.findings += after_end.findings
    keep_zones(order.cache, (run.zones for run in extracted.runs), behind=after_end.behind is not None)
    _fill(report, extracted, built)
    _fill_queues(report, queues, order.out)
    report.findings += left_out_findings(queues.left_out, options.root)
    return report


def _elsewhere(found: Survey, wanted: frozenset[str]) -> dict[str, Finding]:
    """Parts of which this broker writes no files, and why."""
    said: dict[str, Finding] = {}
    if "index" in wanted and found.options.index_switch is not None:
        said["index"] = index_switched_off(found.options)
    if "consumequeue" in wanted and found.queues.rocksdb is not None:
        said["consumequeue"] = queues_elsewhere(found.queues.rocksdb)
    return said


def _emptied(found: Survey) -> list[Finding]:
    """These did not expire: no broker starts with them."""
    size = found.options.known(LOG_FILE_SIZE) or (
        found.spans[0].stop - found.spans[0].file_start if found.spans else None
    )
    kind = catalogue.LOG_FILE_LENGTH
    return [kind.finding(path, expected=size, got=0, who="a broker") for path in found.emptied]


def _unknown(
    engine: Engine, found: Survey, extracted: Extracted, wanted: frozenset[str], built: BuiltQueues
) -> list[UnknownSetting]:
    """The settings that were assumed, as nothing showed them; `out` is not the store, so this is no error."""
    index = "index" in wanted and extracted.messages > 0
    tags = index and not found.version.known and tags_matter(engine, found, [_whole(found)])
    queues = {queue.name for queue in built.queues} | built.left_out.keys()
    return unknown_settings(found, index=index, tags=tags, queues=queues)


def _index_files(found: Survey, extracted: Extracted, scratch: str) -> list[Part]:
    return assign(
        extracted.slices(),
        out=scratch,
        geometry=found.geometry.value,
        more=extracted.last_message > extracted.last_entry,
        empty=extracted.messages > 0,
    )


def _moves(queue: BuiltQueue) -> list[tuple[str, str]]:
    """A queue's directories, and where they go."""
    topic, queue_id = queue.name
    found = [(queue.path, join(queue.side, topic, str(queue_id)))]
    if queue.ext is not None:
        found.append((queue.ext, join("consumequeue_ext", topic, str(queue_id))))
    return found


def _require_apart(order: _Order) -> None:
    root = order.options.root
    output_place.require_apart(order.out, stores.places_of(root, order.options.commitlog), "the store has", home=root)


def _begin(order: _Order) -> several.Plan[Survey]:
    """Everything that may be refused is refused here, before the first byte is written; also says the space needed."""
    with one_look(order.options.root, *order.options.commitlog):
        stores.require_store(order.options.root)
        _require_apart(order)
        output_place.require_new(order.out, overwrite=order.overwrite)
        found, needed = read_again(lambda: _look(order))
    parent = parent_of(order.out)
    free = disk.check_space(parent, needed)
    more = f", and {FILE_BLOCK:,} for each queue," if "consumequeue" in _built(order, found) else ""
    return several.Plan(found, found.log_bytes, needed, f"needs about {needed:,} bytes{more} in {parent}, where {free}")


def _look(order: _Order) -> tuple[Survey, int]:
    found = survey_again(survey(order.options), None)
    require_log(found)
    built = _built(order, found)
    said = list(find_ends_early(order.options))
    if "consumequeue" in built and found.queues.compacted:
        said.append(catalogue.COMPACTION_NOT_WRITTEN.finding(join(order.options.root, "compaction")))
    found = replace(found, findings=(*found.findings, *said))
    return found, needed_space(found, built)


def _built(order: _Order, found: Survey) -> frozenset[str]:
    return order.parts - _elsewhere(found, order.parts).keys()


def needed_space(found: Survey, parts: Collection[str]) -> int:
    """Bytes of the built files and of the runs needed for them, estimated from samples of the log.

    How many queues there are is not known before the log is read: full files are counted, not each queue's last one.
    """
    entries, units = estimated_entries(found)
    hash_slot_num, index_num = found.geometry.value
    needed = 0
    if "index" in parts:
        files = -(-entries // (index_num - 1))
        needed += entries * layout.RUN_ENTRY_SIZE + files * layout.index_file_size(hash_slot_num, index_num)
    if "consumequeue" in parts:
        ext = EXT_UNIT.itemsize if found.queues.rules.ext_file_size is not None else 0
        needed += units * (UNIT.itemsize + layout.QUEUE_UNIT_SIZE + ext)
        needed += units * layout.QUEUE_UNIT_SIZE // found.queues.rules.file_size * FILE_BLOCK
    return needed


_HOW = several.Rebuilding("commit log", _require_apart, _begin, _carry_out, catalogue.NOT_REBUILT)


def _whole(found: Survey) -> LogRange:
    return LogRange(found.min_phy_offset, found.spans[-1].stop if found.spans else 0)


def _fill(report: RebuildReport, extracted: Extracted, built: Sequence[Built]) -> None:
    report.findings += extracted.findings()
    report.files = len(report.out_files)
    report.entries = sum(part.entries for part in built)
    report.messages = extracted.messages
    report.bytes = extracted.log_bytes
    report.fsync_seconds += sum(part.fsync_seconds for part in built)


def _fill_queues(report: RebuildReport, built: BuiltQueues, out: str) -> None:
    for queue in built.queues:
        topic, queue_id = queue.name
        report.units += queue.units
        report.findings += oddity_findings(queue.oddities, join(out, queue.side, topic, str(queue_id)))
    report.fsync_seconds += built.fsync_seconds
