"""What a broker's next start would do with a store: would it start, what would it delete, and who holds the lock?

Directories are listed and a few bytes are read, whatever the size of the store.

Source: RocketMQ `MappedFileQueue.doLoad`, `DefaultMessageStore.load`, `IndexService.load`, `StoreCheckpoint`,
`ConfigManager.load`, `ConsumeQueueStore.loadConsumeQueues`, 4.5 to 5.5.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import takewhile

from mqindex._words import plural
from mqindex.files.paths import join, parent_of
from mqindex.files.places.place import require_answer
from mqindex.files.reading.regular import reading
from mqindex.files.rights import is_shut, rights
from mqindex.report import Finding
from mqindex.rocketmq import catalogue, kinds, layout
from mqindex.rocketmq.brokers import (
    COMPACTION,
    INDEX_FILES_REQUIRED,
    PROCESS_ID_KEPT,
    RECOVERS_FROM_OFFSET,
    TIMERS,
    WAITS_FOR_DISPATCH,
    WAITS_IF_TOLD,
)
from mqindex.rocketmq.checks.side_check import checkpoint_is_directory
from mqindex.rocketmq.checks.start import start_files
from mqindex.rocketmq.checks.start.compaction import compaction_faults, compaction_is_on, compaction_not_compared
from mqindex.rocketmq.checks.start.config_files import (
    CONFIG_FILES,
    TIMER_METRICS,
    config_findings,
    no_config_directory,
    refusals,
)
from mqindex.rocketmq.checks.start.load_look import LoadLook
from mqindex.rocketmq.checks.start.recovery import Recovery, needs_offset
from mqindex.rocketmq.checks.start.rocksdb_files import rocksdb_faults
from mqindex.rocketmq.checks.start.start_files import NO_FILE, Entry, is_log_file, listed, number_of
from mqindex.rocketmq.checks.start.start_look import Started
from mqindex.rocketmq.checks.start.timer_files import timer_faults, timers_are_on
from mqindex.rocketmq.log.log_entries import LogSpan
from mqindex.rocketmq.metadata.checkpoint import Checkpoint
from mqindex.rocketmq.pipeline.survey import Survey
from mqindex.rocketmq.settings import CONTROLLER_MODE, DUPLICATION, RECHECK_REPUT

_ABORT = ("abort", "abort.bak")


def check_start(found: Survey, reads: Sequence[Recovery] | None = None) -> Started:
    """Look at everything that a broker looks at when it starts; nothing is written, no lock is taken.

    reads : what it reads of its log, with the cuts; None: the log was not read.
    """
    look = _Look(found, reads)
    look.at_log()
    look.at_recovery()
    look.at_log_end()
    look.at_confirmed()
    look.at_queues()
    look.at_index()
    look.at_side_files()
    look.at_timers()
    look.at_compaction()
    look.at_owners()
    look.at_rocksdb()
    return look.verdict()


class _Look(LoadLook):
    """Looks at one part of a store after the other."""

    # ---- the log

    def at_recovery(self) -> None:
        """At the first bad record that it reads, a broker cuts the log and deletes all later files."""
        if self._cuts:  # as it does not load all
            return
        spans = self._found.spans
        log_end = spans[-1].stop if spans else 0
        reads = [one._replace(cut=log_end, messages=one.behind) if one.behind else one for one in self._reads]
        cuts = {one.end: one for one in reads if self._found.min_phy_offset <= one.end < log_end or one.behind}
        every = all(one.end in cuts for one in reads)
        known = every and len(cuts) == 1
        for at, one in sorted(cuts.items()):
            here = [span for span in spans if span.file_start <= at][-1]
            later = [span.path for span in spans if span.file_start > at]
            self._cuts.append(here.path)
            self._messages = one.messages if known else None
            self._deletes += later if every and at == max(cuts) else []
            self._findings.append(self._cut(here, one, len(later), known=known))

    def _cut(self, here: LogSpan, one: Recovery, later: int, *, known: bool) -> Finding:
        kind = catalogue.LOG_CUT_FOR_A_CRC if one.by_crc else catalogue.LOG_CUT_AT_NEXT_START
        who = "the next start" if known else "perhaps the next start"
        if not known and self._options.broker_version is None:
            who += " (--broker-version may decide it)"
        return kind.finding(
            here.path,
            one.end - here.file_start,
            expected="a good record where a broker reads its log again",
            got=f"a bad one at phy offset {one.end}",
            who=who,
            messages=plural(one.messages, "message"),
            files=plural(later, "later file"),
        )

    def at_confirmed(self) -> None:
        """What real brokers did: 4.9.3 never ended its start, 5.5.0 wrote over its log; of others it is not known."""
        options = self._options
        if not options.value(DUPLICATION) or options.value(CONTROLLER_MODE) or not self._found.spans:
            return
        first = self._found.spans[0].path
        self._stop(first, "nothing of the log is confirmed", "with duplicationEnable=true", None, option=None)
        self._cuts.append(first)
        self._messages = None
        kind = catalogue.LOG_NOT_CONFIRMED
        self._findings.append(kind.finding(first, expected="duplicationEnable=false", got="true"))

    def at_log_end(self) -> None:
        """From a full last file a broker goes on to the next one there is, and dispatch does not get over a hole."""
        entries = [one for one in listed(self._options.commitlog) if is_log_file(one) and one.size]
        last = next(
            (one for one in entries[::-1] if self._found.spans and one.path == self._found.spans[-1].path), None
        )
        if last is None or self._cuts or self._found.spans[-1].stop < number_of(last) + last.size:
            return
        end, later = number_of(last) + last.size, entries[entries.index(last) + 1 :]
        if not later or number_of(later[0]) <= end:
            return
        waits = self._waits_for_dispatch()
        kind = catalogue.LOG_FILE_MISSING if waits is False else catalogue.LOG_FILE_MISSING_AT_END
        if waits is not False:
            reason = f"the file at phy offset {end} before it is missing, and the start never ends"
            self._stop(later[0].path, reason, "every" if waits else WAITS_FOR_DISPATCH.brokers, waits)
        self._findings.append(
            kind.finding(
                last.path,
                expected=f"the next file at phy offset {end}",
                got=number_of(later[0]),
                who="the broker" if waits else f"a broker {WAITS_FOR_DISPATCH.brokers}",
                next=later[0].name,
            )
        )

    def _waits_for_dispatch(self) -> bool | None:
        """`DefaultMessageStore.start`; None: not known."""
        if self._broker.does(WAITS_IF_TOLD):
            return self._options.value(RECHECK_REPUT)
        return self._broker.does(WAITS_FOR_DISPATCH)

    # ---- the index

    def at_index(self) -> None:
        """A directory named like a file prevents a start; after an unclean end files later than the checkpoint go.

        A broker that starts nevertheless loads none after the directory, and deletes none of them.
        """
        entries = [one for one in listed([self._options.index]) if kinds.number_of(one.name) is not None]
        for one in entries:
            if one.directory:
                self._stop_where(INDEX_FILES_REQUIRED, one.path, "a directory")
        files = list(takewhile(lambda one: not one.directory, entries))
        self._files += files
        if self._found.unclean:
            self._require_directory()
            checkpoint = start_files.checkpoint_of(self._options.root)
            self._prune([(one, start_files.index_header(one.path)) for one in files], checkpoint)
            self._require_offset(checkpoint)

    def _require_directory(self) -> None:
        """A broker that recovers after an unclean end does not get over a message whose index file cannot be made."""
        other = [one.path for one in self._found.findings if one.kind == catalogue.NOT_A_DIRECTORY.name]
        if self._options.index in other and self._options.index_switch is None and not self._running:
            which = "where a message that is read again has keys"
            self._stop(self._options.index, "not a directory", which, None, option=None)

    def _require_offset(self, checkpoint: Checkpoint) -> None:
        """A broker from 5.5 on that is set to begin at its checkpoint's offset does not start without one."""
        path, none = join(self._options.root, "checkpoint"), catalogue.CHECKPOINT_NO_OFFSET
        if not needs_offset(self._found, checkpoint):
            return
        if self._stop_where(RECOVERS_FROM_OFFSET, path, "no logicsPhysicalOffset for enableAcceleratedRecovery"):
            self._findings.append(none.finding(path, expected="a logicsPhysicalOffset", got=0))

    def _prune(self, files: Sequence[tuple[Entry, layout.IndexHeader]], checkpoint: Checkpoint) -> None:
        """`IndexService.load`."""
        kept = [header for _, header in files if header.end_timestamp <= checkpoint.index_msg_timestamp]
        # messages before the end of the last index file that is kept are not indexed again
        known = [header.end_phy_offset for header in kept[-1:]]
        again = {(max([one.dispatched, *known]), one.end) for one in self._reads if one.unclean}
        if self._options.index_switch is not None:
            again = {(layout.MAX_TIMESTAMP, layout.MAX_TIMESTAMP)}
        for one, header in files:
            if header.end_timestamp > checkpoint.index_msg_timestamp:
                entries = min(max(header.index_count - 1, 0), self._found.geometry.value[1])
                lost = self._lost_of(one.path, entries, again)
                self._deletes.append(one.path)
                self._deleted += entries
                self._lost = None if lost is None or self._lost is None else self._lost + lost
                self._findings.append(self._doomed(one, header, checkpoint.index_msg_timestamp, entries, lost))

    def _doomed(self, one: Entry, header: layout.IndexHeader, known: int, entries: int, lost: int | None) -> Finding:
        kind = catalogue.DELETED_AT_NEXT_START
        if self._running:
            kind = catalogue.DELETED_AFTER_A_KILL
        elif lost == 0:
            kind = catalogue.WRITTEN_AGAIN_AT_NEXT_START
        gone = "perhaps not all come back" if lost is None else f"{lost} do not come back"
        if lost is None and self._options.broker_version is None:
            gone += " (--broker-version may decide it)"
        limit, got = f"at most {known}", header.end_timestamp
        return kind.finding(one.path, 8, "end_timestamp", limit, got, entries=plural(entries, "entry"), lost=gone)

    def _lost_of(self, path: str, entries: int, again: set[tuple[int, int]]) -> int | None:
        """How many entries of a deleted file have messages that the log still holds, and that are not read again.

        again : the phy offsets [begin, end) that are read; with several, the result is known only if all agree.
        """
        first = layout.INDEX_HEADER_SIZE + layout.INDEX_SLOT_SIZE * self._found.geometry.value[0]
        try:
            with reading(path, buffered=False) as file:
                below = partial(start_files.entries_below, file, first, entries)
                expired = below(self._found.min_phy_offset)
                lost = {entries - expired - max(below(end) - max(below(begin), expired), 0) for begin, end in again}
        except OSError as error:
            require_answer(error, path)
            return None
        return lost.pop() if len(lost) == 1 else None

    # ---- the other files

    def at_side_files(self) -> None:
        """Checkpoint, lock and abort are files; each configuration or its `.bak` can be read, or there is no `.bak`."""
        for one in listed([self._options.root]):
            if one.name in _ABORT and one.directory and self._stop_where(PROCESS_ID_KEPT, one.path, NO_FILE):
                self._findings.append(start_files.not_a_file(one.path))
            if one.name not in ("checkpoint", "lock"):
                continue
            if not one.directory:
                self._files.append(one)
                continue
            self._stop(one.path, NO_FILE)
            if one.name == "lock":
                no_file = catalogue.LOCK_UNREADABLE.finding(one.path, expected="a file", got="a directory")
                self._findings.append(no_file)
            else:
                self._findings.append(checkpoint_is_directory(one.path))
        no_directory = no_config_directory(join(self._options.root, "config"))
        if no_directory is not None:
            self._findings.append(no_directory)
        for name in CONFIG_FILES:
            self._at_config(name)

    def _at_config(self, name: str) -> None:
        path = join(self._options.root, "config", name)
        stops = [self._stop_where(who, path, reason) for who, reason in refusals(path)]
        if any(stops):
            self._findings += config_findings(path)

    def at_timers(self) -> None:
        """What a broker from 5.0 on keeps of messages with a time of delivery, unless that is switched off."""
        if self._broker.does(TIMERS) is False or not timers_are_on(self._options):
            return
        self._at_config(TIMER_METRICS)
        for fault in timer_faults(self._options):
            self._stop_where(TIMERS, fault.path, fault.reason)
            if fault.finding not in self._findings:
                self._findings.append(fault.finding)
        self.at_timer_log()

    def at_compaction(self) -> None:
        """What a broker from 5.1 on keeps of compacted topics, unless that is switched off."""
        if self._broker.does(COMPACTION) is False or not compaction_is_on(self._options):
            return
        not_compared = compaction_not_compared(self._found)
        if not_compared is not None:
            self._findings.append(not_compared)
        for fault in compaction_faults(self._options):
            if fault.passing and self._running:
                continue
            if fault.certain:
                self._stop_where(COMPACTION, fault.path, fault.reason)
            else:
                self._stop(fault.path, fault.reason, f"perhaps {COMPACTION.brokers}", None, option=None)
            self._findings.append(fault.finding)

    def at_owners(self) -> None:
        """A broker opens every file to write. It runs as the owner of its newest log file, unless that is root."""
        logs = [one for one in self._files if parent_of(one.path) in self._options.commitlog]
        owner = max(logs, key=lambda one: one.name).status if logs else None
        shut = [one for one in self._files if owner and one.status and is_shut(one.status, owner)]
        if owner is None or not shut or shut[0].status is None:
            return
        self._stop(shut[0].path, "the owner of the log may not write it")
        wanted, got = f"writable for user {owner.st_uid}", rights(shut[0].status)
        finding = catalogue.NOT_WRITABLE.finding(shut[0].path, expected=wanted, got=got, count=len(shut))
        self._findings.append(finding)

    def at_rocksdb(self) -> None:
        """The last of all, as most of it is not known."""
        for fault in rocksdb_faults(self._found):
            if fault.stops is not False:
                self._stop(fault.path, fault.reason, stops=fault.stops)
            self._findings += [fault.finding] if fault.finding is not None else []
