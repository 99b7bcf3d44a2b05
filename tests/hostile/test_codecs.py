"""Compressed bytes that are spoilt."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable

import cramjam
import pytest

from mqindex.errors import FormatError
from mqindex.kafka.log.codecs import CODECS, decompress
from mqindex.rocketmq.messages import body

Bound = Callable[[float], None]


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_batches_and_bodies_that_do_not_decompress_cost_little_each(
    codec: str, rng: random.Random, time_bound: Bound
) -> None:
    """A few spoilt bytes once had 256 MiB of memory filled with zeros, each time."""
    time_bound(60)
    stored = bytes(getattr(cramjam, codec).compress(b"abc" * 1000))
    for _ in range(400):
        spoilt = bytearray(stored)
        spoilt[rng.randrange(len(spoilt))] ^= 1 + rng.randrange(255)
        with contextlib.suppress(FormatError):
            decompress(CODECS.index(codec), bytes(spoilt))
        with contextlib.suppress(FormatError):
            body.decompress(bytes(spoilt), body.COMPRESSED | {"lz4": 1, "zstd": 2}[codec] << 8)
