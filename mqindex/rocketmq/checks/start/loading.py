"""What a broker loads of the directory of a log, a queue or the timer log, and with which entries it does not start.

Source: RocketMQ `MappedFileQueue.load` and `doLoad`, `AllocateMappedFileService`, 4.5 to 5.5.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from mqindex._rules import Broker, Rule
from mqindex._words import plural
from mqindex.report import Finding, Kind
from mqindex.rocketmq.brokers import DIRECTORIES_STOP, EMPTY_FILES_STOP, EVERY
from mqindex.rocketmq.checks.start.start_files import Entry
from mqindex.rocketmq.kinds import number_of


class Refused(NamedTuple):
    """An entry with which brokers do not start. `stops`: whether this one is among them; None: not known.

    `empty`: the last file, without a byte, named by a number. `expected`: the length of others that it has not.
    `running`: a broker has loaded what is there; where `stops` is not known, it shows that it is another version.
    """

    entry: Entry
    reason: str
    stops: bool | None
    brokers: str
    expected: int | None
    empty: bool
    running: bool

    def finding(self, kind: Kind) -> Finding:
        """What is said of it."""
        if self.stops is None and self.running:
            kind = replace(kind, severity="warning")
        who = "the broker" if self.brokers == "every" else f"a broker {self.brokers}"
        got = self.reason if self.expected is None else self.entry.size
        return kind.finding(self.entry.path, expected=self.expected, got=got, who=who)


class Loaded(NamedTuple):
    """`files`: what is taken for a file, by name. `deleted`: the last one, without a byte, if the broker deletes it.

    `made`: the last one, without a byte, that a running broker makes at this moment.
    """

    files: tuple[Entry, ...]
    refused: tuple[Refused, ...]
    deleted: Entry | None
    made: Entry | None


class Loader(NamedTuple):
    """The broker that loads directories. `running`: one has loaded them, and writes there now.

    `rule`: which brokers load such directories at all.
    """

    broker: Broker
    running: bool
    rule: Rule = EVERY

    def load(self, entries: Sequence[Entry], size: int | None) -> Loaded:
        """What it does with the entries of a directory, by name. `size`: the length of a file; None: not known."""
        made = _last_number(entries) if self.running else None
        if made is not None:
            entries = [one for one in entries if one is not made]
        refused = tuple(self._refused(entries, size))
        no_files = {one.entry.path for one in refused}
        last = entries[-1] if entries and not entries[-1].directory and not entries[-1].size else None
        deleted = last if self.broker.does(EMPTY_FILES_STOP) is False else None
        files = tuple(one for one in entries if not one.directory and one.path not in no_files and one is not deleted)
        return Loaded(files, refused, deleted, made)

    def _refused(self, entries: Sequence[Entry], size: int | None) -> Iterator[Refused]:
        for one in entries:
            rule, expected, empty = EVERY, None, False
            if one.directory:
                rule, reason = DIRECTORIES_STOP, "a directory"
            elif one.size == 0 and one is entries[-1]:
                rule, reason, empty = EMPTY_FILES_STOP, "an empty file", number_of(one.name) is not None
            elif number_of(one.name) is None:
                reason = "not named by a number"
            elif size is not None and one.size != size:
                reason, expected = f"{plural(one.size, 'byte')}, not {size}", size
            else:
                continue
            rule = rule.and_also(self.rule)
            if (stops := self.broker.does(rule)) is not False:
                yield Refused(one, reason, stops, "every" if stops else rule.brokers, expected, empty, self.running)


def _last_number(entries: Sequence[Entry]) -> Entry | None:
    """The last of the files that are named by a number, if it has no byte: one gets its length after its name."""
    numbered = [one for one in entries if not one.directory and number_of(one.name) is not None]
    return numbered[-1] if numbered and not numbered[-1].size else None
