"""What is known of the log of one segment: where it is damaged, where it ends, and what a broker does with it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_recovery import Recovered
from mqindex.errors import MQIndexError, OutOfOrderError, TruncatedFileError
from mqindex.files.few_threads import of_each
from mqindex.files.places.place import Place
from mqindex.kafka.checks.log_check import (
    fills_index,
    has_grown,
    is_being_written,
    overflows,
    read_until,
    refused,
)
from mqindex.kafka.checks.segment_count import Counting
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.batches import batch_rows, is_control
from mqindex.kafka.log.damage import BatchFault
from mqindex.kafka.log.log_damage import damage_in, recovered_past_damage
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_files import SegmentFiles
from mqindex.kafka.options import PartitionOptions
from mqindex.kafka.partition.leader_epochs import RUN
from mqindex.kafka.partition.transactions import EVENT, events_of
from mqindex.report import Finding

_WORTH_A_THREAD: Final = 64 << 20  # bytes


@dataclass(frozen=True, slots=True)
class SegmentCheck:
    """One segment to check. `last`: of its partition; `clean`: whether its broker closed it, None: unknown;
    `may_be_open`, `unflushed`: as `Partition.may_be_open` and `is_unflushed` have it. `log_start`: of its partition.

    `ends`: offsets where it ended before. `zones`: make its zone map, in a `deep` pass. `threads`: how many processors
    are free. `counting`: what to count for a health report. `cut_damaged`: as of `repair`.
    """

    files: SegmentFiles
    options: PartitionOptions
    last: bool
    clean: bool | None
    may_be_open: bool
    unflushed: bool = False
    ends: tuple[int, ...] = ()
    log_start: int = 0
    deep: bool = False
    zones: bool = False
    threads: int = 1
    counting: Counting | None = None
    cut_damaged: bool = False

    @property
    def is_recovered(self) -> bool:
        """Whether a broker that starts recovers it, whatever indexes it has, and cuts its log where it is bad."""
        return self.unflushed or (self.last and self.clean is not True)


@dataclass(frozen=True, slots=True)
class CheckedLog:
    """What a pass over a log shows.

    `damage`: where it is no good batch, though something can be read behind. `readable`: it is good to its last batch,
    so `events` are all there are. `epochs`: runs of leader epochs. `contradictory`: batches with good checksums
    contradict each other. `end`: the offset after the last good batch. `cut`: bytes that a broker's recovery cuts,
    which then ends at `cut_end`. `read_until`: as `log_check.read_until` has it. `refusal`: why a recovery fails;
    `out_of_order`: because offsets go back, `overflows`: because one is too far above the base offset; `fills_index`:
    it fails with the given settings. `grew`: the log was written or cut meanwhile.
    """

    damage: tuple[BatchFault, ...] = ()
    readable: bool = False
    events: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, EVENT))
    epochs: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, RUN))
    contradictory: bool = False
    being_written: bool = False
    batches: int = 0
    last_offset: int | None = None
    end: int = 0
    cut: int = 0
    cut_end: int = 0
    read_until: int | None = None
    refusal: str | None = None
    out_of_order: bool = False
    overflows: bool = False
    fills_index: Finding | None = None
    grew: bool = False

    @property
    def good_behind(self) -> int:
        """How many good batches a recovery cuts with the bad ones."""
        return self.damage[0].batches if self.damage else 0


def checked_log(segment: LogSegment, made: Recovered, check: SegmentCheck, *, contradictory: bool) -> CheckedLog:
    """What is known of a log that can be recovered. `contradictory`: as `recovered` has it."""
    damage, base = damage_in(segment, made), segment.base_offset
    being_written = check.last and not made.damage and is_being_written(segment, made)
    end = base if made.last_offset is None else made.last_offset + 1
    first = damage[0].first_offset if damage else None
    cut_end = end if first is None else first
    return CheckedLog(
        damage=damage,
        readable=made.fault is None and (made.truncated_bytes == 0 or check.last),
        events=events_in(segment, made, check.log_start),
        epochs=np.frombuffer(made.epochs, RUN),
        contradictory=contradictory or bool(made.oddities),
        being_written=being_written,
        batches=made.batches,
        last_offset=made.last_offset,
        end=end,
        cut=0 if being_written else made.truncated_bytes,
        cut_end=cut_end,
        read_until=read_until(segment, made.valid_bytes, cut_end) if made.truncated_bytes else None,
        fills_index=fills_index(segment, made, check.options),
        grew=check.may_be_open and has_grown(segment, made),
    )


def refused_log(check: SegmentCheck, error: MQIndexError) -> tuple[CheckedLog, Finding]:
    """What is known of a log that a broker cannot recover, and why."""
    files, until = check.files, None
    with contextlib.suppress(MQIndexError), LogSegment.open(files.log, base_offset=files.base_offset) as segment:
        until = read_until(segment, 0, segment.base_offset)
    log = CheckedLog(
        read_until=until,
        refusal=error.what,
        out_of_order=isinstance(error, OutOfOrderError),
        overflows=overflows(files.log, error, files.base_offset),
        grew=isinstance(error, TruncatedFileError),  # a preallocated log loses its zeros when it is closed
    )
    return log, refused(files.log, error, files.base_offset)


def recovered(segment: LogSegment, check: SegmentCheck) -> tuple[Recovered, bool]:
    """All good batches, and what is written for them, however many entries: the file's own length limits nothing. And
    whether those behind damage had to be left out, as they contradict those before.
    """
    options = check.options
    recover = partial(
        segment.recover,
        index_interval_bytes=options.index_interval_bytes,
        max_index_size=max(options.max_index_size, 2 * IndexKind.TIME.entry_size + segment.size),
        kafka_version=options.kafka_version,
        stretch=0 if check.counting is None else check.counting.stretch,
    )
    if options.check_crc:
        recover = partial(_recover_with_threads, segment, check.threads, recover)
    else:
        recover = partial(recover, check_crc=False)
    return recovered_past_damage(recover)


def events_in(segment: LogSegment, made: Recovered, log_start: int = 0) -> npt.NDArray[Any]:
    """The events of a segment, with the markers read from its log."""
    rows = batch_rows([made.transactional])
    return events_of(rows, segment._log_of(rows[is_control(rows)]), log_start) if len(rows) else np.empty(0, EVENT)


def _recover_with_threads(
    segment: LogSegment, threads: int, recover: Callable[..., Recovered], *, past_damage: bool
) -> Recovered:
    """`recover(check_crc=True)`; a large log is recovered by its headers while threads, if they can be started, compare
    the checksums.
    """
    threads = 1 if isinstance(segment.path, Place) else min(threads, segment.size // _WORTH_A_THREAD)
    if threads > 1:
        made = recover(check_crc=False, past_damage=past_damage)
        if not made.damage and _checksums_hold(segment, made, threads):
            return made
    return recover(check_crc=True, past_damage=past_damage)


def _checksums_hold(segment: LogSegment, made: Recovered, threads: int) -> bool:
    positions = np.frombuffer(made.offset_index, IndexKind.OFFSET.entry)["position"]
    inner = [int(positions[len(positions) * n // threads]) for n in range(1, threads) if len(positions)]
    cuts = sorted({0, *inner, made.end_bytes})
    return all(of_each(lambda piece: segment._reaches(*piece), list(pairwise(cuts)), threads))
