"""A pyarrow expression as a tree.

pyarrow shows no parts of an expression, but pickles it: as an Arrow IPC file whose schema's metadata is the tree in
prefix order, `call` up to its `end`, and whose only row has the literals, which the metadata numbers. Names repeat
there, so it is read from the C data interface, whose form is fixed.

Source: Arrow 26.0 `cpp/src/arrow/compute/expression.cc` `Serialize`; 18.0 has the same form.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from mqindex.tables.bounds import UNKNOWN, Field, Literal, Node, call, together

_FUNCTIONS: Final = {"and_kleene": "and", "or_kleene": "or"}
_A_MS: Final = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}  # times, then divided by


def tree_of(expression: Any) -> Node:
    """The tree of an expression, as far as it is understood."""
    try:
        (data,) = expression.__reduce__()[1]
        file = pa.ipc.open_file(data)
        pairs = _metadata(file.schema)
        return _node(*next(pairs), pairs, file.get_batch(0))
    except Exception:  # a private form: where another version has another one, nothing is known
        return UNKNOWN


def _node(key: str, value: str, pairs: Iterator[tuple[str, str]], literals: pa.RecordBatch) -> Node:
    if key == "field_ref":
        return Field(value)
    if key == "literal":
        return _literal(literals.column(int(value))[0])
    if key == "nested_field_ref":  # of so many names
        for _ in range(int(value)):
            next(pairs)
    if key != "call":
        return UNKNOWN
    arguments: list[Node] = []
    for inner, at in pairs:
        if inner == "end":
            return call(_FUNCTIONS.get(value, value), arguments)
        if inner != "options":
            arguments.append(_node(inner, at, pairs, literals))
        elif value == "is_in":
            arguments.append(_value_set(literals.column(int(at))[0]))
    return UNKNOWN


def _value_set(options: Any) -> Node:
    return together(map(_literal, options["value_set"].values))


def _literal(scalar: Any) -> Node:
    kind = scalar.type
    if not scalar.is_valid:
        return Literal(None)
    if pa.types.is_timestamp(kind):
        times, by = _A_MS[kind.unit]
        return Literal(scalar.value * times // by)
    known = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_string, pa.types.is_large_string)
    binary = (pa.types.is_string_view, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return Literal(scalar.as_py()) if any(is_one(kind) for is_one in (*known, *binary)) else UNKNOWN


class _ArrowSchema(ctypes.Structure):
    _fields_ = (("format", ctypes.c_void_p), ("name", ctypes.c_void_p), ("metadata", ctypes.c_void_p))


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """The pairs of a schema's metadata: their number, then length and bytes of each key and value."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    at = _ArrowSchema.from_address(pointer(capsule, b"arrow_schema")).metadata
    texts = []
    (count,) = struct.unpack("=i", ctypes.string_at(at, 4))
    at += 4
    for _ in range(2 * count):
        (length,) = struct.unpack("=i", ctypes.string_at(at, 4))
        texts.append(ctypes.string_at(at + 4, length).decode())
        at += 4 + length
    return iter(list(zip(texts[::2], texts[1::2], strict=True)))
