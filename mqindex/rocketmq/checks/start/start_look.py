"""What a look at a broker's next start gathers: obstacles, findings, what would be deleted; and the verdict of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mqindex._rules import Rule
from mqindex.files import lock
from mqindex.files.paths import join
from mqindex.report import Finding, Obstacle, Start
from mqindex.rocketmq.checks.start.recovery import NOT_KNOWN, Recovery, recoveries
from mqindex.rocketmq.checks.start.start_files import Entry
from mqindex.rocketmq.pipeline.survey import Survey


class Started(NamedTuple):
    """The verdict, and the findings that no other check makes."""

    start: Start
    findings: tuple[Finding, ...]


class StartLook:
    """Gathers what prevents a start, what a start would delete, and the findings."""

    def __init__(self, found: Survey, reads: Sequence[Recovery] | None) -> None:
        self._found, self._options = found, found.options
        self._reads = recoveries(found) or NOT_KNOWN if reads is None else reads
        self._broker = found.next_broker
        self._lock = lock.holder(join(found.options.root, "lock"))
        self._running = self._lock.state == "held" and not found.held
        self._obstacles: list[Obstacle] = []
        self._stops: list[bool | None] = []  # of each obstacle, whether it stops this broker; None: not known
        self._findings: list[Finding] = []
        self._deletes: list[str] = []
        self._cuts: list[str] = []
        self._messages: int | None = 0 if reads is not None or not found.spans else None
        self._files: list[Entry] = []
        self._deleted = 0
        self._lost: int | None = 0

    def verdict(self) -> Started:
        """All of it."""
        certain_first = sorted(zip(self._obstacles, self._stops, strict=True), key=lambda one: one[1] is None)
        start = Start(
            starts=False if True in self._stops else None if None in self._stops else True,
            obstacles=tuple(one for one, _ in certain_first),
            deletes=tuple(self._deletes),
            entries_deleted=self._deleted,
            entries_lost=self._lost,
            cuts=tuple(self._cuts),
            messages_deleted=self._messages,
            lock=self._lock.state,
            lock_pid=self._lock.pid,
            lock_holder=lock.program(self._lock.pid),
        )
        return Started(start, tuple(self._findings))

    def _stop(
        self,
        path: str,
        reason: str,
        brokers: str = "every",
        stops: bool | None = True,
        option: str | None = "--broker-version",
    ) -> None:
        self._obstacles.append(Obstacle(path, reason, brokers, option if stops is None else None))
        self._stops.append(stops)

    def _stop_where(self, rule: Rule, path: str, reason: str) -> bool:
        """With this file the brokers of a rule do not start; False: this one does."""
        stops = self._broker.does(rule)
        if stops is not False:
            self._stop(path, reason, "every" if stops else rule.brokers, stops)
        return stops is not False
