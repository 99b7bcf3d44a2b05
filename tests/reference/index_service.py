"""A rolling row of index files in memory: sections 3.3, 3.4, 3.7 and 3.8 of the format document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.reference.index_file import MAX_TIME, IndexFile

__all__ = ["IndexService", "QueryResult"]


class QueryResult(NamedTuple):
    phy_offsets: list[int]
    last_timestamp: int
    last_phy_offset: int


class IndexService:
    """`files` in load order, which is name order."""

    def __init__(self, hash_slot_num: int, index_num: int, files: Sequence[IndexFile] = ()) -> None:
        self.hash_slot_num, self.index_num = hash_slot_num, index_num
        self.files = list(files)

    def writable_file(self) -> IndexFile:
        """The last file; where there is none or it is full, a new one, seeded with the end of the full one."""
        if not self.files or self.files[-1].full:
            seeds = (self.files[-1].end_phy_offset, self.files[-1].end_timestamp) if self.files else (0, 0)
            self.files.append(IndexFile(self.hash_slot_num, self.index_num, *seeds))
        return self.files[-1]

    def build_index(self, strings: Iterable[str] | None, phy_offset: int, store_timestamp: int) -> None:
        """One message with the strings that it is indexed under; None: a rolled-back one, which is not indexed."""
        if phy_offset < self.writable_file().end_phy_offset or strings is None:
            return
        for string in strings:
            self.put(string, phy_offset, store_timestamp)

    def put(self, string: str, phy_offset: int, store_timestamp: int) -> None:
        """One `topic#key`, rolling as often as it takes; with a capacity below 2 that is for ever, so an error."""
        if self.index_num < 2:
            raise ValueError("no file of this geometry holds an entry")
        while not self.writable_file().put(string, phy_offset, store_timestamp):
            pass

    def query_offset(self, topic: str, key: str, max_num: int = 64, begin: int = 0, end: int = MAX_TIME) -> QueryResult:
        """Newest file first, with the broker's two reasons to stop."""
        found: list[int] = []
        last = (0, 0)
        for file in reversed(self.files):
            if file is self.files[-1]:
                last = (file.end_timestamp, file.end_phy_offset)
            if file.is_time_matched(begin, end):
                found += file.select(f"{topic}#{key}", max_num - len(found), begin, end)
            if file.begin_timestamp < begin or len(found) >= max_num:
                break
        return QueryResult(found, *last)

    def delete_expired(self, min_phy_offset: int) -> int:
        """Drops the leading files that end before the log begins, never the last; how many."""
        count = 0
        while len(self.files) > 1 and self.files[0].end_phy_offset < min_phy_offset:
            self.files.pop(0)
            count += 1
        return count
