"""Files that another process cuts while they are read or written: the right answer or `TruncatedFileError`, no SIGBUS.

Each call runs in a child of its own, again and again, while this process cuts the file under it.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import TruncatedFileError
from mqindex.kafka import LogSegment, OffsetIndex, PartitionLog, TimeIndex
from mqindex.kafka.index.index_entries import read_entries
from mqindex.kafka.layout import IndexKind
from mqindex.rocketmq import CommitLog, ConsumeQueue, IndexFile, IndexService, MessageStore, NewMessage
from mqindex.rocketmq import rebuild as rebuild_store
from mqindex.rocketmq import verify as verify_store
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

PAGE = mmap.PAGESIZE
SLOTS, ENTRIES = 5000, 20_000
LOG_FILE = 1 << 18
MESSAGES = 1500
CONFIG = {
    "mappedFileSizeCommitLog": LOG_FILE,
    "mappedFileSizeConsumeQueue": 40_000,
    "maxHashSlotNum": SLOTS,
    "maxIndexNum": ENTRIES,
}
RIGHT, REFUSED, WRONG = range(3)
Call = Callable[[Path, ExitStack], Callable[[], Any]]


def plain(answer: Any) -> Any:
    """An answer as what `==` compares as a whole."""
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if is_dataclass(answer) and not isinstance(answer, type):
        return [plain(getattr(answer, one.name)) for one in fields(answer)]
    if isinstance(answer, Mapping):
        return {name: plain(column) for name, column in answer.items()}
    if hasattr(answer, "to_pylist"):
        return answer.to_pylist()
    if isinstance(answer, tuple | list):
        return [plain(one) for one in answer]
    return answer


def ends(call: Call, root: Path, path: Path, sizes: list[int], *, alive: bool = False) -> int:
    """How the last call of a child ended under which the file was cut, to each of the sizes in turn.

    alive : what is asked follows its file; the last answer is to be that of one that is opened afterwards.
    """
    ready, begun = os.pipe()
    done, cut = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os._exit(_run(call, root, begun, done, alive))
    try:
        os.close(begun)
        assert os.read(ready, 1) == b"r", "the call failed before anything was cut"
        for size in sizes:
            time.sleep(0.002)
            os.truncate(path, size)
        os.write(cut, b"c")
        _, status = os.waitpid(child, 0)
    finally:
        for fd in (ready, done, cut):
            os.close(fd)
    assert not os.WIFSIGNALED(status), signal.Signals(os.WTERMSIG(status)).name
    return os.waitstatus_to_exitcode(status)


def _run(call: Call, root: Path, begun: int, done: int, alive: bool) -> int:
    os.set_blocking(done, False)
    try:
        with ExitStack() as opened:
            ask = call(root, opened)
            expected = plain(ask())
            os.write(begun, b"r")
            last = False
            while True:
                if last and alive:
                    expected = plain(call(root, opened)())
                if plain(ask()) != expected and (last or not alive):
                    return WRONG
                if last:
                    return RIGHT
                with suppress(BlockingIOError):
                    last = os.read(done, 1) != b""
    except TruncatedFileError:
        return REFUSED
    except BaseException:
        import traceback

        traceback.print_exc()
        return WRONG


# ---- RocketMQ


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("original") / "store"
    with MessageStore.open(root, writable=True, config=CONFIG, broker_version="4.9.3") as store:
        for n in range(MESSAGES):
            store.put_message(
                NewMessage("T", bytes([65 + n % 26]) * 300, tags="TagA", keys=f"k{n} all", store_timestamp=10**12 + n)
            )
        store.flush()
    return root


@pytest.fixture
def store(original: Path, tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(original, tmp_path / "store"))


def index_path(root: Path) -> Path:
    (path,) = (root / "index").iterdir()
    return path


def index_file(root: Path, opened: ExitStack) -> IndexFile:
    return opened.enter_context(IndexFile.open(index_path(root), hash_slot_num=SLOTS, index_num=ENTRIES))


def service(root: Path, opened: ExitStack) -> IndexService:
    return opened.enter_context(IndexService.open(root / "index", hash_slot_num=SLOTS, index_num=ENTRIES))


def message_store(root: Path, opened: ExitStack) -> MessageStore:
    return opened.enter_context(MessageStore.open(root, config=CONFIG, broker_version="4.9.3"))


def commit_log(root: Path, opened: ExitStack) -> CommitLog:
    return opened.enter_context(CommitLog.open(root / "commitlog", mapped_file_size=LOG_FILE))


def queue(root: Path, opened: ExitStack) -> ConsumeQueue:
    return opened.enter_context(ConsumeQueue.open(root / "consumequeue" / "T" / "0", file_size=40_000))


def on(open_it: Callable[[Path, ExitStack], Any], ask: Callable[[Any], Any]) -> Call:
    def call(root: Path, opened: ExitStack) -> Callable[[], Any]:
        one = open_it(root, opened)
        return lambda: ask(one)

    return call


KEYS = [f"T#k{n}" for n in range(0, MESSAGES, 7)]
INDEX_CALLS: dict[str, Call] = {
    "select_phy_offset": on(index_file, lambda index: index.select_phy_offset("T#k1400")),
    "select_phy_offset of many": on(index_file, lambda index: index.select_phy_offset("T#all", max_num=2000)),
    "select_phy_offsets": on(index_file, lambda index: index.select_phy_offsets(KEYS)),
    "header": on(index_file, lambda index: index.header),
    "entries": on(index_file, lambda index: index.entries()),
    "slots": on(index_file, lambda index: index.slots()),
    "check": on(index_file, lambda index: index._check()),
    "is_write_full": on(index_file, lambda index: index.is_write_full()),
    "query_offset": on(service, lambda index: index.query_offset("T", "k1400")),
    "query_offsets": on(service, lambda index: index.query_offsets("T", [key[2:] for key in KEYS])),
    "query_message": on(message_store, lambda store: store.query_message("T", "k1400")),
}
LOG_CALLS: dict[str, Call] = {
    "scan": on(commit_log, lambda log: [batch["phy_offset"].tolist() for batch in log.scan()]),
    "scan of bodies": on(
        commit_log, lambda log: [batch["body"].to_pylist() for batch in log.scan(columns=["body", "born_host"])]
    ),
    "get_message": on(commit_log, lambda log: log.get_message(0)),
    "consumer's get_message": on(message_store, lambda store: store.get_message("T", 0, 5, max_msg_nums=3).messages),
    "get_messages": on(message_store, lambda store: store.get_messages("T", 0, 5, max_msg_nums=3).messages),
    "query_message": on(message_store, lambda store: store.query_message("T", "k3").messages),
}
QUEUE_CALLS: dict[str, Call] = {
    "units": on(queue, lambda units: units.units()),
    "select": on(queue, lambda units: units.select(["TagA"])),
    "get_message": on(message_store, lambda store: store.get_message("T", 0, 1200, max_msg_nums=3).messages),
}
INDEX_CUTS = [[64 * PAGE, 8 * PAGE, 2 * PAGE], [40, 0]]


@pytest.mark.parametrize("cuts", INDEX_CUTS, ids=str)
@pytest.mark.parametrize("name", INDEX_CALLS)
def test_an_index_file_that_is_cut(name: str, cuts: list[int], store: Path) -> None:
    end = ends(INDEX_CALLS[name], store, index_path(store), cuts)
    assert end == REFUSED or (end == RIGHT and cuts[-1] >= PAGE and name in ("header", "is_write_full"))


@pytest.mark.parametrize("cuts", [[0], [8 * PAGE, 2 * PAGE + 1000]], ids=str)
@pytest.mark.parametrize("name", LOG_CALLS)
def test_a_log_that_is_cut(name: str, cuts: list[int], store: Path) -> None:
    assert ends(LOG_CALLS[name], store, store / "commitlog" / f"{0:020d}", cuts) in (REFUSED, RIGHT)


@pytest.mark.parametrize("cuts", [[0], [8 * PAGE, PAGE + 10]], ids=str)
@pytest.mark.parametrize("name", QUEUE_CALLS)
def test_a_queue_that_is_cut(name: str, cuts: list[int], store: Path) -> None:
    path = store / "consumequeue" / "T" / "0" / f"{0:020d}"
    assert ends(QUEUE_CALLS[name], store, path, cuts, alive=True) in (REFUSED, RIGHT)


@pytest.mark.parametrize("cut", [0, 5 * PAGE + 100, 3 * LOG_FILE // 4])
def test_a_verify_and_a_rebuild_of_a_log_that_is_cut_end(cut: int, store: Path) -> None:
    """What they say of such a log is another question: it is damaged now."""
    path, number = store / "commitlog" / f"{LOG_FILE:020d}", iter(range(1000))

    def verified() -> bool:
        verify_store(store, deep=True, config=CONFIG, broker_version="4.9.3", engine=LocalEngine(2))
        return True

    def rebuilt() -> bool:
        out = store.parent / f"out{next(number)}"
        rebuild_store(store, out, config=CONFIG, broker_version="4.9.3", engine=LocalEngine(2))
        return True

    for work in (verified, rebuilt):
        data = path.read_bytes()
        ends(lambda root, opened, work=work: work, store, path, [cut])  # type: ignore[misc]
        path.write_bytes(data)


# ---- Kafka


LIVE = 10_485_760


@pytest.fixture
def partition(tmp_path: Path) -> PartitionWriter:
    writer = PartitionWriter(tmp_path / "t-0", index_interval=0)
    for n in range(1500):
        writer.append([KafkaRecord(b"v" * 100, b"k", FIRST_TIME + n)])
    writer.close()
    return writer


def live(kind: Any, name: str, ask: Callable[[Any], Any]) -> Call:
    """An index of a segment that a broker writes to: as long as it may become."""

    def call(root: Path, opened: ExitStack) -> Callable[[], Any]:
        index = opened.enter_context(kind.open(root / f"{0:020d}.{name}"))
        return lambda: ask(index)

    return call


TARGETS = np.random.default_rng(1).integers(0, 1500, 5000)
TRIMMED: dict[str, tuple[str, Call]] = {
    "lookup": ("index", live(OffsetIndex, "index", lambda index: index.lookup(700))),
    "lookup_many": ("index", live(OffsetIndex, "index", lambda index: index.lookup_many(TARGETS))),
    "entry": ("index", live(OffsetIndex, "index", lambda index: index.entry(700))),
    "last entry": ("index", live(OffsetIndex, "index", lambda index: index.entry(len(index) - 1))),
    "last_offset": ("index", live(OffsetIndex, "index", lambda index: index.last_offset)),
    "sanity_check": ("index", live(OffsetIndex, "index", lambda index: len(index.entries()))),
    "entries": ("index", live(OffsetIndex, "index", lambda index: index.entries(0, 1000))),
    "time lookup": ("timeindex", live(TimeIndex, "timeindex", lambda index: index.lookup(FIRST_TIME + 700))),
    "time lookup_many": ("timeindex", live(TimeIndex, "timeindex", lambda i: i.lookup_many(TARGETS + FIRST_TIME))),
    "last_entry": ("timeindex", live(TimeIndex, "timeindex", lambda index: index.last_entry)),
}


@pytest.mark.parametrize("name", TRIMMED)
def test_an_index_that_its_broker_trims(name: str, partition: PartitionWriter) -> None:
    kind, call = TRIMMED[name]
    used = partition.path(kind).stat().st_size
    partition.preallocate()
    assert ends(call, partition.directory, partition.path(kind), [used]) in (RIGHT, REFUSED)


@pytest.mark.parametrize("name", TRIMMED)
def test_an_index_that_is_emptied(name: str, partition: PartitionWriter) -> None:
    kind, call = TRIMMED[name]
    assert ends(call, partition.directory, partition.path(kind), [PAGE, 0]) == REFUSED


def segment(root: Path, opened: ExitStack) -> LogSegment:
    return opened.enter_context(LogSegment.open(root / f"{0:020d}.log"))


def partition_log(root: Path, opened: ExitStack) -> PartitionLog:
    return opened.enter_context(PartitionLog.open(root))


SEGMENT_CALLS: dict[str, Call] = {
    "translate_offset": on(segment, lambda log: log.translate_offset(700)),
    "read": on(segment, lambda log: log.read(700, max_bytes=2000)),
    "batches": on(segment, lambda log: log.batches()),
    "records": on(segment, lambda log: [batch["offset"].tolist() for batch in log.records()]),
    "recover": on(segment, lambda log: log.recover().offset_index),
    "find_offset_by_timestamp": on(segment, lambda log: log.find_offset_by_timestamp(FIRST_TIME + 700)),
    "next_offset": on(segment, lambda log: log.next_offset),
    "largest_timestamp": on(segment, lambda log: log.max_timestamp_so_far),
    "of a partition, translate_offset": on(partition_log, lambda log: log.translate_offset(700)),
    "of a partition, read": on(partition_log, lambda log: log.read(700)["offset"].tolist()),
    "of a partition, offset_for_timestamp": on(partition_log, lambda log: log.offset_for_timestamp(FIRST_TIME + 700)),
    "of a partition, offsets_for_timestamps": on(
        partition_log, lambda log: log.offsets_for_timestamps(np.sort(TARGETS) + FIRST_TIME)
    ),
}


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("name", SEGMENT_CALLS)
def test_a_segment_whose_index_its_broker_trims_gives_the_same_answers(
    name: str, kind: str, partition: PartitionWriter
) -> None:
    used = partition.path(kind).stat().st_size
    partition.preallocate()
    alive = name == "largest_timestamp"  # the last entry is another one then
    assert ends(SEGMENT_CALLS[name], partition.directory, partition.path(kind), [used], alive=alive) == RIGHT


@pytest.mark.parametrize("cuts", [[0], [8 * PAGE, PAGE + 10]], ids=str)
@pytest.mark.parametrize("name", SEGMENT_CALLS)
def test_a_segment_whose_log_is_cut(name: str, cuts: list[int], partition: PartitionWriter) -> None:
    assert ends(SEGMENT_CALLS[name], partition.directory, partition.path(), cuts) in (RIGHT, REFUSED)


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("name", [name for name in SEGMENT_CALLS if name.startswith("of a partition")])
def test_a_partition_that_rolls_gives_the_same_answers(name: str, kind: str, partition: PartitionWriter) -> None:
    """The next segment is there, and the indexes of the one before are not trimmed yet."""
    path, used = partition.path(kind), partition.path(kind).stat().st_size
    partition.preallocate()
    partition.roll()
    partition.append([KafkaRecord(b"v", b"k", FIRST_TIME + 1500)])
    assert ends(SEGMENT_CALLS[name], partition.directory, path, [used]) == RIGHT


def test_entries_of_an_index_that_its_broker_trims(partition: PartitionWriter) -> None:
    used = partition.path("index").stat().st_size
    partition.preallocate()

    def call(root: Path, opened: ExitStack) -> Callable[[], Any]:
        return lambda: read_entries(str(partition.path("index")), IndexKind.OFFSET, 1500).first

    assert ends(call, partition.directory, partition.path("index"), [used]) == RIGHT
