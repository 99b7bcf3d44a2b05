"""Java's strings and integers: what its arithmetic, hashing, decoding and splitting do."""

from __future__ import annotations

import struct

__all__ = ["decode_utf8", "java_hash", "java_split", "key_hash", "trunc_div", "utf16_units", "wrap"]

REPLACEMENT = "�"


def wrap(value: int, bits: int = 64) -> int:
    """`value` in two's complement of that width."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def trunc_div(value: int, by: int) -> int:
    """Integer division toward zero."""
    return abs(value) // by if value >= 0 else -(abs(value) // by)


def utf16_units(text: str) -> tuple[int, ...]:
    """The 16-bit code units: a character beyond U+FFFF counts as two."""
    data = text.encode("utf-16-be", "surrogatepass")
    return struct.unpack(f">{len(data) // 2}H", data)


def java_hash(text: str) -> int:
    """`String.hashCode`."""
    value = 0
    for unit in utf16_units(text):
        value = (31 * value + unit) & 0xFFFFFFFF
    return wrap(value, 32)


def key_hash(text: str) -> int:
    """The absolute value; 0 for the one value that has no positive counterpart."""
    value = java_hash(text)
    return 0 if value == -(1 << 31) else abs(value)


def java_split(text: str, separator: str = " ") -> list[str]:
    """`String.split` at one plain character: empty strings at the end are dropped, others kept.

    >>> java_split(" a  b "), java_split(" "), java_split("")
    (['', 'a', '', 'b'], [], [''])
    """
    if text == "":
        return [""]
    parts = text.split(separator)
    while parts and parts[-1] == "":
        parts.pop()
    return parts


def decode_utf8(data: bytes) -> str:
    """`new String(data, UTF_8)`: like Python's, but a surrogate in three bytes is one replacement, not three.

    >>> decode_utf8(bytes.fromhex("61 eda080 62")), decode_utf8(bytes.fromhex("e282"))
    ('a�b', '�')
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _decode_malformed(data)


def _decode_malformed(data: bytes) -> str:
    out, at = [], 0
    while at < len(data):
        text, length = _first_character(data[at : at + 4])
        out.append(text)
        at += length
    return "".join(out)


def _first_character(data: bytes) -> tuple[str, int]:
    lead = data[0]
    if lead < 0x80:
        return chr(lead), 1
    if 0xC2 <= lead <= 0xDF:
        width, low, high = 2, 0x80, 0xBF
    elif 0xE0 <= lead <= 0xEF:
        width, low, high = 3, 0xA0 if lead == 0xE0 else 0x80, 0xBF  # ED A0..BF: a surrogate, seen only when complete
    elif 0xF0 <= lead <= 0xF4:
        width, low, high = 4, 0x90 if lead == 0xF0 else 0x80, 0x8F if lead == 0xF4 else 0xBF
    else:
        return REPLACEMENT, 1
    good = 1
    while (
        good < width
        and good < len(data)
        and (low if good == 1 else 0x80) <= data[good] <= (high if good == 1 else 0xBF)
    ):
        good += 1
    if good < width:
        return REPLACEMENT, good
    try:
        return data[:width].decode(), width
    except UnicodeDecodeError:
        return REPLACEMENT, width
