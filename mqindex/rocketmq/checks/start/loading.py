"""What a broker loads of the directory of a log or a queue, and with which entries there it does not start.

Source: RocketMQ `MappedFileQueue.load` and `doLoad`, 4.5 to 5.5.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mqindex._rules import Broker, Rule
from mqindex._words import plural
from mqindex.rocketmq.brokers import DIRECTORIES_STOP, EMPTY_FILES_STOP, EVERY
from mqindex.rocketmq.checks.start.start_files import Entry
from mqindex.rocketmq.kinds import number_of


class Refused(NamedTuple):
    """An entry with which brokers do not start. `stops`: whether this one is among them; None: not known.

    `empty`: the last file, without a byte, named by a number. `expected`: the length of others that it has not.
    """

    entry: Entry
    reason: str
    rule: Rule
    stops: bool | None
    brokers: str
    expected: int | None
    empty: bool

    @property
    def who(self) -> str:
        """The brokers, as a hint names them."""
        return "the broker" if self.brokers == "every" else f"a broker {self.brokers}"

    @property
    def got(self) -> str | int:
        """What a finding says of it."""
        return self.reason if self.expected is None else self.entry.size


class Loaded(NamedTuple):
    """`files`: what is taken for a file, by name. `deleted`: the last one, without a byte, if the broker deletes it."""

    files: tuple[Entry, ...]
    refused: tuple[Refused, ...]
    deleted: Entry | None


def load(entries: Sequence[Entry], size: int | None, broker: Broker) -> Loaded:
    """What a broker does with the entries of a directory, by name. `size`: the length of a file; None: not known."""
    refused = tuple(_refused(entries, size, broker))
    no_files = {one.entry.path for one in refused}
    last = entries[-1] if entries and not entries[-1].directory and not entries[-1].size else None
    deleted = last if broker.does(EMPTY_FILES_STOP) is False else None
    files = tuple(one for one in entries if not one.directory and one.path not in no_files and one is not deleted)
    return Loaded(files, refused, deleted)


def _refused(entries: Sequence[Entry], size: int | None, broker: Broker) -> Iterator[Refused]:
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
        if (stops := broker.does(rule)) is not False:
            yield Refused(one, reason, rule, stops, "every" if stops else rule.brokers, expected, empty)
