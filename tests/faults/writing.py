"""Writers: a message store, an index directory, an index file, and the indexes of Kafka."""

from __future__ import annotations

import shutil
import struct
from collections import Counter
from pathlib import Path
from typing import Any

from mqindex.engines import LocalEngine
from mqindex.kafka import AbortedTxn, OffsetIndex, TimeIndex, TransactionIndex
from mqindex.rocketmq import IndexFile, IndexService, MessageStore, NewMessage, optimize, verify
from tests.faults.attempt import Told
from tests.faults.offline import require
from tests.support.opening import require_opens
from tests.support.tree import index_paths

__all__ = ["OPERATIONS"]

QUEUES = 2
TIME = 1_700_000_000_000


# ---- a message store


class Puts:
    """Messages into a store that has some: one by one and in bulk, over the ends of files; flush; close."""

    def __init__(self, name: str, flush_disk_type: str, *, fresh: bool = False) -> None:
        self.name, self.fresh = name, fresh
        self.config = {
            "maxHashSlotNum": 5,
            "maxIndexNum": 32,
            "mappedFileSizeCommitLog": 4096,
            "mappedFileSizeConsumeQueue": 400,
            "flushDiskType": flush_disk_type,
        }
        self.earlier: list[Any] = []

    def prepare(self, place: Path) -> None:
        if not self.fresh:
            told = Told()
            with self._open(place) as store:
                self._put(store, told, range(10))
            self.earlier = told.acknowledged

    def begin(self, place: Path) -> None: ...

    def run(self, place: Path, told: Told) -> None:
        told.acknowledged += self.earlier
        store = self._open(place)
        try:
            for number in range(100, 104):
                with told.trying():
                    self._put(store, told, range(number, number + 1))
            with told.trying():
                self._put(store, told, range(110, 140))
            with told.trying():
                store.flush()
            with told.trying():
                self._put(store, told, range(140, 150))
            with told.trying():
                store.reput()
            with told.trying():
                self._put(store, told, range(150, 151))
        finally:
            store.close()

    def judge(self, place: Path, told: Told) -> None:
        require_opens(place / "store", config=self.config)
        with self._open(place) as store:
            for queue_id in range(QUEUES):
                put = store.put_message(NewMessage("T", b"after", queue_id=queue_id, keys=f"after{queue_id}"))
                taken = {offset for _, queue, offset, _ in told.acknowledged if queue == queue_id}
                require(put.queue_offset not in taken, f"queue offset {put.queue_offset} is given twice")
            self._check(store, told)
        with MessageStore.open(place / "store", config=self.config) as store:
            self._check(store, told)
        report = verify(place / "store", deep=True, engine=LocalEngine(1), config=self.config)
        require(report.ok, f"verify: {[finding for finding in report.findings if finding.severity == 'error'][:3]}")

    def _check(self, store: MessageStore, told: Told) -> None:
        found: dict[tuple[int, int], tuple[str | None, int]] = {}
        for queue_id in range(QUEUES):
            part = store.get_messages("T", queue_id, 0, max_msg_nums=1 << 20).messages
            columns = (part[name].tolist() for name in ("queue_offset", "phy_offset"))
            for key, offset, phy in zip(part["keys"].to_pylist(), *columns, strict=True):
                require((queue_id, offset) not in found, f"queue offset {offset} is there twice")
                found[queue_id, offset] = key, phy
        missing = [n for n, queue, offset, phy in told.acknowledged if found.get((queue, offset)) != (f"k{n}", phy)]
        require(not missing, f"{len(missing)} acknowledged messages cannot be consumed")
        for number, queue, offset, _ in told.acknowledged:
            hits = store.query_message("T", f"k{number}", exact=True).messages
            require([(hit.queue_id, hit.queue_offset) for hit in hits] == [(queue, offset)], f"k{number} is not found")
            require(hits[0].body == _body(number), f"k{number} has another body")

    def _open(self, place: Path) -> MessageStore:
        return MessageStore.open(place / "store", writable=True, config=self.config)

    def _put(self, store: MessageStore, told: Told, numbers: range) -> None:
        messages = [NewMessage("T", _body(n), queue_id=n % QUEUES, keys=f"k{n}", tags="TagA") for n in numbers]
        if len(messages) == 1:
            one = store.put_message(messages[0])
            places = [(one.queue_offset, one.phy_offset)]
        else:
            many = store.put_messages(messages)
            places = list(zip(many.queue_offsets.tolist(), many.phy_offsets.tolist(), strict=True))
        told.acknowledged += [(n, n % QUEUES, *at) for n, at in zip(numbers, places, strict=True)]


def _body(number: int) -> bytes:
    return bytes([number % 251]) * (5, 90, 300)[number % 3]


# ---- index files


class BuildIndex:
    """Entries into a directory of index files, over the ends of files."""

    name = "index-service"

    def prepare(self, place: Path) -> None:
        self._build(place, Told(), range(20))

    def begin(self, place: Path) -> None: ...

    def run(self, place: Path, told: Told) -> None:
        told.acknowledged += range(20)
        self._build(place, told, range(20, 80))

    def judge(self, place: Path, told: Told) -> None:
        self._build(place, told, range(100, 110))
        with IndexService.open(place / "index") as service:
            offsets = [n for file in service for n in file.entries()["phy_offset"].tolist()]
            hits = service.query_offsets("T", [f"k{n}" for n in told.acknowledged]).to_pylist()
        require([*map(sorted, hits)] == [[n] for n in told.acknowledged], "an acknowledged entry is not found once")
        require(max(Counter(offsets).values()) == 1, "an entry is there twice")

    def _build(self, place: Path, told: Told, numbers: range) -> None:
        with IndexService.open(place / "index", hash_slot_num=5, index_num=16, writable=True) as service:
            for first in numbers[::10]:
                part = range(first, first + 10)
                with told.trying():
                    service.build_index("T", [f"k{n}" for n in part], part, [TIME + n for n in part])
                    told.acknowledged += part
            service.flush()


class ExpireIndex:
    """Optimised index files, all but the newest of which end below the log's minimum."""

    name = "index-expire"

    def prepare(self, place: Path) -> None:
        with IndexService.open(place / "index", hash_slot_num=5, index_num=16, writable=True) as service:
            service.build_index("T", [f"k{n}" for n in range(40)], range(40), [TIME + n for n in range(40)])
        optimize(place, place, overwrite=True, engine=LocalEngine(1))
        for backup in place.glob("mqindex-backup-*"):
            shutil.rmtree(backup)
        (place / "mqindex-index" / f"{index_paths(place)[-1].name}.fence").unlink()  # as where it has grown since

    def begin(self, place: Path) -> None: ...

    def run(self, place: Path, told: Told) -> None:
        with IndexService.open(place / "index", writable=True) as service:
            with told.trying():
                service.delete_expired_file(1000)
            self._require_entries(service)

    def judge(self, place: Path, told: Told) -> None:
        closed = [failed.text for failed in told.failed if failed.text.startswith("ClosedFileError")]
        require(not closed, "the service answers no more")
        with IndexService.open(place / "index", writable=True) as service:
            self._require_entries(service)
            service.delete_expired_file(1000)
            self._require_entries(service)
            require(len(service.files) == 1, "an expired file is there after the second run")
        beside = sorted(path.name for path in (place / "mqindex-index").iterdir())
        require(not beside, f"left beside the index: {beside}")

    def _require_entries(self, service: IndexService) -> None:
        """What is there is whole files from one on to the newest, and a look-up finds all of them."""
        there = sum(file.header.index_count - 1 for file in service)
        hits = service.query_offsets("T", [f"k{n}" for n in range(40)]).to_pylist()
        require(hits == [[n] if n >= 40 - there else [] for n in range(40)], "an entry is not found")


class PutKeys:
    """Entries into index files of its own, reserved and sparse."""

    name = "index-file"

    def prepare(self, place: Path) -> None:
        (place / "index").mkdir()

    def begin(self, place: Path) -> None: ...

    def run(self, place: Path, told: Told) -> None:
        for sparse in (False, True):
            path = place / "index" / f"2023111422132{int(sparse):04d}"
            with told.trying(), IndexFile.create(path, hash_slot_num=5, index_num=200, sparse=sparse) as file:
                told.acknowledged.append((path.name, range(0)))
                for first in (0, 50):
                    part = range(first, first + 50)
                    file.put_keys([f"k{n}" for n in part], part, [TIME + n for n in part])
                    told.acknowledged.append((path.name, part))
                file.flush()
            with told.trying(), IndexFile.open(path, hash_slot_num=5, index_num=200, writable=True) as file:
                file.put_key("k100", 100, TIME + 100)
                told.acknowledged.append((path.name, range(100, 101)))
                file.flush()

    def judge(self, place: Path, told: Told) -> None:
        names = {name for name, _ in told.acknowledged}
        require(
            {path.name for path in index_paths(place)} == names, "a file is gone, or one whose creation failed is there"
        )
        for path in index_paths(place):
            with IndexFile.open(path, hash_slot_num=5, index_num=200) as file:
                there = file.entries()["phy_offset"].tolist()
            known = {n for name, numbers in told.acknowledged if name == path.name for n in numbers}
            require(known <= {*there}, f"{path.name}: acknowledged entries are missing")
            require(there == sorted({*there}), f"{path.name}: an entry is there twice")


# ---- Kafka's indexes

_ENTRIES = {
    "index": lambda n: struct.pack(">ii", 5 + n, 100 * n + 100),
    "timeindex": lambda n: struct.pack(">qi", TIME + n, 5 + n),
    "txnindex": lambda n: struct.pack(">hqqqq", 0, 7, 100 + 10 * n, 105 + 10 * n, 106 + 10 * n),
}


class Appends:
    """Entries into the three indexes of a segment: create, append, flush, grow, trim, close, open, append."""

    name = "kafka-indexes"

    def prepare(self, place: Path) -> None:
        (place / "topic-0").mkdir()

    def begin(self, place: Path) -> None: ...

    def run(self, place: Path, told: Told) -> None:
        base = place / "topic-0" / f"{100:020d}"
        with told.trying():
            with OffsetIndex.create(base.with_suffix(".index"), 100, max_index_size=400) as index:
                self._append(index, told, range(6))
            with OffsetIndex.open(base.with_suffix(".index"), writable=True) as index:
                index.resize(400)
                self._append(index, told, range(6, 9))
        with told.trying():
            with TimeIndex.create(base.with_suffix(".timeindex"), 100, max_index_size=480) as times:
                self._append(times, told, range(6))
            with TimeIndex.open(base.with_suffix(".timeindex"), writable=True) as times:
                times.resize(480)
                self._append(times, told, range(6, 9))
        with TransactionIndex.open(base.with_suffix(".txnindex"), writable=True) as transactions:
            for n in range(4):
                with told.trying():
                    transactions.append(AbortedTxn(7, 100 + 10 * n, 105 + 10 * n, 106 + 10 * n))
                    told.acknowledged.append(("txnindex", n))
                with told.trying():
                    transactions.flush()

    def _append(self, index: OffsetIndex | TimeIndex, told: Told, numbers: range) -> None:
        for n in numbers:
            if isinstance(index, OffsetIndex):
                index.append(105 + n, 100 * n + 100)
                told.acknowledged.append(("index", n))
            else:
                index.maybe_append(TIME + n, 105 + n)
                told.acknowledged.append(("timeindex", n))
        with told.trying():
            index.flush()
        with told.trying():
            index.trim_to_valid_size()

    def judge(self, place: Path, told: Told) -> None:
        for kind, entry in _ENTRIES.items():
            path = place / "topic-0" / f"{100:020d}.{kind}"
            right = b"".join(entry(n) for of, n in told.acknowledged if of == kind)
            there = path.read_bytes() if path.exists() else b""
            require(there.startswith(right), f"{kind}: acknowledged entries are missing")
            require(not there[len(right) :].strip(b"\0"), f"{kind}: what was not acknowledged is there")
            require(told.failed or there == right, f"{kind}: no error, and it is not exact")


OPERATIONS = [
    Puts("store-sync", "SYNC_FLUSH"),
    Puts("store-async", "ASYNC_FLUSH"),
    Puts("store-new", "SYNC_FLUSH", fresh=True),
    BuildIndex(),
    ExpireIndex(),
    PutKeys(),
    Appends(),
]
