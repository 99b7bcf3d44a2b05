"""The units that the whole log gives each queue, put together from its splits, and where the queue's files differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mqindex._words import plural
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.queues.served import Served, ServedMessage, ServedMessages
from mqindex.rocketmq.checks.queues.unit_check import Compared, QueueRun
from mqindex.rocketmq.pipeline.queue_splits import oddity_findings
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.unit_places import Ranges, fits_hole, joined, shared

_MAX_LISTED = 20


class ExpectedUnits(Compared):
    """`ranges`: the places of the units but for the late ones."""

    __slots__ = ()

    @property
    def places(self) -> Ranges:
        """Those of all units, ascending; some that have none are among them where `scattered`."""
        return joined([*self.ranges, *self.late])

    def take(self, run: QueueRun) -> None:
        """The units of the next split."""
        odd = run.oddities
        if run.next >= 0 and self.next > 0 and (run.anew or run.first == 0):
            odd = odd.noted(run.phy_offset, early=self.units, twice=int(bool(self.ranges) and self.ranges[0][0] == 0))
            self.forget(self.units, run.began if run.anew else run.phy_offset)
        elif run.next >= 0 and 0 <= self.next < run.first and not run.follows:
            odd = odd.noted(run.phy_offset, blanks=run.first - self.next)
        self.oddities += odd
        self.units += run.units
        if run.next >= 0:
            self.next, self.last_end = run.next, run.last_end
        self.ranges = joined([*self.ranges, *run.ranges])
        self.late = joined([*self.late, *run.late])
        self.late_from = run.late_from if self.late_from < 0 else self.late_from
        self.began = max(self.began, run.began)
        self.scattered |= run.scattered
        self.early_there += run.early_there
        self.early = joined([*self.early, *run.early])
        self.absent += run.absent
        self.wrong += run.wrong
        self.wrong_ext += run.wrong_ext
        self.tag_hashes += run.tag_hashes
        self.differences += run.differences[: _MAX_LISTED - len(self.differences)]

    def served(self, name: QueueName) -> list[Served]:
        """The messages that consumers get and a repair takes out: the later ones of two, the earlier ones of two."""
        later, any_end = shared(self.ranges, self.late), 2**63 - 1
        some = [Served(name, True, later, self.late_from, any_end), Served(name, False, self.early, 0, self.began)]
        return [one for one in some if one.places]

    def findings(self, path: str, named: Mapping[bool, Sequence[ServedMessage]]) -> list[Finding]:
        """Everything that differs in the queue whose directory is `path`. `named`: by `later`, what `served` asked."""
        own = [*self._absent(path), *self._wrong(), *self._served(path, named), *self._other(path)]
        return [*own, *oddity_findings(self.oddities, path)]

    def _absent(self, path: str) -> list[Finding]:
        first = next((one for one in self.differences if one.field is None), None)
        if not self.absent:
            return []
        where = f" from queue offset {first.queue_offset}, phy offset {first.phy_offset} on" if first else ""
        expected = f"{plural(self.absent, 'unit')}{where}"
        return [catalogue.MISSING_UNITS.finding(path, expected=expected, got="none")]

    def _wrong(self) -> list[Finding]:
        listed = [one for one in self.differences if one.field is not None]
        kind, units = catalogue.WRONG_UNIT, plural(self.wrong, "unit")
        if self.wrong > len(listed):
            kind = catalogue.MANY_WRONG_UNITS
        return [
            kind.finding(
                one.path, one.at, f"{one.field} of unit {one.queue_offset}", one.expected, one.got, units=units
            )
            for one in listed
        ]

    def _served(self, path: str, named: Mapping[bool, Sequence[ServedMessage]]) -> list[Finding]:
        """Consumers get these as long as they stay: units of later messages with the queue offsets of earlier ones, and
        units from before the queue offsets began again, put there by a broker that built the queue from nothing.
        """
        found, again = [], shared(self.ranges, self.late)
        if again:
            count = sum(stop - start for start, stop in again)
            said = f"{'up to ' * self.scattered}{plural(count, 'later message')} at {_between(again)}"
            got = ServedMessages(said, count, tuple(named.get(True, ())))
            found.append(catalogue.OFFSETS_SERVED_TWICE.finding(path, expected="the earlier messages", got=got))
        if self.early:
            said = f"{plural(self.early_there, 'earlier message')} among {_between(self.early)}"
            got = ServedMessages(said, self.early_there, tuple(named.get(False, ())))
            found.append(catalogue.EARLIER_SERVED.finding(path, expected="the later messages", got=got))
        return found

    def _other(self, path: str) -> list[Finding]:
        found = []
        if self.wrong_ext:
            got = f"{plural(self.wrong_ext, 'unit')} whose extension unit does not"
            found.append(catalogue.WRONG_EXT_UNIT.finding(path, expected="extension units that match", got=got))
        if self.tag_hashes:
            got = f"a tag's hash in {plural(self.tag_hashes, 'unit')}"
            found.append(catalogue.NO_DELIVER_TIME.finding(path, expected="times of delivery", got=got))
        return found


def _between(places: Ranges) -> str:
    return f"queue offsets {places[0][0]} to {places[-1][1] - 1}"


def needs_again(expected: dict[QueueName, ExpectedUnits], runs: Iterable[QueueRun]) -> dict[QueueName, tuple[int, int]]:
    """Queues of a split whose places depend on what came before: (next, last_end) of these."""
    found = {}
    for run in runs:
        before = expected.get((run.topic, run.queue_id))
        if before is None or before.next < 0 or run.next < 0 or run.first in (0, before.next):
            continue
        hole = run.first - before.next
        if hole < 0 or not fits_hole(hole, run.phy_offset - before.last_end):
            found[run.topic, run.queue_id] = before.next, before.last_end
    return found


def gather_expected(runs: Sequence[Sequence[QueueRun]]) -> dict[QueueName, ExpectedUnits]:
    """The units of all queues; `runs`: those of each split, in the log's order."""
    expected: dict[QueueName, ExpectedUnits] = {}
    for split in runs:
        for run in split:
            expected.setdefault((run.topic, run.queue_id), ExpectedUnits()).take(run)
    return expected
