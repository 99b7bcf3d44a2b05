"""Whether a broker's next start would load the directories of a log, of its queues and of its timers; what it deletes.

Source: RocketMQ `MappedFileQueue`, `DefaultMessageStore.load`, `ConsumeQueueStore.loadConsumeQueues`, `TimerLog.load`,
4.5 to 5.5.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mqindex._rules import Rule
from mqindex._settings import Setting
from mqindex._words import plural
from mqindex.files.paths import base_name, join, parent_of
from mqindex.report import Kind
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.brokers import BATCH_QUEUES, BLANK_ENDS_STOP, EVERY, TIMERS
from mqindex.rocketmq.checks.start import start_files
from mqindex.rocketmq.checks.start.loading import Loaded, Loader, Refused
from mqindex.rocketmq.checks.start.recovery import reach_of_queues
from mqindex.rocketmq.checks.start.start_files import Entry, begins_without_unit, is_log_file, listed, number_of
from mqindex.rocketmq.checks.start.start_look import StartLook
from mqindex.rocketmq.directories.rocksdb import config_in_rocksdb
from mqindex.rocketmq.kinds import queue_paths
from mqindex.rocketmq.settings import (
    BATCH_FILE_SIZE,
    EXT_FILE_SIZE,
    LOG_FILE_SIZE,
    QUEUE_FILE_SIZE,
    TIMER_LOG_FILE_SIZE,
)


class _Files(NamedTuple):
    """Files of one kind, which brokers load by directories. `rule`: which brokers do.

    `stray`, `empty`, `length`: what is said of an entry that is refused; None: other checks say it. `unknown`: of one
    whose length may be refused.
    """

    size: Setting[int]
    rule: Rule = EVERY
    stray: Kind | None = None
    empty: Kind | None = None
    length: Kind | None = None
    unknown: Kind = catalogue.FILE_LENGTH_UNKNOWN

    def kind_of(self, refused: Refused) -> Kind | None:
        return self.length if refused.expected is not None else self.empty if refused.empty else self.stray


_LOG = _Files(LOG_FILE_SIZE, EVERY, catalogue.STRAY_LOG_FILE, catalogue.LOG_FILE_EMPTY, catalogue.LOG_FILE_LENGTH)
_QUEUES = _Files(QUEUE_FILE_SIZE)
_EXT = _Files(EXT_FILE_SIZE, EVERY, catalogue.STRAY_EXT_FILE, catalogue.QUEUE_FILE_EMPTY, catalogue.OTHER_QUEUE_SIZE)
_BATCH_QUEUES = _Files(BATCH_FILE_SIZE, BATCH_QUEUES)
_TIMER_LOG = _Files(
    TIMER_LOG_FILE_SIZE, TIMERS,
    catalogue.TIMER_LOG_STRAY, catalogue.TIMER_LOG_STRAY, catalogue.TIMER_LOG_LENGTH, catalogue.TIMER_LOG_LENGTH,
)  # fmt: skip
_BATCH = "BatchCQ"


class LoadLook(StartLook):
    """Looks at the directories of a log, of queues and of timers."""

    def at_log(self) -> None:
        """Every entry of its directories must be a file of the log; without one the broker deletes the queues."""
        entries = listed(self._options.commitlog)
        there = start_files.usual([one.size for one in entries if is_log_file(one)])
        size = self._options.known(LOG_FILE_SIZE) or start_files.log_file_size(entries) or there
        self._at_names(self._load(_LOG, entries, size).files)
        self._require_known(_LOG, size, [entries])
        if self._running or any(start_files.is_log_file(one) and one.size for one in entries):
            return
        home = self._options.consume_queue
        queues = [path for path in queue_paths(home) if any(one.size for one in listed([path]))]
        if queues:
            self._deletes.append(home)
            none = catalogue.QUEUES_DELETED_AT_NEXT_START.finding(home, expected="a commit log", got="none")
            self._findings.append(none)

    def _load(self, what: _Files, entries: Sequence[Entry], size: int | None) -> Loaded:
        """One directory of files of a kind."""
        loaded = Loader(self._broker, self._running, what.rule).load(entries, size)
        self._files += [one for one in entries if not one.directory]
        for refused in loaded.refused:
            self._stop(refused.entry.path, refused.reason, refused.brokers, refused.stops)
            kind = what.kind_of(refused)
            if kind is not None:
                self._findings.append(refused.finding(kind))
        if loaded.deleted is not None:
            self._deletes.append(loaded.deleted.path)
        return loaded

    def _at_names(self, files: Sequence[Entry]) -> None:
        """Each log file is loaded whatever its number: one after the other, by name."""
        before: dict[str, Entry] = {}
        for one in files:
            if not is_log_file(one):
                kind = catalogue.LOADED_AS_LOG_FILE
                self._findings.append(kind.finding(one.path, expected="20 digits", got=one.name))
            elif one.name in before:
                kind = catalogue.DUPLICATE_LOG_FILE
                got = before[one.name].path
                self._findings.append(kind.finding(one.path, expected="one file of this name", got=got))
            before[one.name] = one

    def _require_known(self, what: _Files, size: int | None, directories: Iterable[Sequence[Entry]]) -> None:
        """Nobody knows whether a broker takes files whose length is neither given nor shown, nor its default."""
        setting = what.size
        known = self._options.known(setting) is not None
        if known or size in (None, setting.default) or self._running:  # a broker has loaded them
            return
        first: Entry | None = None
        for entries in directories:
            if start_files.shows_length(entries, size):
                return
            first = first or next((one for one in entries if not one.directory and one.size == size), None)
        if first is not None:
            reason = f"{plural(size, 'byte')}, not {setting.default}"
            self._stop(first.path, f"{reason}, the default", f"unless {setting.name} is {size}", None, "--broker-conf")
            option = f"--broker-conf FILE, the broker's own, whole, for its {setting.name}"
            who = f"a broker {what.rule.brokers}"
            expected, got = setting.default, size
            self._findings.append(what.unknown.finding(first.path, expected=expected, got=got, option=option, who=who))

    def at_queues(self) -> None:
        """Consume queues, their extension files where these are on, and batch queues."""
        if (elsewhere := config_in_rocksdb(self._options)) is not None:
            self._findings.append(catalogue.TOPICS_ELSEWHERE.finding(elsewhere))
        if self._found.queues.rocksdb is not None:
            return
        rules = self._found.queues.rules
        batch = self._found.queues.declared
        options = self._options
        simple = queue_paths(options.consume_queue)
        self._at_blank_ends(self._load_queues(_QUEUES, simple, rules.file_size))
        if rules.ext_file_size is not None:
            ext = queue_paths(options.consume_queue_ext_directory)
            self._load_queues(_EXT, ext, rules.ext_file_size)
        if self._broker.does(BATCH_QUEUES) is False:  # it loads no batch queues, and compares no types
            return
        for path in simple:
            self._require_type(path, "SimpleCQ", batch is None or _topic_of(path) not in batch)
        batched = queue_paths(options.batch_consume_queue)
        there = start_files.usual([one.size for one in listed(batched) if is_log_file(one)])
        self._load_queues(_BATCH_QUEUES, batched, options.known(BATCH_FILE_SIZE) or there)
        for path in batched:
            self._require_type(path, _BATCH, batch is None or _topic_of(path) in batch)

    def _at_blank_ends(self, directories: Iterable[Sequence[Entry]]) -> None:
        """`ConsumeQueue.correctMinOffset` looks 20 bytes before the last file, unless the log's end was cut off the
        queues before. After an unclean end the broker may have written units there meanwhile."""
        lasts = [entries[-1] for entries in directories if entries]
        blank = [one for one in lasts if one.size and number_of(one) and begins_without_unit(one.path)]
        stops = self._broker.does(BLANK_ENDS_STOP) if blank and not self._running else False
        if stops is False or not self._goes_on(reach_of_queues(self._options)):
            return
        for one in blank:
            reason = "its first place holds no unit"
            known = stops and not self._found.unclean
            self._stop(one.path, reason, "every" if known else f"perhaps {BLANK_ENDS_STOP.brokers}", known or None)

    def _goes_on(self, reach: int) -> bool:
        """Whether the log has a message at this phy offset, to which the queues reach, or behind it."""
        files = [
            one for one in listed(self._options.commitlog) if is_log_file(one) and number_of(one) + one.size > reach
        ]
        heads = (start_files.message_at(one.path, max(reach - number_of(one), 0)) for one in files[:2])
        return any(head is not None for head in heads)

    def _load_queues(self, what: _Files, queues: Iterable[str], size: int | None) -> list[list[Entry]]:
        directories = [listed([path]) for path in queues]
        for entries in directories:
            self._load(what, entries, size)
        self._require_known(what, size, directories)
        return directories

    def at_timer_log(self) -> None:
        """Its files, one after the other."""
        entries = listed([join(self._options.root, "timerlog")])
        there = start_files.usual([one.size for one in entries if is_log_file(one)])
        size = self._options.known(TIMER_LOG_FILE_SIZE) or start_files.log_file_size(entries) or there
        self._load(_TIMER_LOG, entries, size)
        self._require_known(_TIMER_LOG, size, [entries])

    def _require_type(self, path: str, kind: str, said: bool) -> None:
        if not said:
            self._stop(path, f"a queue of type {kind}, which config/topics.json does not say of its topic")
            expected = f"queue.type {kind} in config/topics.json"
            self._findings.append(catalogue.QUEUE_TYPE.finding(path, expected=expected, got="another"))


def _topic_of(path: str) -> str:
    return base_name(parent_of(path))
