"""Whether the user that a broker runs as may write what it opens to write when it starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from mqindex.files.rights import is_shut, rights
from mqindex.kafka import catalogue
from mqindex.kafka.partition.partition_files import PartitionFiles
from mqindex.report import Finding, Obstacle


def shut_files(log_dir: str, partitions: Iterable[PartitionFiles], *, single: bool) -> tuple[Obstacle, Finding] | None:
    """The first file or directory that the owner of the newest segment may not write, and how many there are.

    A broker opens every `.log` and `.txnindex` for writing when it loads them, the indexes at the latest when they are
    used, and makes files in every directory. It runs as the owner of its newest segment, unless that is root.
    Source: Kafka 4.1.0 `FileRecords.open`, `TransactionIndex`, `AbstractIndex.createAndAssignMmap`.
    """
    found = [*(() if single else _looked_at([log_dir])), *_looked_at(_opened(partitions))]
    logs = [status for path, status in found if path.endswith(".log")]
    owner = max(logs, key=lambda status: status.st_mtime_ns, default=None)
    shut = [(path, status) for path, status in found if owner is not None and is_shut(status, owner)]
    if owner is None or not shut:
        return None
    path, status = shut[0]
    wanted, got = f"writable for user {owner.st_uid}", rights(status)
    return (
        Obstacle(path, "the owner of the log may not write it"),
        catalogue.NOT_WRITABLE.finding(path, expected=wanted, got=got, count=len(shut)),
    )


def _opened(partitions: Iterable[PartitionFiles]) -> Iterator[str]:
    for files in partitions:
        yield files.directory
        for segment in files.segments:
            yield from segment.paths


def _looked_at(paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    for path in paths:
        try:
            yield path, os.stat(path)
        except FileNotFoundError:  # deleted meanwhile
            continue
