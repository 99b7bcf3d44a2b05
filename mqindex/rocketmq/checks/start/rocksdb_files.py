"""The RocksDB databases that a broker opens when it starts: they are not read, so whether each opens is not known.

Only that one does not open is: CURRENT names the MANIFEST that is read first. Source: RocketMQ 5.5.0
`AbstractRocksDBStorage`, `RocksDBConsumeQueueStore.load`, `RocksDBConfigManager.init`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mqindex.files import disk
from mqindex.files.paths import join
from mqindex.files.places.place import require_answer
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.directories.rocksdb import config_databases, manifest_of
from mqindex.rocketmq.kinds import is_rocksdb
from mqindex.rocketmq.pipeline.survey import Survey

_NOT_READ = "a RocksDB database, which mqindex does not read"


class RocksDBFault(NamedTuple):
    """What is wrong or not known of a database. `stops`: whether a broker does not start with it; None: not known."""

    path: str
    reason: str
    stops: bool | None
    finding: Finding | None


def rocksdb_faults(found: Survey) -> list[RocksDBFault]:
    """Of the queues and of topics and groups; first what is known, then what is found."""
    return sorted(_faults(found), key=lambda one: (not one.stops, one.finding is None))


def _faults(found: Survey) -> Iterator[RocksDBFault]:
    queues = found.queues.rocksdb
    if queues is not None and is_rocksdb(queues):
        yield _fault(queues)
    elif queues is not None and found.spans:
        missing = catalogue.ROCKSDB_GONE.finding(queues, expected="the database of the queues", got="none")
        yield RocksDBFault(queues, "it is missing", False, missing)
    yield from map(_fault, config_databases(found.options))


def _fault(home: str) -> RocksDBFault:
    try:
        manifest = manifest_of(home)
        gone = manifest is not None and not disk.exists(manifest) and manifest_of(home) == manifest  # no newer one
    except OSError as error:
        require_answer(error, home)
        return RocksDBFault(home, _NOT_READ, None, None)
    if manifest is None:
        return _without(join(home, "CURRENT"), "a RocksDB database lacks it", None, "names the MANIFEST")
    if gone:
        return _without(manifest, "CURRENT names it, and it is missing", True, "CURRENT names")
    return RocksDBFault(home, _NOT_READ, None, None)


def _without(path: str, reason: str, stops: bool | None, what: str) -> RocksDBFault:
    finding = catalogue.ROCKSDB_INCOMPLETE.finding(path, expected=f"the file that {what}", got="none")
    return RocksDBFault(path, reason, stops, finding)
