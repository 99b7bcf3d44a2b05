"""Files that their owner changes while they are read: answers of before or of now, and never a signal."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest

from mqindex._native.commit_log import Scanner
from mqindex._native.log_writer import NUMBERS, Frames
from mqindex._native.pieces import constant_piece, pieces_of_offsets
from mqindex.kafka import OffsetIndex, TimeIndex
from tests.support.own_process import run_apart

ENTRIES = 4096


def offset_entries(first: int, step: int) -> bytes:
    return b"".join(struct.pack(">ii", first + step * i, i) for i in range(ENTRIES))


def time_entries(first: int, step: int) -> bytes:
    return b"".join(struct.pack(">qi", first + step * i, i) for i in range(ENTRIES))


@pytest.mark.parametrize(("kind", "entries"), [(OffsetIndex, offset_entries), (TimeIndex, time_entries)])
def test_look_ups_in_an_index_that_was_filled_with_lower_keys(kind, entries, tmp_path: Path) -> None:
    """Kafka truncates an index in place: the layers above the entries were of the old ones, the first was read live."""
    path = tmp_path / f"00000000000000000000.{'index' if kind is OffsetIndex else 'timeindex'}"
    path.write_bytes(entries(1_000_000, 100))
    with kind.open(path) as index:
        for _ in range(ENTRIES // 16):
            assert index.lookup(1_000_000 + 100 * 77)[0] == 1_000_000 + 100 * 77
        for first, step in ((10, 2), (2_000_000_000, 1), (5, 100), (1_000_100, 100)):
            with path.open("r+b") as file:
                file.write(entries(first, step))
            for target in random.Random(first).sample(range(first, first + step * ENTRIES), 500):
                assert index.lookup(target)[0] == target - (target - first) % step
            assert index.lookup(first - 1) == ((0, 0) if kind is OffsetIndex else (-1, 0))
            assert index.lookup(2**31 - 1)[0] == first + step * (ENTRIES - 1)


LOOK_UP_WHILE_IT_CHANGES = """
    import os, sys, threading
    import numpy as np
    from mqindex.kafka import OffsetIndex
    n = 1 << 17
    def entries(first, step):
        rows = np.empty((n, 2), ">i4")
        rows[:, 0], rows[:, 1] = first + step * np.arange(n), np.arange(n)
        return rows.tobytes()
    high, low = entries(1_000_000_000, 1000), entries(10, 2)
    path = sys.argv[1]
    with open(path, "wb") as file:
        file.write(high)
    over = threading.Event()
    def change():
        fd = os.open(path, os.O_RDWR)
        while not over.is_set():
            for data in (low, high):
                for at in range(0, len(data), 1 << 16):
                    os.pwrite(fd, data[at : at + (1 << 16)], at)
    changing = threading.Thread(target=change)
    changing.start()
    rng = np.random.default_rng(1)
    try:
        with OffsetIndex.open(path) as index:
            for round in range(400):
                targets = rng.integers(0, 1_200_000_000, 4096)
                targets[::3] = rng.integers(0, 2 * n, len(targets[::3]))
                index.lookup_many(targets)
                for target in targets[:20].tolist():
                    index.lookup(target)
    finally:
        over.set()
        changing.join()
"""


def test_look_ups_while_the_entries_change(tmp_path: Path) -> None:
    run_apart(LOOK_UP_WHILE_IT_CHANGES, tmp_path / "00000000000000000000.index")


CLOSE_WHILE_IT_APPENDS = """
    import sys, threading
    import numpy as np
    from mqindex.errors import ClosedFileError
    from mqindex.kafka import OffsetIndex, TimeIndex
    n, directory = 1 << 19, sys.argv[1]
    offsets, places = np.arange(n), np.arange(n, dtype=np.int32)
    for round in range(60):
        for kind, name, second in ((OffsetIndex, "index", places), (TimeIndex, "timeindex", offsets)):
            index = kind.create(f"{directory}/{round:020d}.{name}", 0, max_index_size=12 * n + 24)
            append = threading.Thread(target=index.append_many, args=(offsets, second))
            threading.excepthook = lambda args: None
            append.start()
            for _ in range(round * 400):
                pass
            index.close()
            append.join()
            try:
                index.append_many(offsets[:1], second[:1])
                raise SystemExit("took an entry after close")
            except ClosedFileError:
                pass
        import os
        for name in os.listdir(directory):
            os.unlink(f"{directory}/{name}")
"""


def test_closing_while_entries_are_appended(tmp_path: Path) -> None:
    """The kernel wrote to a mapping that was gone."""
    run_apart(CLOSE_WHILE_IT_APPENDS, tmp_path)


NAMES_CHANGE = """
    import threading
    import numpy as np
    from mqindex._native.log_extract import Extractor, QueueTable
    from tests.support.log_writer import LogMessage, frame
    names, numbers = ",".join(["q"] * 900), ",".join(["1"] * 900)
    message = LogMessage(properties=[("INNER_MULTI_DISPATCH", names), ("INNER_MULTI_QUEUE_OFFSET", numbers)])
    log = bytearray()
    for _ in range(200):
        log += frame(message, len(log))
    live = np.frombuffer(log, np.uint8)
    commas = np.flatnonzero((live == ord(",")) & (np.roll(live, 1) == ord("q")))  # those of the names
    over = threading.Event()
    def change():
        while not over.is_set():
            live[commas] = ord("x")
            live[commas] = ord(",")
    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(300):
            table = QueueTable([])
            for _ in Extractor(log, 0, 0, len(log), queues=table):
                pass
            for topic, _ in table.names():
                assert topic == "TopicTest" or set(topic) <= set("q,x"), topic
    finally:
        over.set()
        changing.join()
"""


def test_the_queues_of_a_message_change_while_they_are_counted() -> None:
    """Names were counted in one walk and taken in another: with a comma less, the second went on behind the message."""
    run_apart(NAMES_CHANGE)


FLAGS_CHANGE = """
    import threading
    from mqindex._native.commit_log import Scanner
    from tests.support.log_writer import FIRST_TIME, LogMessage, frame
    log = bytearray(frame(LogMessage(body=bytes(16 << 20)), 0))
    over = threading.Event()
    def change():
        while not over.is_set():
            log[39] = 0x30  # both hosts of 16 bytes
            log[39] = 0
    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(300):
            for frames in Scanner(log, 0, 0, len(log), check_crc=True):
                assert frames["body_pos"].tolist() == [88], frames
                assert frames["store_timestamp"].tolist() == [FIRST_TIME], frames
    finally:
        over.set()
        changing.join()
"""


def test_the_hosts_of_a_message_change_their_width() -> None:
    """The flags were read once for the frame's size and again for its fields: those then began behind the file."""
    run_apart(FLAGS_CHANGE)


@pytest.mark.parametrize("append_crc", [False, True])
@pytest.mark.parametrize(
    ("given", "changed", "written"),
    [
        (b"DELAY\x013\x02", b"DELAY\x01x\x02", b"DELAY\x010\x02"),
        (b"DELAY\x0113", b"DELAY\x01-x", b"DELAY\x0100"),
        (b"DELAY\x013\x02", b"DELAY\x0133", b"DELAY\x013\x02"),
        (b"DELAY\x013\x02a\x01b7890\x02", b"DELAY\x013\x02DELAY\x01?\x02", b"DELAY\x013\x02DELAY\x010\x02"),
        (b"a\x01b\x02DELAY\x0112\x02", b"a\x01b\x02DELAX\x01??\x02", b"a\x01b\x02DELAX\x01??\x02"),
    ],
)
def test_a_delay_that_became_none_after_it_was_measured_does_not_end_the_log(
    given: bytes, changed: bytes, written: bytes, append_crc: bool
) -> None:
    """Another thread may write into an array of properties while its rows are appended."""
    data = np.frombuffer(bytearray(given), np.uint8)
    block = pieces_of_offsets("properties", data, np.array([0, len(given)]), None)
    topic, body, host, none = map(constant_piece, (b"SCHEDULE_TOPIC_XXXX", b"body", bytes(8), None))
    texts = (topic, body, block, none, none, none, host, host)
    numbers = tuple(np.zeros(1, np.int64) for _ in NUMBERS)
    sizes = {"max_body": 1 << 20, "max_frame": 1 << 20}
    frames = Frames(1, texts, numbers, separator=True, append_crc=append_crc, long_topics=False, **sizes)
    data[:] = np.frombuffer(changed, np.uint8)
    out = bytearray(frames.total)
    assert frames.encode(out, 0, 1 << 20) == (len(out), False)
    scan = Scanner(bytes(out), 0, 0, len(out), check_crc=True)
    ((row,),) = list(scan)
    properties = bytes(out[row["properties_pos"] :][: row["properties_len"]])
    assert scan.fault is None and scan.end == len(out) and properties.startswith(written)
