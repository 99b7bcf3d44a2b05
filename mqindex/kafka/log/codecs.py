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

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
MAX_RECORDS_SIZE: Final = 1 << 28  # of one batch: a few hostile bytes must not ask for all memory
_SNAPPY_JAVA: Final = b"\x82SNAPPY\x00"
_SNAPPY_HEADER: Final = 16  # the magic bytes, a version, the least version that reads it
_LZ4_MAGIC: Final = 0x184D2204
_LZ4_LEAST: Final = 7  # bytes of a header
_LZ4_HASH: Final = 4  # bytes, of a block or of the content
_GZIP: Final = 31  # zlib's number for it
_GZIP_MAGIC: Final = b"\x1f\x8b\x08"  # and its only method
_GZIP_TOO_SHORT: Final = 18  # bytes: a header and a trailer
_GZIP_PIECE: Final = 1 << 13


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
    if name == "lz4":
        data = first_frame(with_frame_checksum(data) if magic == 0 else data)
    return _expand(name, getattr(_cramjam(name), name).decompress_into, data)


def _gunzip(data: bytes) -> bytes:
    """Member after member, as one stream; what follows them and does not begin as one is left out.

    Source: Java 17 `GZIPInputStream.readTrailer`.
    """
    first, at = _gzip_member(data, 0, MAX_RECORDS_SIZE)
    parts, left = [first], MAX_RECORDS_SIZE - len(first)
    while data.startswith(_GZIP_MAGIC, at) and len(data) - at > _GZIP_TOO_SHORT:
        part, at = _gzip_member(data, at, left)
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _gzip_member(data: bytes, at: int, left: int) -> tuple[bytes, int]:
    """The content of the member at a position, and where it ends.

    It is read piece by piece, as zlib copies what follows a member in the piece that it ends in.
    """
    stream, parts = zlib.decompressobj(_GZIP), []
    while not stream.eof:
        if at >= len(data):
            raise _broken("gzip", "it is cut short")
        piece = data[at : at + _GZIP_PIECE]
        try:
            parts.append(stream.decompress(piece, left + 1))
        except zlib.error as error:
            raise _broken("gzip", str(error)) from error
        at, left = at + len(piece), left - len(parts[-1])
        if left < 0:
            raise _broken("gzip", _too_long())
    return b"".join(parts), at - len(stream.unused_data)


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
    """Blocks of the snappy-java stream, which may begin again between two; bytes that are none are one block.

    Source: snappy-java 1.1.10 `SnappyInputStream.hasNextChunk`.
    """
    if not data.startswith(_SNAPPY_JAVA):
        yield data
        return
    at = 0
    while at + 4 <= len(data):
        if data.startswith(_SNAPPY_JAVA, at):
            at += _SNAPPY_HEADER
            continue
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


def first_frame(data: bytes) -> bytes:
    """The first lz4 frame: a broker reads no further.

    Source: Kafka 4.1.0 `Lz4BlockInputStream.readBlock`.
    """
    if len(data) < _LZ4_LEAST or int.from_bytes(data[:4], "little") != _LZ4_MAGIC:
        return data
    at = _lz4_header(data)
    while at + 4 <= len(data):
        length = int.from_bytes(data[at : at + 4], "little") & 0x7FFFFFFF
        at += 4
        if not length:
            return data[: at + (_LZ4_HASH if data[4] & 0x04 else 0)]
        at += length + (_LZ4_HASH if data[4] & 0x10 else 0)
    return data


def _lz4_header(frame: bytes) -> int:
    """Its length: a content size and a dictionary may be in it."""
    return _LZ4_LEAST + (8 if frame[4] & 0x08 else 0) + (4 if frame[4] & 0x01 else 0)


def with_frame_checksum(frame: bytes) -> bytes:
    """An lz4 frame with the header checksum of the standard.

    Old producers included the magic number in it. It covers the header only, so it is computed anew.
    """
    if len(frame) < _LZ4_LEAST or int.from_bytes(frame[:4], "little") != _LZ4_MAGIC:
        return frame
    at = _lz4_header(frame) - 1
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
