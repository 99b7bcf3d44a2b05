"""Keys from a file of fixed-width keys without separators, and the offsets and times that go with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KEY_WIDTH", "TOPIC", "arrow_keys", "full_keys", "phy_offsets", "store_timestamps"]

KEY_WIDTH = 32
TOPIC = "TopicTest"
MESSAGE_SIZE = 1192
FIRST_TIMESTAMP = 1_700_000_000_000
MESSAGES_PER_MS = 20


def arrow_keys(path: str, count: int | None = None) -> pa.StringArray:
    """The first `count` keys as one Arrow string array."""
    import pyarrow as pa

    data = np.fromfile(path, np.uint8, -1 if count is None else count * KEY_WIDTH)
    offsets = np.arange(0, len(data) + 1, KEY_WIDTH, dtype=np.int32)
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def full_keys(path: str, count: int | None = None) -> list[str]:
    """The first `count` keys as Python strings with their topic."""
    return [f"{TOPIC}#{key}" for key in arrow_keys(path, count).to_pylist()]


def phy_offsets(count: int) -> npt.NDArray[np.int64]:
    """Where the messages of the keys stand: one key each, 1192 bytes."""
    return np.arange(count, dtype=np.int64) * MESSAGE_SIZE


def store_timestamps(count: int) -> npt.NDArray[np.int64]:
    """When they were stored: 20 a millisecond."""
    return FIRST_TIMESTAMP + np.arange(count, dtype=np.int64) // MESSAGES_PER_MS
