"""Bodies of a column are what `decompress` gives of each; one that does not decompress is null, and is named."""

from __future__ import annotations

import random
import zlib

import cramjam
import numpy as np
import pytest

from mqindex.columns.columns import BinaryColumn
from mqindex.errors import FormatError
from mqindex.rocketmq.messages.body import decompress
from mqindex.rocketmq.messages.body_column import decompressed_bodies

ZLIB, LZ4, ZSTD = 0x1, 0x101, 0x201


def column(bodies: list[bytes | None]) -> BinaryColumn:
    stored = [body or b"" for body in bodies]
    offsets = np.concatenate([[0], np.cumsum([len(body) for body in stored])]).astype(np.int64)
    there = np.array([body is not None for body in bodies])
    return BinaryColumn(np.frombuffer(b"".join(stored), np.uint8), offsets, None if there.all() else there)


def decompressed(bodies: list[bytes | None], flags: list[int]) -> tuple[list[bytes | None], list[tuple[int, str]]]:
    broken: list[tuple[int, str]] = []
    made = decompressed_bodies(
        column(bodies), np.array(flags, np.int32), lambda row, error: broken.append((row, str(error)))
    )
    return made.to_pylist(), broken


def stored(rng: random.Random) -> tuple[bytes, int]:
    text = rng.randbytes(rng.randrange(40)) * rng.randrange(30)
    flag = rng.choice([0, 0, 0x2, ZLIB, ZLIB | 0x2, 0x301, LZ4, ZSTD])
    if not flag & 0x1:
        return text, flag
    if flag in (LZ4, ZSTD):
        return bytes((cramjam.lz4 if flag == LZ4 else cramjam.zstd).compress(text)), flag
    return zlib.compress(text), flag


@pytest.mark.parametrize("seed", range(200))
def test_each_body_is_that_of_the_single_call(seed: int) -> None:
    rng = random.Random(seed)
    bodies, flags = map(list, zip(*(stored(rng) for _ in range(rng.randrange(1, 30))), strict=True))
    expected = [decompress(body, flag) for body, flag in zip(bodies, flags, strict=True)]
    assert decompressed(bodies, flags) == (expected, [])


def test_a_column_without_a_compressed_body_is_itself() -> None:
    body = column([b"one", b"two"])
    assert decompressed_bodies(body, np.array([0, 0x2], np.int32), lambda row, error: None) is body
    empty = column([])
    assert decompressed_bodies(empty, np.empty(0, np.int32), lambda row, error: None) is empty


def test_a_body_that_does_not_decompress_is_null_and_named() -> None:
    cut = zlib.compress(b"a body" * 9)[:-3]
    bodies = [b"one", cut, zlib.compress(b"two"), b"no stream", b"three", b"of no type"]
    made, broken = decompressed(bodies, [0, ZLIB, ZLIB, ZLIB, 0, 0x701])
    assert made == [b"one", None, b"two", None, b"three", None]
    assert [row for row, _ in broken] == [1, 3, 5]
    assert "cut short" in broken[0][1] and "type 0..3" in broken[2][1]


def test_a_body_that_is_absent_stays_so() -> None:
    assert decompressed([None, zlib.compress(b"two"), None], [ZLIB, ZLIB, 0]) == ([None, b"two", None], [])


def test_another_error_ends_the_call() -> None:
    def broken(row: int, error: FormatError) -> None:
        raise error

    with pytest.raises(FormatError, match="does not decompress with zlib"):
        decompressed_bodies(column([b"no stream"]), np.array([ZLIB], np.int32), broken)
