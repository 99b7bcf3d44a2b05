"""Wrong values in a message to append: refused by the name of the argument, and nothing else is written instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.rocketmq import CommitLog, MessageStore, NewMessage

LOG = {"mappedFileSizeCommitLog": 1 << 20}


@pytest.mark.parametrize(
    "body", [np.array(3, np.uint8), np.uint8(3), np.array([None]), np.arange(3), np.zeros((2, 2), np.uint8), 5, "text"]
)
def test_a_body_is_a_row_of_bytes(body: Any) -> None:
    """A number became so many zeros, an array of objects their addresses."""
    with pytest.raises(TypeError, match=r"^body: expected bytes, got "):
        NewMessage("T", body)


@pytest.mark.parametrize("properties", [5, True, [5], range(3), np.arange(3), np.uint8(3), "KEYS\1a", object()])
def test_properties_are_a_mapping_or_a_block_of_bytes(properties: Any) -> None:
    """5 became five zeros in the log, a list of numbers their bytes."""
    with pytest.raises(TypeError, match=r"^properties: expected a mapping or a block of bytes, got "):
        NewMessage("T", b"", properties=properties)


def test_bytes_may_be_of_any_buffer(tmp_path: Path) -> None:
    block = memoryview(b"KEYS\1a\2")
    with CommitLog.open(tmp_path, writable=True, mapped_file_size=1 << 20) as log:
        for body in (bytearray(b"ace"), memoryview(b"abcdef")[::2], np.frombuffer(b"ace", np.uint8)):
            at = log.append_message(NewMessage("T", body, properties=block), queue_offset=0).phy_offset
            assert (log.get_message(at).body, log.get_message(at).keys) == (b"ace", "a")


@pytest.mark.parametrize("stamp", ["born_timestamp", "store_timestamp"])
def test_a_time_has_64_bits(stamp: str) -> None:
    """It was "Python int too large to convert to C long", at the append."""
    with pytest.raises(OverflowError, match=rf"^{stamp}: expected 64 bits, got 9223372036854775808$"):
        NewMessage("T", **{stamp: 2**63})  # type: ignore[arg-type]


def test_an_address_is_text() -> None:
    """It was "unhashable type: 'list'", at the append."""
    with pytest.raises(TypeError, match=r"^born_host: expected str, got list$"):
        NewMessage("T", born_host=["127.0.0.1:10911"])  # type: ignore[arg-type]


def test_a_number_may_be_an_array_of_one() -> None:
    """Its queue was "unhashable type: 'numpy.ndarray'", at the append."""
    assert type(NewMessage("T", queue_id=np.array(3)).queue_id) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("message", [None, 5, {"topic": "T"}, NewMessage])
def test_a_message_is_a_new_message(tmp_path: Path, message: Any) -> None:
    """It was an `AttributeError`."""
    sentence = r"^message: expected a NewMessage, got "
    with MessageStore.open(tmp_path, writable=True, config=LOG) as store, pytest.raises(TypeError, match=sentence):
        store.put_message(message)
    log = CommitLog.open(tmp_path / "commitlog", writable=True, mapped_file_size=1 << 20)
    with log, pytest.raises(TypeError, match=sentence):
        log.append_message(message, queue_offset=0)


def test_a_queue_offset_has_64_bits(tmp_path: Path) -> None:
    """It was "Python int too large to convert to C long"."""
    with CommitLog.open(tmp_path, writable=True, mapped_file_size=1 << 20) as log:
        with pytest.raises(OverflowError, match=r"^queue_offset: expected 64 bits, got 9223372036854775808$"):
            log.append_message(NewMessage("T"), queue_offset=2**63)
        assert log.max_phy_offset == 0
