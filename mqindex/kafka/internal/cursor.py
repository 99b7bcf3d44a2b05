"""A structure of a broker's own topics, read from one record's bytes: the plain way, of any layout."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Any, Final

from mqindex.errors import FormatError
from mqindex.kafka.internal.layouts import Field, Layout

_NUMBERS: Final = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "uint16": struct.Struct(">H"),
}
_VARINT_BYTES: Final = 5


class Cursor:
    """A place in some bytes. Every read is within them, or a `FormatError`; no work is more than the bytes allow.

    Texts are given as the bytes that they are, ids as the broker's tools print them.

    Notes
    -----
    Source: Kafka 4.4.0 `ByteBufferAccessor`, and the classes that are generated of the message definitions.

    Examples
    --------
    >>> Cursor(bytes.fromhex("0001" "0003616263" "ffff")).number("int16")
    1
    """

    __slots__ = ("at", "data", "flexible")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at
        self.flexible = False

    def read(self, layout: Layout, version: int) -> dict[str, Any]:
        """The fields of a structure, by name. Tagged fields are passed over."""
        if not 0 <= version <= layout.last:
            raise FormatError(
                f"no known version of {layout.name}", field="version", expected=f"0..{layout.last}", got=version
            )
        self.flexible = version >= layout.flexible
        return self._structure(layout.fields, version)

    def number(self, kind: str) -> int:
        """An integer of a fixed width."""
        format = _NUMBERS[kind]
        start = self._pass(format.size, kind)
        found: int = format.unpack_from(self.data, start)[0]
        return found

    def varint(self) -> int:
        """An unsigned integer of seven bits a byte, the lowest first."""
        value = 0
        for number in range(_VARINT_BYTES):
            octet = self.data[self._pass(1, "a varint")]
            value |= (octet & 0x7F) << 7 * number
            if octet < 0x80:
                return value & 0xFFFFFFFF
        raise FormatError("a varint does not end", at=self.at, expected=f"{_VARINT_BYTES} bytes at most")

    def _structure(self, fields: Sequence[Field], version: int) -> dict[str, Any]:
        found = {each.name: self._field(each, version) for each in fields if each.since <= version <= each.until}
        if self.flexible:
            self._pass_tags()
        return found

    def _field(self, field: Field, version: int) -> Any:
        kind = field.kind.removesuffix("?")
        nullable = kind != field.kind
        if kind == "{}":
            return self._structure(field.of, version)
        if not kind.startswith("[]"):
            return self._one(kind, field.name, nullable)
        count = self._length("int32", field.name, nullable)
        if count is None:
            return None
        if kind == "[]":
            return [self._structure(field.of, version) for _ in range(count)]
        return [self._one(kind[2:], field.name, False) for _ in range(count)]

    def _one(self, kind: str, name: str, nullable: bool) -> Any:
        if kind in _NUMBERS:
            return self.number(kind)
        size = 16 if kind == "uuid" else self._length("int16", name, nullable)
        if size is None:
            return None
        start = self._pass(size, name)
        data = self.data[start : start + size]
        return base64.urlsafe_b64encode(data)[:22] if kind == "uuid" else data

    def _length(self, kind: str, name: str, nullable: bool) -> int | None:
        """How many bytes or elements follow; no element is empty, so that there are never more than bytes."""
        at = self.at
        length = self.varint() - 1 if self.flexible else self.number(kind)
        if length == -1 and nullable:
            return None
        if not 0 <= length <= len(self.data) - self.at:
            raise FormatError(
                "a length leads outside", at=at, field=name, expected=f"0..{len(self.data) - self.at}", got=length
            )
        return length

    def _pass_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self._pass(self.varint(), "a tagged field")

    def _pass(self, size: int, name: str) -> int:
        start = self.at
        if len(self.data) - start < size:
            raise FormatError(
                "it ends too early", at=start, field=name, expected=f"{size} bytes", got=len(self.data) - start
            )
        self.at = start + size
        return start
