"""The work directory of a run: what several cases read is made once, from fixed seeds, and removed at the end."""

from __future__ import annotations

import os
import shutil
from functools import cached_property

import numpy as np

from bench import memory
from bench.contenders.keys import KEY_WIDTH
from bench.scale import GIB, Scale
from tests.support.big_log import BigLog, write_big_log

__all__ = ["Workshop", "space_needed"]

HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
LOOK_UPS = 1_000_000
LOG_GIB = 16
KAFKA_GIB = 10
COLD_GIB = 22
BLOCK = 1 << 20


class Workshop:
    """Keys, a full index file and a commit log at one scale, below one directory."""

    def __init__(self, directory: str, scale: Scale) -> None:
        self.scale = scale
        self.directory = os.path.join(directory, scale.name)
        self._scratches = 0
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def path(self, *names: str) -> str:
        """A path in the work directory."""
        return os.path.join(self.directory, *names)

    def scratch(self) -> str:
        """An empty directory for one contender run."""
        self._scratches += 1
        path = self.path(f"scratch-{self._scratches}")
        os.makedirs(path)
        return path

    def warm_mib(self, full: int) -> int:
        """How much memory to touch before a run that asks for `full` MiB at full size; nothing in a check."""
        return max(64, self.scale.count(full)) if self.scale.timed else 0

    @property
    def key_count(self) -> int:
        """As many keys as fill an index file."""
        return self.scale.index_num - 1

    @cached_property
    def keys(self) -> str:
        """A file of all keys: 32 hex digits each, no separators, as clients make unique keys."""
        return self._write_keys("keys", seed=1, count=self.key_count)

    @cached_property
    def missing(self) -> str:
        """Keys that the index does not hold."""
        return self._write_keys("missing", seed=2, count=self.scale.count(LOOK_UPS))

    @cached_property
    def wanted(self) -> str:
        """Keys that the index holds, in random order."""
        return self.sample("wanted", self.scale.count(LOOK_UPS))

    def sample(self, name: str, count: int, among: int | None = None) -> str:
        """A file of `count` random keys of the index, of its first `among` entries where given."""
        keys = np.memmap(self.keys, np.uint8, "r").reshape(-1, KEY_WIDTH)
        rows = np.random.default_rng(3).integers(0, among or len(keys), count)
        path = self.path(name)
        keys[rows].tofile(path)
        return path

    @cached_property
    def index(self) -> str:
        """An index file that holds all keys."""
        from bench.contenders.index_file import fill  # here: the table is printed without the kernels

        path = self.path("20240101000000000")
        fill(path, self.keys, self.scale.hash_slot_num, self.scale.index_num)
        return path

    @cached_property
    def cold_files(self) -> str:
        """A root with 50 full index files, which nothing else reads."""
        from bench.contenders.cold import fill

        root = self.path("cold")
        fill(root, self.keys, self.scale.hash_slot_num, self.scale.index_num)
        return root

    @cached_property
    def optimized_files(self) -> str:
        """The same files, optimized in place: from now on they are no others."""
        from bench.contenders.cold import optimize_in_place

        root = self.cold_files
        optimize_in_place(root, self.scale.hash_slot_num, self.scale.index_num)
        return root

    @cached_property
    def optimized_few(self) -> str:
        """A root with 20 optimized index files."""
        from bench.contenders.cold import fill, optimize_in_place

        root = self.path("few")
        fill(root, self.keys, self.scale.hash_slot_num, self.scale.index_num, files=20)
        optimize_in_place(root, self.scale.hash_slot_num, self.scale.index_num)
        return root

    @cached_property
    def one_optimized(self) -> str:
        """The index file that holds all keys, optimized elsewhere."""
        from mqindex.rocketmq import optimize

        name = os.path.basename(self.index)
        ordinary, optimized = self.path("one", "index"), self.path("one-optimized")
        os.makedirs(ordinary)
        os.link(self.index, os.path.join(ordinary, name))
        optimize(ordinary, optimized, hash_slot_num=self.scale.hash_slot_num, index_num=self.scale.index_num)
        return os.path.join(optimized, "index", name)

    @cached_property
    def empty_index(self) -> str:
        """An index file of next to no size."""
        from mqindex.rocketmq import IndexFile

        path = self.path("20240101000000001")
        IndexFile.create(path, hash_slot_num=4, index_num=4).close()
        return path

    @cached_property
    def log(self) -> BigLog:
        """The largest commit log, 16 files at any scale; smaller logs are its first files."""
        size = self.scale.log_file_size
        written = write_big_log(self.path("log"), total_bytes=LOG_GIB * size, body_size=1024, mapped_file_size=size)
        os.sync()
        self._leave_cache(written.root)
        return written

    def _leave_cache(self, root: str) -> None:
        """Nobody rebuilds what he has just written: a log comes from the disk, in folios as large as there is room for.

        Of small ones a fault maps 16 pages: half of the time of a rebuild, which is then the kernel's and not ours.
        """
        if not self.scale.timed:
            return
        folder = os.path.join(root, "commitlog")
        for name in os.listdir(folder):
            memory.drop(os.path.join(folder, name))
        memory.compact()

    def log_files(self, gib: int) -> list[str]:
        """The first `gib` files of the log (1 GiB each at full size)."""
        folder = os.path.join(self.log.root, "commitlog")
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))[:gib]]

    def messages(self, gib: int) -> int:
        """How many messages the first `gib` files hold."""
        return min(gib * self.log.messages_per_file, self.log.messages)

    @cached_property
    def tagged_store(self) -> str:
        """A store root with one file of commit log, whose messages are of one queue and four tags, and its queue."""
        from mqindex.rocketmq import rebuild

        size, root = self.scale.log_file_size, self.path("tagged")
        write_big_log(root, total_bytes=size, body_size=1024, mapped_file_size=size, tags=4)
        built = self.path("tagged-queues")
        rebuild(root, built, parts=("consumequeue",), broker_version="4.9.3")
        os.rename(os.path.join(built, "consumequeue"), os.path.join(root, "consumequeue"))
        return root

    def store(self, gib: int) -> str:
        """A store root with a commit log of the first `gib` files, and no index."""
        root = self.path(f"store-{gib}")
        folder = os.path.join(root, "commitlog")
        if not os.path.isdir(folder):
            os.makedirs(folder)
            for path in self.log_files(gib):
                os.link(path, os.path.join(folder, os.path.basename(path)))
        return root

    def whole_store(self, gib: int) -> str:
        """The same with its consume queue and its index."""
        from mqindex.rocketmq import rebuild

        root, built = self.path(f"whole-{gib}"), self.path(f"built-{gib}")
        if not os.path.isdir(root):
            rebuild(
                self.store(gib),
                built,
                hash_slot_num=self.scale.hash_slot_num,
                index_num=self.scale.index_num,
                broker_version="4.9.3",
            )
            os.symlink(os.path.join(self.store(gib), "commitlog"), os.path.join(built, "commitlog"))
            os.rename(built, root)
            self._leave_cache(root)  # the rebuild brought it there by faults
        return root

    def _write_keys(self, name: str, *, seed: int, count: int) -> str:
        path = self.path(name)
        random = np.random.default_rng(seed)
        with open(path, "wb") as file:
            for start in range(0, count, BLOCK):
                digits = random.integers(0, 16, (min(BLOCK, count - start), KEY_WIDTH), np.uint8)
                file.write(HEX[digits].tobytes())
        return path


def space_needed(scale: Scale) -> int:
    """Bytes that a whole run needs in the work directory: the log, what is made of it, cold files, Kafka's segments."""
    return scale.count((LOG_GIB + 8 + COLD_GIB + KAFKA_GIB) * GIB)
