"""A call of the system that a signal interrupts, or that takes less than all, is made again: nobody notices.

Signals seldom meet a disk's calls, so here a library that is loaded before libc plays the signal.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.preload import available, environment

REPOSITORY = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.skipif(not available(), reason="libraries are loaded before libc on Linux only")

EACH_CALL = """
import errno, sys
from pathlib import Path
from tests.faults.preload import faulty

home = Path(sys.argv[1])

def each(names, work):  # with no call interrupted, then with each of those names, one after the other
    with faulty(home) as counting:
        expected = work()
    calls = [number for number, name in enumerate(counting.counted.calls, 1) if name in names]
    assert calls, counting.counted.calls
    for failure in ("EINTR", "short"):
        for number in calls:
            with faulty(home, number, failure) as fault:
                assert work() == expected, (failure, number)
            assert fault.counted.struck or failure == "short", number
    return calls
"""

LOG = """
from itertools import count
from mqindex.rocketmq import CommitLog, NewMessage
names = count()

def append():
    directory = home / str(next(names)) / "commitlog"
    at = {"store_timestamp": 1, "born_timestamp": 1}
    with CommitLog.open(directory, writable=True, flush="sync", mapped_file_size=1 << 16) as log:
        log.append_message(NewMessage("T", b"one", **at), queue_offset=0)
        log.append_messages([NewMessage("T", b"%d" % n, **at) for n in range(1000)], queue_offset=range(1000))
        assert log.flushed_phy_offset == log.max_phy_offset
    return [path.read_bytes() for path in sorted(directory.iterdir())]

each(("write", "fsync"), append)
"""

RECOVERY = """
from mqindex.kafka import LogSegment
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

writer = PartitionWriter(home / "t-0")
for n in range(30):
    writer.append([KafkaRecord(b"v" * 50_000, b"k", FIRST_TIME + n)])
writer.close()

def recover():
    with LogSegment.open(writer.path()) as segment:
        return segment.recover(check_crc=False).offset_index

for number in each(("read",), recover):
    with faulty(home, number, "EIO"):
        try:
            recover()
        except OSError as error:
            assert (error.errno, error.filename) == (errno.EIO, str(writer.path())), error
        else:
            raise AssertionError(number)
"""


@pytest.mark.parametrize("work", [LOG, RECOVERY], ids=["an append with its sync", "a recovery that reads headers"])
def test_interrupted_calls_are_made_again(work: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", EACH_CALL + work, str(tmp_path / "home")], cwd=REPOSITORY, env=environment(tmp_path),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
