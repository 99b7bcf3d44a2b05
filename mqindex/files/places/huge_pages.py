"""Memory for much of a file elsewhere in large pages: to get it in small ones takes longer than to copy the bytes."""

from __future__ import annotations

import ctypes
import mmap
from typing import Final

import numpy as np

_ADVICE: Final = getattr(mmap, "MADV_HUGEPAGE", None)  # on Linux
_PAGE: Final = 2 << 20  # bytes, usually; of less there is none


def advise_huge(memory: memoryview) -> None:
    """For memory of whole pages into which nothing was written yet. Where the advice is not taken nothing changes."""
    if _ADVICE is not None and len(memory) >= _PAGE:
        at, size = np.frombuffer(memory, np.uint8).ctypes.data, len(memory) // mmap.PAGESIZE * mmap.PAGESIZE
        ctypes.CDLL(None).madvise(ctypes.c_void_p(at), ctypes.c_size_t(size), ctypes.c_int(_ADVICE))
