"""The checksum kernels against zlib and against a bit-by-bit loop."""

from __future__ import annotations

import random
import zlib

import pytest

import mqindex
from mqindex._native.crc import available, crc32, crc32c

CHECK = b"123456789"  # the string whose checksum every catalogue of CRCs gives
KERNELS = pytest.mark.parametrize("kernel", [None, *available()])


def slow_crc32c(data: bytes) -> list[int]:
    """The checksum of the first 0, 1, 2, ... bytes."""
    crc, found = 0xFFFFFFFF, [0]
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        found.append(crc ^ 0xFFFFFFFF)
    return found


@KERNELS
def test_check_values(kernel: str | None) -> None:
    assert crc32(CHECK, kernel=kernel) == 0xCBF43926
    assert crc32c(CHECK, kernel=kernel) == 0xE3069283
    assert crc32(b"hello", kernel=kernel) & 0x7FFFFFFF == 0x3610A686
    assert crc32(b"", kernel=kernel) == crc32c(b"", kernel=kernel) == 0


@KERNELS
def test_crc32_of_every_length_is_zlibs(kernel: str | None, rng: random.Random) -> None:
    data = rng.randbytes(1500)
    for length in range(1300):
        at = rng.randrange(200)
        assert crc32(data[at : at + length], kernel=kernel) == zlib.crc32(data[at : at + length]), length


@KERNELS
def test_crc32c_of_every_length(kernel: str | None, rng: random.Random) -> None:
    data = rng.randbytes(1300)
    for length, expected in enumerate(slow_crc32c(data)):
        assert crc32c(data[:length], kernel=kernel) == expected, length


@KERNELS
@pytest.mark.parametrize("cut", [0, 1, 15, 16, 63, 64, 127, 255, 256, 1000])
def test_checksum_continues_from_what_stands_before(cut: int, kernel: str | None, rng: random.Random) -> None:
    data = rng.randbytes(1777)
    for function in (crc32, crc32c):
        whole = function(data, kernel=kernel)
        assert function(data[cut:], function(data[:cut], kernel=kernel), kernel=kernel) == whole


def test_any_contiguous_buffer_will_do() -> None:
    assert crc32(bytearray(CHECK)) == crc32(memoryview(CHECK)) == zlib.crc32(CHECK)
    with pytest.raises(BufferError):
        crc32(memoryview(CHECK)[::2])
    with pytest.raises(TypeError):
        crc32("text")  # type: ignore[arg-type]


def test_kernels_tells_what_was_chosen() -> None:
    assert mqindex.kernels()["crc32"] == available()[-1]
    assert " ".join(available()) in {"portable", "portable armv8", "portable pclmul", "portable pclmul vpclmulqdq"}
