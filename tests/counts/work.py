"""Work that valgrind counts: each kernel once, on a fixed input, for `tests/counts/counting.py`."""

from __future__ import annotations

import os
import tempfile

import numpy as np

from mqindex._native.commit_log import Scanner
from mqindex._native.consume_queue import UnitTaker, decode_units
from mqindex._native.index_file import IndexCore
from mqindex._native.index_writer import IndexWriter
from mqindex._native.kafka_index import Entries
from mqindex._native.log_extract import Extractor
from mqindex._native.log_message import MessageMaker
from mqindex._native.queue_view import QueueView, QueueViews
from mqindex._native.single_calls import SingleCalls
from mqindex.columns.keys import key_batch
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.messages.message import Message
from tests.support.log_writer import LogMessage, frame

__all__ = ["ITEMS"]

MANY, ONES, FRAMES, SLOTS = 6_000, 500, 500, 15_013
T0 = 1_700_000_000_000

ITEMS = {  # the C function or the method of a kernel that is counted -> how many items the work below gives it
    "mqi_hash_fixed_bytes": MANY,
    "mqi_index_put_columns": MANY,
    "mqi_index_put_run": MANY,
    "mqi_index_select_many": MANY,
    "mqi_index_check": MANY,
    "mqi_index_fits": MANY,
    "SingleCalls.put_key": ONES,
    "SingleCalls.select_phy_offset": 2 * ONES,
    "IndexWriter.put_key": ONES,
    "mqi_log_scan_frames": FRAMES + ONES,
    "MessageMaker.message_at": ONES,
    "mqi_log_extract_step": FRAMES,
    "mqi_units_decode": FRAMES,
    "mqi_units_take": FRAMES + 32 * ONES,
    "QueueViews.answer": ONES,
    "portable_floors": MANY,
    "mqi_kafka_settle": MANY,
    "mqi_kafka_take_offsets": MANY,
}


def core() -> IndexCore:
    return IndexCore(bytearray(40 + 4 * SLOTS + 20 * (MANY + 1)), SLOTS, MANY + 1, True)


def index_file() -> None:
    """Put, found, checked."""
    keys = [f"TopicTest#order-{number * 7919 % 10**8:08d}" for number in range(MANY)]
    hashes = key_batch(np.array([key.encode() for key in keys])).hashes()
    phy_offsets, timestamps = np.arange(MANY) * 200 + 10, T0 + np.arange(MANY) * 7
    file, run = core(), np.empty(MANY, [("key_hash", "i4"), ("phy_offset", "i8"), ("store_timestamp", "i8")])
    run["key_hash"], run["phy_offset"], run["store_timestamp"] = hashes, phy_offsets, timestamps
    core().put_run(run)
    file.put_keys(key_batch(keys), phy_offsets, timestamps)
    file.select_hashes(hashes, 64, 0, 1 << 62)
    if file.check() or not file.fits():
        raise SystemExit("the index file contradicts itself")


def single_calls() -> None:
    """The same, one key at a time; half of the look-ups find nothing."""
    keys = [f"TopicTest#order-{number * 7919 % 10**8:08d}" for number in range(ONES)]
    calls = SingleCalls()
    calls._bind_core(core(), False, False)
    for key in keys:
        calls.put_key(key, 123_456_789_012, T0)
    calls.select_phy_offset("so that NumPy is known")
    for key in keys[1:]:
        calls.select_phy_offset(key)
        calls.select_phy_offset("TopicTest#none")
    with IndexWriter(core(), lambda n: None) as writer:
        for key in keys:
            writer.put_key(key, 123_456_789_012, T0)


def log() -> None:
    """Frames scanned, their entries extracted; units of a queue."""
    message, data = LogMessage(keys="order-1 order-2", tags="TagA", uniq_key="C0A8010A1F902B19", body=b"b" * 100), b""
    one = frame(message, 0)
    for at in range(0, FRAMES * len(one), len(one)):
        data += one[:28] + at.to_bytes(8, "big") + one[36:]  # at 28 the frame's own phy_offset
    for _ in Scanner(data, 0, 0, len(data)):
        pass
    for _ in Extractor(data, 0, 0, len(data)):
        pass
    maker = MessageMaker(Message)
    for at in range(0, ONES * len(one), len(one)):
        maker.message_at(data, 0, at)
    size = len(data) // FRAMES
    units = np.zeros(FRAMES, [("phy_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
    units["phy_offset"], units["size"], units["tags_code"] = np.arange(FRAMES) * size, size, 2598919
    decode_units(units.tobytes(), 0, FRAMES)
    UnitTaker(np.array([2598919], np.int32), np.array([[0], [len(data)]]), FRAMES).take(units.tobytes(), 0, FRAMES, 0)


def places() -> None:
    """Pulls of 32 messages from a queue that is remembered, of which every unit passes."""
    units = np.zeros(ONES + 32, [("phy_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
    units["phy_offset"], units["size"][:-1], units["tags_code"] = np.arange(ONES + 32) * 100, 100, 2598919
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "0" * 20)
        units.tofile(path)
        with MappedFile.open(path) as file:
            bounds, parts = (0, len(units) - 1), np.array([[0], [100 * len(units)]])
            view = QueueView(file.map, 0, len(units), file.map, 0, *bounds, parts, os.fsencode(path), 1.0)
            views, log = QueueViews(tuple, "FOUND", lambda columns, rows: columns), object()
            views.remember(log, ("T", 0), view, "TagA", np.array([2598919], np.int32))
            for at in range(ONES):
                if views.answer(log, "T", 0, at, 32, "TagA", ["queue_offset", "phy_offset", "size"]) is None:
                    raise SystemExit("a view gave no answer")


def kafka_index() -> None:
    """Floors of many offsets."""
    entries = np.zeros(MANY, [("offset", ">i4"), ("position", ">i4")])
    entries["offset"], entries["position"] = np.arange(MANY) * 10 + 1, np.arange(MANY) * 4096
    index = Entries(entries.tobytes(), False, 0, tuple, False, "index")
    index.lookup_many(np.arange(MANY) * 7919 % (10 * MANY), kernel="portable")


if __name__ == "__main__":
    index_file()
    single_calls()
    log()
    places()
    kafka_index()
