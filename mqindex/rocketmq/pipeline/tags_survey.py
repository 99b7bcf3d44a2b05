"""Where TAGS give index entries, as far as the entries show: a store may have seen brokers before and since 5.4.

Entries follow the rule of the broker that wrote them, and stay as they are after an upgrade or a downgrade. In what a
log still holds the rule is taken to change once at most: at a phy offset that is looked for here. It may change again
after the last entry, where the broker's version is given.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from mqindex.errors import MQIndexError
from mqindex.rocketmq.index.compare import first_in_log, next_entry
from mqindex.rocketmq.index.compare_moved import comparisons, end_agrees, start_agrees
from mqindex.rocketmq.index.geometry import Geometry
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.log.expiry import was_deleted
from mqindex.rocketmq.log.log_entries import ALL_TAGS, NO_TAGS, LogEntries, LogSpan, Tags

__all__ = ["IndexedTags"]

_SAMPLES: Final = (1000, 100, 10, 3)  # entries; a change of the rule may be among the last ones
_LEADS_NOWHERE: Final = (errno.ENOENT, errno.ELOOP)  # a link, now and later
_RULES: Final = {False: NO_TAGS, True: ALL_TAGS}
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class IndexedTags:
    """The index files of a store, and its log. `unread` gets the errors of files that could not be read."""

    index_files: Sequence[str]
    spans: Sequence[LogSpan]
    pair: Geometry
    unread: list[OSError] = field(default_factory=list)

    def newest(self) -> tuple[bool, str] | None:
        """Whether the newest entries that show it are by the rule of 5.4, and their file; None: none shows it."""
        for path in reversed(self.index_files):
            decided = self._at_end(path)
            if decided is not None:
                return decided, path
        return None

    def all(self, following: bool) -> Tags:
        """Where TAGS give entries. `following`: whether they do in messages that come after all entries."""
        shown = self.newest()
        if shown is None:
            return _RULES[following]
        within = self._within(shown[0])
        if shown[0] == following:
            return within
        end = self._ask(shown[1], NO_TAGS, lambda index, log: index.header.end_phy_offset + 1)
        return _RULES[following] if end is None else Tags((*within.changes, end))

    def _within(self, newest: bool) -> Tags:
        """Where TAGS give the entries that are there; `newest`: whether they give the newest ones."""
        older = self._oldest()
        if older is None or older[0] == newest:
            return _RULES[newest]
        border = self._border(self.index_files[older[1] :], newest)
        return _RULES[newest] if border is None else _changed(newest, border)

    def _oldest(self) -> tuple[bool, int] | None:
        """The rule of the oldest entries that show it, and the number of their file."""
        for number, path in enumerate(self.index_files):
            for look in (self._at_start, self._at_end):
                decided = look(path)
                if decided is not None:
                    return decided, number
        return None

    def _border(self, paths: Sequence[str], newest: bool) -> int | None:
        """The phy offset from which on entries are by the newest rule; None: damage hides it."""
        for path in paths:
            if self._at_start(path) == newest:
                return self._ask(path, NO_TAGS, lambda index, log: index.header.begin_phy_offset)
            if self._at_end(path) != (not newest):
                return self._change(path, newest)
        return None

    def _change(self, path: str, newest: bool) -> int | None:
        """Where the rule changes in a file; None: what differs there is damage."""
        border = self._ask(path, _RULES[not newest], _first_difference)
        if border is None:
            return None
        following = self._ask(path, _changed(newest, border), _first_difference)
        return border if following is None or following > border else None

    def _at_start(self, path: str) -> bool | None:
        return _only(self._fitting(path, partial(start_agrees, count=_SAMPLES[1])))

    def _at_end(self, path: str) -> bool | None:
        tried = (self._fitting(path, partial(end_agrees, count=count)) for count in _SAMPLES)
        return _only(next(filter(None, tried), []))

    def _fitting(self, path: str, fits: Callable[[IndexFile, LogEntries], bool]) -> list[bool]:
        return [rule for rule, tags in _RULES.items() if self._ask(path, tags, fits)]

    def _ask(self, path: str, tags: Tags, question: Callable[[IndexFile, LogEntries], Answer]) -> Answer | None:
        """The answer of a file that can be read and has entries of messages of this log; else None."""
        try:
            with (
                IndexFile.open_known(path, self.pair) as index,
                LogEntries(self.spans, tags=tags) as log,
            ):
                return question(index, log) if first_in_log(index, log) < next_entry(index) else None
        except MQIndexError:
            return None
        except OSError as error:
            if was_deleted(error):
                raise  # by a broker; the survey begins again
            if error.errno not in _LEADS_NOWHERE:
                self.unread.append(error)
            return None


def _only(fitting: list[bool]) -> bool | None:
    return fitting[0] if len(fitting) == 1 else None


def _changed(newest: bool, border: int) -> Tags:
    return Tags((*_RULES[not newest].changes, border))


def _first_difference(index: IndexFile, log: LogEntries) -> int | None:
    found, _ = comparisons(index, log, _SAMPLES[1], every=True)
    return min((each.phy_offset for one in found for each in one.differences), default=None)
