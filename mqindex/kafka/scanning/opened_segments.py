"""The segments of a partition, opened when a scan comes to it, while a broker may delete and clean them."""

from __future__ import annotations

import errno
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import Self

from mqindex.kafka.directories.partition_files import PartitionFiles, while_files_go
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_files import SegmentFiles
from mqindex.kafka.scanning.chosen_segments import ChosenPartition
from mqindex.kafka.scanning.record_filter import RecordFilter


class OpenedSegments:
    """Those of a partition that can have what is asked for; the end of a `with` closes them.

    Those that are open stay as they are. Where one was deleted or replaced before, the partition is listed again: of
    what a broker cleaned the new files are read, and what its retention deleted is gone.

    Attributes
    ----------
    segments : list of (LogSegment, int), with the bytes that count: what was appended since the scan began does not
    expired : list of str, logs that are gone
    """

    def __init__(self, partition: ChosenPartition, wanted: RecordFilter) -> None:
        self.segments: list[tuple[LogSegment, int]] = []
        self.expired: list[str] = []
        self._wanted, self._opened = wanted, ExitStack()
        try:
            self._as_chosen(partition)
        except FileNotFoundError:
            self._as_they_are_now(partition)

    def _as_chosen(self, partition: ChosenPartition) -> None:
        with ExitStack() as opened:
            found = []
            for files, status in partition.segments:
                if status.st_size and self._is_asked_for(files):
                    segment = opened.enter_context(LogSegment._of_files(files))
                    if not segment._is_of(status):
                        raise FileNotFoundError(errno.ENOENT, "another log has its name", files.log)
                    found.append((segment, status.st_size))
            self.segments, self._opened = found, opened.pop_all()

    def _as_they_are_now(self, partition: ChosenPartition) -> None:
        there: dict[int, bool] = {}
        if partition.is_whole:
            with suppress(FileNotFoundError):  # of a deleted topic
                there = while_files_go(partition.place.path, partial(self._listed, partition))
        gone = [files for files, _ in partition.segments if files.base_offset not in there]
        self.expired = [
            files.log for files in gone if self._is_asked_for(files) and not _was_cleaned(files.base_offset, there)
        ]

    def _listed(self, partition: ChosenPartition, now: PartitionFiles) -> dict[int, bool]:
        """Open those of a new list that the scan began with, or that took their place; of each whether it is the same
        file.
        """
        known = {files.base_offset: status for files, status in partition.segments}
        there, found = {}, []
        with ExitStack() as opened:
            for files in now.segments:
                if files.base_offset <= max(known):
                    segment = opened.enter_context(LogSegment._of_files(files))
                    status = known.get(files.base_offset)
                    same = there[files.base_offset] = status is not None and segment._is_of(status)
                    if self._is_asked_for(files):
                        found.append((segment, status.st_size if same and status is not None else segment.size))
            self.segments, self._opened = found, opened.pop_all()
        return there

    def _is_asked_for(self, files: SegmentFiles) -> bool:
        return not self._wanted.skips(files.base_offset, files.next_base_offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._opened.close()


def _was_cleaned(base_offset: int, there: dict[int, bool]) -> bool:
    """Whether what was left of a segment may be in the one before, which is another file now.

    Source: Kafka 4.1.0 `Cleaner.cleanSegments`.
    """
    before = max((base for base in there if base < base_offset), default=None)
    return before is not None and not there[before]
