"""The disk of a store fills while it is written, and has room again later: what was acknowledged is all there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.test_full_disk import REPOSITORY, mountable

INSIDE = """
import contextlib, pathlib, shutil, sys
from mqindex.engines import LocalEngine
from mqindex.errors import MQIndexError
from mqindex.rocketmq import MessageStore, NewMessage, verify
from tests.crash.test_failing_dispatch import CONFIG, QUEUES, put, require_nothing_lost

disk = pathlib.Path(sys.argv[1])
for left in range(0, 90_000, 4096):
    root, ballast, acknowledged, failed = disk / "store", disk / "ballast", {}, 0
    root.mkdir()
    store = MessageStore.open(root, writable=True, config=CONFIG)
    for number in range(40):
        put(store, number, acknowledged)
    with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    with open(ballast, "r+b") as file:
        file.truncate(max(ballast.stat().st_size - left, 0))
    for call in (store.flush, store.close):
        try:
            call()
        except (OSError, MQIndexError):
            failed += 1
    ballast.unlink()
    assert not failed or (root / "abort").exists()
    require_nothing_lost(root, acknowledged)
    shutil.rmtree(root)
    print("failed" if failed else "fits")
"""


@pytest.mark.skipif(not mountable(), reason="no file system may be mounted here; every failing call is tested anyway")
def test_the_disk_fills_while_messages_are_dispatched(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    mount = f'mount -t tmpfs -o size=600k none "{tmp_path}/disk" && exec "$@"'
    inside = [sys.executable, "-c", INSIDE, str(tmp_path / "disk")]
    command = ["unshare", "-Urm", "sh", "-c", mount, "sh", *inside]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert done.returncode == 0, done.stderr
    assert {"failed", "fits"} == set(done.stdout.split())
