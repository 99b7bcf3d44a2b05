"""Rebuild: from the logs alone, the index files that a broker's recovery would write."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

from mqindex import several
from mqindex._options import with_options_of
from mqindex.engines import Engine
from mqindex.engines.engine import chosen_engine
from mqindex.engines.publishing import publish_all
from mqindex.engines.tasks import scratch_for
from mqindex.files import disk
from mqindex.files.paths import absolute, join, one_look, parent_of
from mqindex.files.places.place import given_path
from mqindex.files.results import output_place, staging
from mqindex.files.results.publication import Publication
from mqindex.kafka import catalogue
from mqindex.kafka.building import recover_partitions, write_transaction_indexes
from mqindex.kafka.checks.diagnosis import replay
from mqindex.kafka.directories.log_dir import homes_of, places_of
from mqindex.kafka.directories.survey import Order, Partition, Survey, gone, start_report, survey
from mqindex.kafka.index.transaction_index import aborted_bytes
from mqindex.kafka.kinds import segment_file
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.options import PartitionArguments, partition_options
from mqindex.kafka.stages import RecoveredSegment, SegmentRecovery, needed_space
from mqindex.report import RebuildReport
from mqindex.zones.cache import Cache, ZoneCache


@dataclass(frozen=True, slots=True)
class _Begin:
    """What is rebuilt: the input of the first task."""

    order: Order
    out: str
    overwrite: bool
    cache: ZoneCache

    @property
    def path(self) -> str:
        return self.order.directory

    @property
    def seen(self) -> list[str]:
        return [self.order.directory, parent_of(self.out)]


@with_options_of(partition_options)
def rebuild(
    directory: several.StrPath | Iterable[several.StrPath],
    out: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    cache: Cache = False,
    engine: Engine | None = None,
    **given: Unpack[PartitionArguments],
) -> RebuildReport:
    """Write the indexes of a partition, or of every partition of a log dir, byte for byte as a broker's recovery would.

    `out` has the same structure: `<20 digits>.index` and `.timeindex` of every segment, trimmed, `.txnindex` only where
    it has entries; of a log dir below `<topic>-<number>/`.

    Parameters
    ----------
    directory : path or URL of a partition or of a log dir; it is only read. Or several: one job and one report of all,
        in which what is wrong with one is a finding. The result of each is at `<out>/<name>`, as if it had been rebuilt
        to there alone; its name is that of its directory, or where they all end alike, as `disk1/kafka`, that above it.
    out : path or URL; must not exist or be empty, or `overwrite=True` moves it to `<out>.backup-<UTC>`, which no object
        store does. Of several directories this holds for each `<out>/<name>`.
    cache : where zone maps of the logs are kept for later scans, as of `scan`; False: nowhere. An index needs the heads
        of batches alone, and a zone map their records: with a cache all of them are read, too.
    kafka_version, index_interval_bytes, max_index_size, check_crc, storage_options : partition options, explained in
        `mqindex.kafka.options.PartitionArguments`.
    engine : where the stages run; None: `LocalEngine()`.

    Returns
    -------
    RebuildReport
        `ok` is False when a log ends too early, or a broker's recovery fails on it: that segment then
        has the indexes of what could be read, or none. `backup`: where the old `out` is now. Of several
        directories `stores` has the report of each.

    Raises
    ------
    BadMagicError : neither a partition nor a log dir.
    OutputExistsError : `out` holds something; or is a link, mount point or current directory.
    StoreInUseError : a broker holds an `out` that would be moved.

    Notes
    -----
    `out` appears by one rename, complete and on the disk, or not at all; in an object store its list of files,
    `<out>/mqindex.json`, comes last. What transactions are open before the first segment is read from a `.snapshot`,
    where there is one above the log's start.
    Source: Kafka 4.1.0 `LogSegment.recover`, `ProducerStateManager`.

    Examples
    --------
    >>> import tempfile
    >>> home = tempfile.mkdtemp()
    >>> os.mkdir(home + "/orders-0")
    >>> with open(home + "/orders-0/00000000000000000007.log", "xb") as file:  # one message of magic 1
    ...     file.write(bytes.fromhex("00000000000000070000001839268c3301000000018bcfe56800000000016b0000000176"))
    36
    >>> report = rebuild(home + "/orders-0", home + "/out")
    >>> report.entries, [os.path.basename(path) for path in report.out_files]
    (1, ['00000000000000000007.index', '00000000000000000007.timeindex'])
    """
    engine = chosen_engine(engine)
    options = partition_options(**given)
    storage = given.get("storage_options")
    place = absolute(given_path("out", out, storage))
    given_paths, alone = several.listed(directory)
    paths = [absolute(given_path("directory", each, storage)) for each in given_paths]
    kept = ZoneCache.of(cache, lambda: [home for path in paths for home in homes_of(path)])
    if not alone:
        names = several.names_of("directory", paths)
        orders = [
            _Begin(Order(path, options), join(place, name), overwrite, kept)
            for path, name in zip(paths, names, strict=True)
        ]
        return several.rebuild_each(engine, orders, place, _HOW)
    return several.rebuild_one(engine, _Begin(Order(paths[0], options), place, overwrite, kept), _HOW)


def _carry_out(engine: Engine, order: _Begin, plan: several.Plan[Survey]) -> RebuildReport:
    found, place = plan.found, order.out
    report = start_report(RebuildReport(order.path), found)
    with scratch_for(engine, place) as (seeing, scratch):
        with one_look(order.path):
            recovered = _recover_all(seeing, found, scratch, zones=order.cache.keeps)
        moves = _moves(seeing, found, recovered, scratch)
        publication = Publication(
            scratch=scratch,
            out=place,
            aside=place + f".backup-{staging.backup_name()}" if order.overwrite else None,
            moves=tuple(moves),
            directories=("",) if found.single else ("", *(partition.name for partition in found.partitions)),
        )
        published = publish_all(seeing, publication)
        report.out_files, report.backup = published.paths, published.backup
        report.fsync_seconds += published.fsync_seconds
    for partition, some in zip(found.partitions, recovered, strict=True):
        missed = [segment.files for segment in some if segment.gone]
        report.findings += gone(partition.path, partition.segments, missed)
    segments = [segment for partition in recovered for segment in partition]
    for segment in segments:
        order.cache.store(segment.zones)
    _fill(report, segments)
    return report


def _require_apart(begin: _Begin) -> None:
    output_place.require_apart(begin.out, places_of(begin.path), "the segments have")


def _begin(begin: _Begin) -> several.Plan[Survey]:
    """Everything that may be refused is refused here, before the first byte is written; also says the space needed."""
    with one_look(begin.path):
        found, out = survey(begin.order), begin.out
    _require_apart(begin)
    output_place.require_new(out, overwrite=begin.overwrite)
    parent, needed = parent_of(out), sum(needed_space(one.options, one.sizes) for one in found.partitions)
    free = disk.check_space(parent, needed)
    return several.Plan(found, found.bytes, needed, f"needs about {needed:,} bytes in {parent}, where {free}")


_HOW = several.Rebuilding("log", _require_apart, _begin, _carry_out, catalogue.NOT_REBUILT)


def _recover_all(engine: Engine, found: Survey, scratch: str, *, zones: bool) -> list[list[RecoveredSegment]]:
    kinds = frozenset({IndexKind.OFFSET, IndexKind.TIME})
    items = [
        [
            SegmentRecovery(
                files,
                size,
                replace(partition.options, other_intervals=()),
                scratch,
                partition.is_last(files),
                kinds,
                zones,
            )
            for files, size in zip(partition.segments, partition.sizes, strict=True)
        ]
        for partition in found.partitions
    ]
    return recover_partitions(engine, items)


def _moves(
    engine: Engine, found: Survey, recovered: Sequence[Sequence[RecoveredSegment]], scratch: str
) -> list[tuple[str, str]]:
    """New files and their names below `out`, segment by segment."""
    pairs = list(zip(found.partitions, recovered, strict=True))
    aborted = [(scratch, _aborted(engine, partition, segments)) for partition, segments in pairs]
    moves = []
    for (partition, segments), written in zip(pairs, write_transaction_indexes(engine, aborted), strict=True):
        home = "" if found.single else partition.name
        for segment in segments:
            base = segment.files.base_offset
            paths = segment.paths | ({IndexKind.TRANSACTION: written[base]} if base in written else {})
            moves += [(path, join(home, segment_file(base, kind))) for kind, path in paths.items()]
    return moves


def _aborted(
    engine: Engine, partition: Partition, segments: Sequence[RecoveredSegment]
) -> tuple[tuple[int, bytes], ...]:
    """Base offsets and contents of the `.txnindex` files of a partition that have entries."""
    if not any(len(segment.events) for segment in segments):
        return ()
    replayed = replay(engine, partition, [one.events for one in segments], [one.readable for one in segments])
    pairs = list(zip(segments, replayed.aborted, strict=True))
    for segment, aborted in pairs:
        segment.entries += len(aborted)
    return tuple((segment.files.base_offset, aborted_bytes(aborted)) for segment, aborted in pairs if aborted)


def _fill(report: RebuildReport, segments: Sequence[RecoveredSegment]) -> None:
    report.findings += [finding for segment in segments for finding in segment.findings]
    report.files = len(report.out_files)
    report.entries = sum(segment.entries for segment in segments)
    report.batches = sum(segment.batches for segment in segments)
    report.fsync_seconds += sum(segment.fsync_seconds for segment in segments)
