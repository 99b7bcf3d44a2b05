"""A disk that is really full: a file system of one MiB, where this process may mount one in a namespace of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.small_store import make_small_store
from tests.support.tree import contents, index_paths

REPOSITORY = Path(__file__).resolve().parent.parent.parent
INSIDE = """
import errno, os, pathlib, shutil, sys
disk, store = map(pathlib.Path, sys.argv[1:])
import numpy as np
from mqindex._native.index_file import IndexCore
from mqindex.columns.keys import key_batch
from mqindex.engines import LocalEngine
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.kafka import OffsetIndex, TimeIndex
from mqindex.rocketmq import IndexFile, IndexService, rebuild, repair
from tests.support.tree import contents

def full(call):
    before = contents(disk)
    try:
        call()
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
    else:
        raise AssertionError("it fits")
    assert contents(disk) == before, contents(disk)

def put_sparse():
    with IndexFile.create(disk / "sparse", hash_slot_num=100_000, index_num=300_000, sparse=True) as index:
        try:
            index.put_keys([f"k{i}" for i in range(200_000)], range(200_000), range(200_000))
        finally:
            os.unlink(disk / "sparse")

def fill_holes():
    # no opening for writing reserved them: a fault in a mapping
    with MappedFile.create(disk / "holes", 40 + 4 * 1000 + 20 * 200_000, sparse=True) as file:
        try:
            core = IndexCore(file.map, 1000, 200_000, True)
            numbers = np.arange(150_000)
            try:
                core.put_keys(key_batch([f"k{i}" for i in numbers]), numbers, numbers)
            finally:
                core.close()
        finally:
            os.unlink(disk / "holes")

one, large = LocalEngine(1), {"hash_slot_num": 1000, "index_num": 200_000, "broker_version": "4.9.3"}
full(lambda: IndexFile.create(disk / "index", hash_slot_num=1000, index_num=200_000))
full(put_sparse)
full(fill_holes)
names = {OffsetIndex: "00000000000000000000.index", TimeIndex: "00000000000000000000.timeindex"}
for kind in (OffsetIndex, TimeIndex, IndexFile):  # as brokers make them: no page of it has a place on the disk yet
    sparse = disk / names.get(kind, "20261122000000000")
    with open(sparse, "wb") as file:
        file.truncate(40 + 4 * 1000 + 20 * 200_000 if kind is IndexFile else 3 << 20)
    given = {"hash_slot_num": 1000, "index_num": 200_000} if kind is IndexFile else {}
    try:
        full(lambda: kind.open(sparse, writable=True, **given))
        kind.open(sparse, writable=True, **given)
    except OSError as error:
        assert error.filename == str(sparse), error
    sparse.unlink()
ballast = open(disk / "ballast", "wb", buffering=0)
while True:
    try:
        ballast.write(bytes(4096))
    except OSError:
        break
ballast.close()
full(lambda: IndexFile.create(disk / "index", hash_slot_num=10, index_num=100, sparse=True))
(disk / "ballast").unlink()
full(lambda: rebuild(store, disk / "out", engine=one, **large))
shutil.copytree(store, disk / "store")
shutil.rmtree(disk / "store" / "index")
full(lambda: repair(disk / "store", engine=one, **large))
(disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - 40_000))
small = {"hash_slot_num": 5, "index_num": 16, "broker_version": "4.9.3"}
full(lambda: repair(disk / "store", engine=one, **{**small, "index_num": 4000}))
print("done")
"""


def mountable(script: str = "mount -t tmpfs -o size=1m none /tmp") -> bool:
    """Whether the system lets anybody mount what `script` mounts, in a namespace of its own: not every kernel does."""
    try:
        command = ["unshare", "-Urm", "sh", "-c", script]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(
    not mountable(), reason="no file system may be mounted here; limits on file sizes are tested anyway"
)
def test_full_disk_is_one_clear_error_and_nothing_is_left(tmp_path: Path) -> None:
    store = make_small_store(tmp_path / "store")
    before = contents(store)
    (tmp_path / "disk").mkdir()
    mount = f'mount -t tmpfs -o size=1m none "{tmp_path}/disk" && exec "$@"'
    inside = [sys.executable, "-c", INSIDE, str(tmp_path / "disk"), str(store)]
    command = ["unshare", "-Urm", "sh", "-c", mount, "sh", *inside]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert contents(store) == before
    assert index_paths(store)
