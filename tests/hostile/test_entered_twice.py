"""Objects that serve one thread at a time, asked by two: the second is told so, and nobody is ended by a signal."""

from __future__ import annotations

import pytest

from mqindex._native.kafka_recovery import Recovered
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, messages
from tests.support.own_process import run_apart

BOTH = """
    import threading
    def both(*calls):
        told = []
        def until_the_end(call):
            try:
                while call():
                    pass
            except RuntimeError as error:
                told.append(str(error))
        threads = [threading.Thread(target=until_the_end, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return told
"""

FRAMES = """
    import numpy as np
    from mqindex._native.log_writer import NUMBERS, Frames
    from mqindex._native.pieces import constant_piece, pieces_of_sequence
    n, host = 200_000, bytes(8)
    texts = (
        constant_piece(b"T"), pieces_of_sequence("body", [b"x" * (i % 500) for i in range(n)]), constant_piece(None),
        constant_piece(None), constant_piece(None), constant_piece(None), constant_piece(host), constant_piece(host))
    for _ in range(20):
        frames = Frames(
            n, texts, (np.zeros(1, np.int64),) * len(NUMBERS), separator=True, append_crc=False, long_topics=True,
            max_body=1 << 20, max_frame=1 << 20)
        def encode(out):
            return frames.encode(out, 0, 1 << 60)[0]
        both(*(lambda out=bytearray(1 << 20): encode(out) for _ in range(3)))
        assert frames.encoded <= n, frames.encoded
"""


def test_frames() -> None:
    run_apart(BOTH + FRAMES)


NOT_MEASURED = """
    import numpy as np
    from mqindex._native.log_writer import NUMBERS, Frames, RefusedError
    from mqindex._native.pieces import constant_piece
    host, frames = bytes(8), Frames.__new__(Frames)
    texts = (constant_piece(b""), *[constant_piece(None)] * 5, constant_piece(host), constant_piece(host))
    try:
        frames.__init__(
            1000, texts, (np.zeros(1, np.int64),) * len(NUMBERS), separator=True, append_crc=False, long_topics=True,
            max_body=1 << 20, max_frame=1 << 20)
    except RefusedError:
        pass
    try:
        frames.encode(bytearray(1 << 20), 0, 1 << 60)
    except RuntimeError:
        print("refused")
"""


def test_frames_that_were_refused() -> None:
    assert run_apart(NOT_MEASURED) == "refused\n"


TABLE = """
    from mqindex._native.log_extract import Extractor, QueueTable
    from tests.support.log_writer import LogMessage, frame
    logs = []
    for letter in "abc":
        log = bytearray()
        for i in range(40_000):
            log += frame(LogMessage(topic=f"{letter}{i}"), len(log))
        logs.append(bytes(log))
    for _ in range(5):
        table = QueueTable([])
        walks = [Extractor(log, 0, 0, len(log), queues=table) for log in logs]
        both(
        *(lambda walk=walk: next(walk, None) is not None for walk in walks),
        lambda turns=iter(range(300)): table.names() is not None and next(turns, None) is not None,
    )
"""


def test_a_queue_table() -> None:
    """Two walks filled one table, and its names were read meanwhile."""
    run_apart(BOTH + TABLE)


TAKE = """
    import threading
    import numpy as np
    from mqindex._native.kafka_log import BatchScan
    from mqindex._native.kafka_records import RecordColumns
    from tests.support.kafka_writer import KafkaRecord, batch
    log = batch([KafkaRecord(value=b"v" * 200) for _ in range(20_000)])
    rows = np.concatenate([np.frombuffer(rows, np.uint8) for rows in BatchScan(log)])
    for _ in range(150):
        columns, over = RecordColumns(), threading.Event()
        def take():
            while not over.is_set():
                try:
                    columns.take()
                except RuntimeError:
                    pass
        taking = threading.Thread(target=take)
        taking.start()
        while True:
            try:
                columns.add(log, rows, 0)
                break
            except RuntimeError:
                pass
        over.set()
        taking.join()
"""


def test_columns_are_taken_while_they_are_filled() -> None:
    run_apart(TAKE)


def test_a_recovery_asks_again_what_ended_in_an_error() -> None:
    """It went on with an offset that nobody had told, into the index."""
    log = b"".join(
        messages([KafkaRecord(timestamp=FIRST_TIME + at)] * 3, 10 * at, magic=1, codec="gzip") for at in range(4)
    )
    asked: list[int] = []

    def first_offset(position: int) -> int:
        asked.append(position)
        if len(asked) == 1:
            raise OSError("not now")
        return 7000 + position

    def recovered() -> Recovered:
        return Recovered(log, 0, index_interval_bytes=0, max_index_size=1000, first_offset=first_offset)

    broken = recovered()
    with pytest.raises(OSError, match="not now"):
        broken.run(len(log))
    assert broken.run(0)
    assert not broken.run(len(log))
    assert asked[0] == asked[1]
    whole = recovered()
    assert not whole.run(len(log))
    assert broken.offset_index == whole.offset_index != b""
