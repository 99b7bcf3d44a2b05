"""Callers who wait for the disk at the same time share a sync: counted in a process of its own, before libc."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.preload import available, environment

REPOSITORY = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.skipif(not available(), reason="libraries are loaded before libc on Linux only")

SLOW = """
#include <time.h>
int fdatasync(int fd) {
    struct timespec disk = {0, 2000000};
    return nanosleep(&disk, 0) * fd;
}
"""

COUNTING = """
import sys, threading
from pathlib import Path
from mqindex.rocketmq import CommitLog, NewMessage
from tests.faults.preload import faulty

def append(log, messages):
    for number in range(messages):
        log.append_message(NewMessage("T", b"body"), queue_offset=number)

def writes_and_syncs(home, callers, messages):
    with CommitLog.open(home / "commitlog", writable=True, flush="sync", mapped_file_size=1 << 20) as log:
        append(log, 1)  # the file, its name, and zeros ahead
        threads = [threading.Thread(target=append, args=(log, messages)) for _ in range(callers)]
        with faulty(home) as counting:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert log.flushed_phy_offset == log.max_phy_offset
    return [name for name in counting.counted.calls if name in ("write", "fsync")]

home = Path(sys.argv[1])
alone = writes_and_syncs(home / "1", 1, 20)
assert alone == ["write", "fsync"] * 20, alone
many = writes_and_syncs(home / "64", 64, 20)
assert many[-1] == "fsync"
assert many.count("write") == 64 * 20
assert many.count("fsync") <= 64 * 20 / 2, many.count("fsync")  # 5 to 20 messages share one, by how busy the machine is
"""


def test_a_lone_caller_has_a_sync_for_each_message_and_64_share_theirs(tmp_path: Path) -> None:
    """However fast the disk below the tests is, here each sync takes two milliseconds."""
    (tmp_path / "slow.c").write_text(SLOW)
    slow, compiler = tmp_path / "slow.so", shlex.split(os.environ.get("CC") or "cc")
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", str(slow), str(tmp_path / "slow.c")], check=True)
    given = environment(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", COUNTING, str(tmp_path)],
        env={**given, "LD_PRELOAD": f"{given['LD_PRELOAD']}:{slow}"},  # what counts calls, then this, then libc
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
