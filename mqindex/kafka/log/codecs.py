"""What compressed batches decompress to: gzip by the standard library, snappy, lz4 and zstd by cramjam."""

from __future__ import annotations

import importlib
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from mqindex._words import plural
from mqindex.errors import FormatError

__all__ = ["CODECS", "MAX_RECORDS_SIZE", "decompress"]

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
MAX_RECORDS_SIZE: Final = 1 << 28  # of one batch: a few hostile bytes must not ask for all memory
_SNAPPY_JAVA: Final = b"\x82SNAPPY\x00"
_SNAPPY_HEADER: Final = 16  # the magic bytes, a version, the least version that reads it
_LZ4_MAGIC: Final = 0x184D2204
_GZIP: Final = 31  # zlib's number for it


def decompress(codec: int, stored: bytes | memoryview, *, magic: int = 2) -> bytes:
    """The records of a batch, or the messages of a wrapper, as their producer compressed them.

    Parameters
    ----------
    codec : int, bits 0 to 2 of the batch's attributes. stored : the bytes after the header of a batch of magic 2, the
        value of a message of magic 0 or 1. magic : int; lz4 of magic 0 has checksums of its own

    Raises
    ------
    FormatError : bytes that do not decompress, or to more than `MAX_RECORDS_SIZE`; a codec that no broker knows
    ImportError : snappy, lz4 and zstd need the extra `codecs`

    >>> decompress(1, zlib.compress(b"records", wbits=31)), decompress(0, b"records")
    (b'records', b'records')
    """
    if not 0 <= codec < len(CODECS) or (magic < 2 and codec == len(CODECS) - 1):
        raise FormatError("no such codec of a batch", field="attributes", expected="codec 0..4, 3 for old", got=codec)
    name, data = CODECS[codec], bytes(stored)
    if name == "none":
        return data
    if name == "gzip":
        return _gunzip(data)
    if name == "snappy":
        return _snappy(data)
    if name == "lz4" and magic == 0:
        data = with_frame_checksum(data)
    return _expand(name, getattr(_cramjam(name), name).decompress_into, data)


def _gunzip(data: bytes) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    try:
        records = stream.decompress(data, MAX_RECORDS_SIZE)
    except zlib.error as error:
        raise _broken("gzip", str(error)) from error
    if not stream.eof:
        raise _broken("gzip", "it is cut short" if len(records) < MAX_RECORDS_SIZE else _too_long())
    return records


def _snappy(data: bytes) -> bytes:
    expand = _cramjam("snappy").snappy.decompress_raw
    left, parts = MAX_RECORDS_SIZE, []
    for block in _snappy_blocks(data):
        left -= (length := _snappy_length(block))
        if left < 0:
            raise _broken("snappy", _too_long())
        if length > 64 * len(block) + 64:  # no block expands so much
            raise _broken("snappy", f"{plural(len(block), 'byte')} with a length field of {length} bytes")
        parts.append(_guarded("snappy", lambda block=block: bytes(expand(block))))
    return b"".join(parts)


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    """Blocks of the snappy-java stream; bytes that are none are one block."""
    if not data.startswith(_SNAPPY_JAVA):
        yield data
        return
    at = _SNAPPY_HEADER
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if not 0 <= length <= len(data) - at:
            raise _broken("snappy", "a block is cut short")
        yield data[at : at + length]
        at += length


def _snappy_length(block: bytes) -> int:
    length = 0
    for shift, byte in zip(range(0, 35, 7), block, strict=False):
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return length
    raise _broken("snappy", "a block has no length")


def with_frame_checksum(frame: bytes) -> bytes:
    """An lz4 frame with the header checksum of the standard.

    Old producers included the magic number in it. It covers the header only, so it is computed anew.
    """
    if len(frame) < 7 or int.from_bytes(frame[:4], "little") != _LZ4_MAGIC:
        return frame
    at = 6 + (8 if frame[4] & 0x08 else 0) + (4 if frame[4] & 0x01 else 0)  # after a content size, a dictionary
    return frame[:at] + bytes([_xxh32(frame[4:at]) >> 8 & 0xFF]) + frame[at + 1 :]


def _xxh32(data: bytes) -> int:
    """xxHash of fewer than 16 bytes."""
    value = 374761393 + len(data)
    whole = len(data) - len(data) % 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        value = _rotated(value + word * 3266489917, 17) * 668265263
    for byte in data[whole:]:
        value = _rotated(value + byte * 374761393, 11) * 2654435761
    value &= 0xFFFFFFFF
    value = ((value ^ value >> 15) * 2246822519) & 0xFFFFFFFF
    value = ((value ^ value >> 13) * 3266489917) & 0xFFFFFFFF
    return value ^ value >> 16


def _rotated(value: int, by: int) -> int:
    value &= 0xFFFFFFFF
    return (value << by | value >> (32 - by)) & 0xFFFFFFFF


def _expand(name: str, expand: Any, data: bytes) -> bytes:
    size = max(1 << 16, 4 * len(data))
    while True:
        target = np.zeros(min(size, MAX_RECORDS_SIZE), np.uint8)  # costs little until it is written, unlike a bytearray
        try:
            return _guarded(name, lambda target=target: target[: expand(data, target)].tobytes())
        except FormatError:
            if size >= MAX_RECORDS_SIZE:
                raise
        size *= 16


def _guarded(name: str, call: Any) -> bytes:
    try:
        expanded: bytes = call()
    except _cramjam(name).DecompressionError as error:
        raise _broken(name, str(error)) from error
    return expanded


def _cramjam(name: str) -> Any:
    from mqindex._needs import needing  # here: most records need none

    with needing(f"records compressed with {name} need cramjam: pip install 'mqindex[codecs]'", "cramjam"):
        return importlib.import_module("cramjam")


def _too_long() -> str:
    return f"it exceeds {MAX_RECORDS_SIZE} bytes"


def _broken(codec: str, why: str) -> FormatError:
    return FormatError(f"a batch does not decompress with {codec}: {why}")
