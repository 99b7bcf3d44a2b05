"""What a broker loads of the directory of a log or a queue, and with which entries there it does not start.

Source: RocketMQ `MappedFileQueue.load` and `doLoad`, 4.1 to 5.5.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from mqindex._rules import Broker, Rule
from mqindex._words import plural
from mqindex.rocketmq.brokers import DIRECTORIES_STOP, EMPTY_FILES_STOP, EVERY, LENGTHS_COMPARED
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
        if self.brokers == "every":
            return "the broker"
        return "a broker" if self.rule is EVERY else f"a broker {self.brokers}"

    @property
    def got(self) -> str | int:
        """What a finding says of it."""
        return self.reason if self.expected is None else self.entry.size


class Loaded(NamedTuple):
    """`files`: what is taken for a file, by name. `left`: what a broker before 4.5 takes as not there.

    `deleted`: the last file, without a byte, where the broker deletes such a one.
    """

    files: tuple[Entry, ...]
    refused: tuple[Refused, ...]
    left: tuple[Entry, ...]
    deleted: Entry | None


def load(entries: Sequence[Entry], size: int | None, broker: Broker) -> Loaded:
    """What a broker does with the entries of a directory, by name. `size`: the length of a file; None: not known.

    One before 4.5 starts without the first entry of another length and all after it, and writes over them (4.3.2 and
    4.4.0 `MappedFileQueue.load`).
    """
    taken = list(entries)
    if broker.does(LENGTHS_COMPARED) is False and size is not None:
        taken = list(takewhile(lambda one: one.size == size, entries))
    refused = tuple(_refused(taken, size, broker))
    no_files = {one.entry.path for one in refused}
    last = taken[-1] if taken and not taken[-1].directory and not taken[-1].size else None
    deleted = last if broker.does(EMPTY_FILES_STOP) is False else None
    files = tuple(one for one in taken if not one.directory and one.path not in no_files and one is not deleted)
    return Loaded(files, refused, tuple(entries[len(taken) :]), deleted)


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
            decides = LENGTHS_COMPARED if rule is EVERY else rule  # those before leave it out, see `load`
            brokers = decides.brokers if broker.does(decides) is None else "every"
            yield Refused(one, reason, rule, stops, brokers, expected, empty)
