"""Message bodies: the stored bytes and what they hold."""

from __future__ import annotations

import importlib
import zlib
from typing import Any, Final

import numpy as np

from mqindex._needs import needing
from mqindex.errors import FormatError

COMPRESSED: Final = 0x1
INNER_BATCH: Final = 0x80  # from 4.9.4 on: the body holds many messages, as `MessageDecoder.decodeMessages` reads them
_TYPE_SHIFT, _TYPE_MASK = 8, 0x7
_CODECS = ("zlib", "lz4", "zstd", "zlib")  # 0: brokers before 4.9.4 wrote no type
MAX_BODY_SIZE: Final = 1 << 28  # a few hostile bytes must not ask for all memory; brokers limit bodies to 4 MiB


def codec_of(sys_flag: int) -> str | None:
    """What a body is compressed with: zlib, lz4 or zstd; None: it is not. Another type is a `FormatError`.

    >>> codec_of(0x201), codec_of(0)
    ('zstd', None)
    """
    if not sys_flag & COMPRESSED:
        return None
    number = sys_flag >> _TYPE_SHIFT & _TYPE_MASK
    if number >= len(_CODECS):
        raise FormatError("no such compression of a body", field="sys_flag", expected="type 0..3", got=number)
    return _CODECS[number]


def decompress(stored: bytes, sys_flag: int) -> bytes:
    """The body as its producer sent it.

    LZ4 (frame format) and ZSTD need the extra `codecs`. Bytes that do not decompress, or to more than
    `MAX_BODY_SIZE`, are a `FormatError`.

    >>> decompress(zlib.compress(b"hello"), 0x1), decompress(b"plain", 0)
    (b'hello', b'plain')
    """
    codec = codec_of(sys_flag)
    if codec is None:
        return stored
    return _inflate(stored) if codec == "zlib" else _cramjam(codec, stored)


def _inflate(stored: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(stored, MAX_BODY_SIZE)
    except zlib.error as error:
        raise _broken("zlib", str(error)) from error
    if not stream.eof:
        raise _broken("zlib", "it is cut short" if len(body) < MAX_BODY_SIZE else f"it exceeds {MAX_BODY_SIZE} bytes")
    return body


def _cramjam(codec: str, stored: bytes) -> bytes:
    with needing(f"a body compressed with {codec.upper()} needs cramjam: pip install 'mqindex[codecs]'", "cramjam"):
        cramjam: Any = importlib.import_module("cramjam")
    expand = getattr(cramjam, codec).decompress_into
    for size in (max(1 << 16, 8 * len(stored)), MAX_BODY_SIZE):
        target = np.zeros(size, np.uint8)  # costs nothing until it is written, unlike a bytearray
        try:
            return target[: expand(stored, target)].tobytes()
        except cramjam.DecompressionError as error:
            reason = error
    raise _broken(codec, str(reason)) from reason


def _broken(codec: str, why: str) -> FormatError:
    return FormatError(f"a body does not decompress with {codec}: {why}")
