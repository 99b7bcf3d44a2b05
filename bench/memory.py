"""The state of memory before a timed run: guest pages provided, files in the page cache, or dropped from it.

Run as a script (`python -S bench/memory.py MIB`) it touches that much memory and exits, so that the pages which the
next process asks for belong to the guest already: in a virtual machine the first touch of a page that the host must
provide costs ten times a plain page fault, and it would be measured instead of the contender.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Iterable

__all__ = ["compact", "drop", "read", "warm", "warm_command"]

MIB = 1 << 20


def warm_command(mib: int) -> list[str]:
    """The command that touches `mib` MiB; also handed to the Java contenders."""
    return [sys.executable, "-S", os.path.abspath(__file__), str(mib)]


def warm(mib: int) -> None:
    """Have another process touch `mib` MiB now."""
    if mib:
        subprocess.run(warm_command(mib), check=True)


def read(paths: Iterable[str]) -> None:
    """Bring files into the page cache, in folios as large as there is room for, even those of small files."""
    for path in paths:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                continue
            with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as mapped:
                if hasattr(mmap, "MADV_HUGEPAGE"):
                    mapped.madvise(mmap.MADV_HUGEPAGE)
                for at in range(0, size, mmap.PAGESIZE):
                    mapped[at]


def drop(path: str) -> None:
    """Take a file out of the page cache (written back first: dirty pages stay)."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def compact() -> None:
    """Join what is free of memory to large pieces, where one may: what is read next comes in large folios then."""
    try:
        with open("/proc/sys/vm/compact_memory", "w", encoding="ascii") as file:
            file.write("1")
    except OSError:
        pass


def _free_mib() -> int:
    with open("/proc/meminfo", encoding="ascii") as file:
        facts = dict(line.split(":") for line in file)
    return int(facts["MemFree"].split()[0]) // 1024


def _touch(mib: int) -> None:
    # Never more than is free: the page cache holds the log that is about to be read.
    mib = min(mib, _free_mib() * 8 // 10) if os.path.exists("/proc/meminfo") else mib
    if mib < 1:
        return
    zeros = bytes(MIB)
    with mmap.mmap(-1, mib * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, mib * MIB, MIB):
            memory[at : at + MIB] = zeros


if __name__ == "__main__":
    _touch(int(sys.argv[1]))
