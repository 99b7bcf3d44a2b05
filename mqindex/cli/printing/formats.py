"""The formats of tables of any length: each writes batches of columns to stdout as they come, and keeps none of them.

Bytes are text where they are UTF-8; where they are not, they are in a field or column of their own, with `_base64`
after its name. So different values are written differently, and nothing (null) is no empty text. In a table for people
bytes that are no UTF-8 are escaped.
"""

from __future__ import annotations

import base64
import io
import json
import math
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

from mqindex._needs import needing
from mqindex.cli.printing.output import json_line
from mqindex.cli.trouble import Trouble
from mqindex.wording.text import iso, printable

Columns = Mapping[str, Any]  # name -> ndarray or StringColumn, or an Arrow array, of equal lengths
Writer = Callable[[Iterator[Columns], str], None]
"""Batches, the first of which may be without a row, and the name of the command, for JSON."""

_WIDEST_TEXT = 40
_WIDEST_VALUE = 60  # of bytes and maps in a table for people
_OFFSET = 13
_OWN = "_base64"
_ESCAPED: Final = re.compile(r"\\(?:[nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_MS_OF: Final = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}  # times, divided by


def _own(batch: Columns) -> list[str]:
    """The names of the columns for bytes that are no UTF-8; `Trouble`: one is the name of another column."""
    own = [name + _OWN for name, column in batch.items() if _is_bytes(column)]
    for name in own:
        if name in batch:
            raise _taken(name)
    return own


def _taken(name: str) -> Trouble:
    base = name.removesuffix(_OWN)
    return Trouble(f"{name} has the bytes of {base} that are no UTF-8: expected another name for the other column")


def _lists(batch: Columns) -> Iterator[tuple[str, list[Any]]]:
    """The values of each column as text and numbers; of bytes a second column with those that are no UTF-8."""
    own = _own(batch)
    for name, column in batch.items():
        values = _values(column)
        if name + _OWN in own:
            texts = [_utf8(value) for value in values]
            yield name, texts
            yield name + _OWN, [_in_base64(value, text) for value, text in zip(values, texts, strict=True)]
        else:
            yield name, [_plain(value) for value in values] if _is_nested(column) else values


def _values(column: Any) -> list[Any]:
    """Python's values; times are ms since the epoch."""
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    if kind == "M":
        return [None if at == -(2**63) else at for at in column.astype("M8[ms]").astype("i8").tolist()]
    if str(getattr(column, "type", "")).startswith("timestamp"):  # of years that Python has not, too
        many, of = _MS_OF[column.type.unit]
        return [None if at is None else at * many // of for at in column.cast("int64").to_pylist()]
    try:
        values: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.tolist()
    except OverflowError:
        raise Trouble("a date is not of the years 1 to 9999: expected CAST(... AS VARCHAR) in the query") from None
    return values


def _is_bytes(column: Any) -> bool:
    from mqindex.columns.columns import BinaryColumn

    return isinstance(column, BinaryColumn) or "binary" in str(getattr(column, "type", "")).partition("<")[0]


def _is_nested(column: Any) -> bool:
    from mqindex.columns.columns import HeadersColumn

    return isinstance(column, HeadersColumn) or hasattr(column, "type")


def _utf8(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _in_base64(value: bytes | None, text: str | None) -> str | None:
    return None if value is None or text is not None else base64.b64encode(value).decode()


def _plain(value: Any) -> Any:
    """A value of JSON: of headers and of Arrow's types."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):  # a header, an entry of a map
        return _plain({"key": value[0], "value": value[1]})
    if isinstance(value, dict):
        fields: dict[str, Any] = {}
        for name, plain in (pair for key, one in value.items() for pair in _named(key, one)):
            if name in fields:
                raise _taken(name)
            fields[name] = plain
        return fields
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):  # JSON has no such number
        return str(value)
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _named(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, bytes):
        yield name, _plain(value)
        return
    yield name, (text := _utf8(value))
    if text is None:
        yield name + _OWN, _in_base64(value, text)


def _flat(value: Any) -> Any:
    """A value for one cell: a list or a map as JSON."""
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def rows_of(batch: Columns) -> int:
    """How many rows a batch has."""
    return len(next(iter(batch.values())))


def first_rows(batches: Iterator[Columns], limit: int | None) -> Generator[Columns]:
    """The first rows of all batches; None: all. An empty batch is passed on, for its names."""
    left = 2**63 if limit is None else limit
    for batch in batches:
        rows = rows_of(batch)
        yield batch if rows <= left else {name: column[:left] for name, column in batch.items()}
        left -= min(rows, left)
        if not left:
            return


# ---- for people


def _table(batches: Iterator[Columns], command: str) -> None:
    """Aligned columns, times as people write them. Widths come from the first rows; a longer text is not cut. A cell of
    nothing is empty, an empty text is `""`.
    """
    widths: list[int] = []
    names: list[str] = []
    for batch in batches:
        names = list(batch)
        times = [_is_time(name, column) for name, column in batch.items()]
        columns = [
            [_cell(value, is_time) for value in _shown(column)]
            for column, is_time in zip(batch.values(), times, strict=True)
        ]
        if not any(columns):
            continue
        if not widths:
            widths = list(map(_width, batch, batch.values(), columns, times))
            _aligned([list(batch)], widths)
        _aligned(zip(*columns, strict=True), widths)
    if names and not widths:
        _aligned([names], [-len(name) for name in names])


def _shown(column: Any) -> list[Any]:
    values = _values(column)
    return [_plain(value) for value in values] if _is_nested(column) and not _is_bytes(column) else values


def _unlike(text: str) -> str:
    """A text in one line, another one for each text. In one that is escaped, or looks so, each backslash is doubled."""
    ends = {at for at in (0, -1) if text == '""' or text[at] == " "} if text else set()
    if text.isprintable() and not ends and not _ESCAPED.search(text):
        return text or '""'
    shown = ["\\\\" if one == "\\" else one if one.isprintable() else _escaped(one) for one in text]
    for at in ends:
        shown[at] = f"\\x{ord(text[at]):02x}"
    return "".join(shown)


def _escaped(one: str) -> str:
    at = ord(one)
    if 0xDC80 <= at <= 0xDCFF:  # a byte that is no UTF-8
        return f"\\x{at - 0xDC00:02x}"
    return f"\\u{at:04x}" if 0x80 <= at <= 0xFF else one.encode("unicode_escape").decode()


def _beginning(value: bytes) -> str:
    text = value[: 4 * _WIDEST_VALUE + 4].decode(errors="surrogateescape")  # a character has four bytes at most
    shown = _unlike(text[: _WIDEST_VALUE + 1])
    return shown if len(shown) <= _WIDEST_VALUE else shown[: _WIDEST_VALUE - 1] + "…"


def _width(name: str, column: Any, cells: list[str], is_time: bool) -> int:
    """Numbers flush right, with room to grow where they are offsets; the rest flush left (negative)."""
    longest = max([len(name), *map(len, cells)])
    kind = getattr(column, "dtype", None) or str(getattr(column, "type", ""))
    if is_time or not str(kind).startswith(("int", "uint", "float", "double")):
        return -min(longest, max(_WIDEST_TEXT, len(name)))
    return max(longest, _OFFSET if str(kind).endswith("int64") else 0)


def _aligned(rows: Any, widths: Sequence[int]) -> None:
    for row in rows:
        cells = (f"{cell:{'<' if width < 0 else '>'}{abs(width)}}" for cell, width in zip(row, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _cell(value: Any, is_time: bool) -> str:
    if value is None or (is_time and value == -1):
        return ""
    if isinstance(value, bytes):
        return _beginning(value)
    if isinstance(value, str):
        return _unlike(value)
    return iso(value) if is_time and isinstance(value, int) else printable(_flat(value))


def _is_time(name: str, column: Any) -> bool:
    """By its type; of numbers, ms since the epoch, by its name."""
    kind = str(getattr(column, "dtype", None) or getattr(column, "type", ""))
    named = name in ("time", "timestamp") or name.endswith("_timestamp")
    return kind.startswith(("timestamp", "datetime64")) or (named and kind == "int64")


# ---- for programs


def _csv(batches: Iterator[Columns], command: str) -> None:
    """A cell of nothing is empty, an empty text is `""`. It is UTF-8 in any locale, in which other characters would be
    escaped. On a terminal control codes are, which would steer.
    """
    shown = printable if sys.stdout.isatty() else str
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")
    begun = False
    for batch in batches:
        lists = dict(_lists(batch))
        if not begun:
            begun = True
            _write_cells(lists, str)
        for row in zip(*lists.values(), strict=True):
            _write_cells(row, shown)


def _write_cells(row: Iterable[Any], shown: Callable[[str], str]) -> None:
    sys.stdout.write(",".join(_csv_cell(_flat(value), shown) for value in row) + "\n")


def _csv_cell(value: Any, shown: Callable[[str], str]) -> str:
    if not isinstance(value, str):
        return "" if value is None else str(value)
    text = shown(value)
    if text and not any(mark in text for mark in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _json(batches: Iterator[Columns], command: str) -> None:
    for batch in batches:
        if "schema" in batch:
            raise Trouble("schema is the name of the format in each line: expected another name for the column")
        lists, names = dict(_lists(batch)), _own(batch)
        own = [name in names for name in lists]
        for row in zip(*lists.values(), strict=True):
            cells = zip(lists, row, own, strict=True)
            fields = {name: value for name, value, other in cells if not (other and value is None)}
            sys.stdout.write(json_line(command, fields))


def _arrow(batches: Iterator[Columns], command: str) -> None:
    """An Arrow IPC stream."""
    pa = _pyarrow("arrow")
    stream = None
    for batch in batches:
        table = _arrow_table(pa, batch)
        if stream is None:
            stream = pa.ipc.new_stream(sys.stdout.buffer, table.schema)
        stream.write_table(table)
    if stream is not None:
        stream.close()


def _parquet(batches: Iterator[Columns], command: str) -> None:
    """A Parquet file, compressed with Zstandard; it is complete when its end is written."""
    pa = _pyarrow("parquet")
    import pyarrow.parquet as pq

    writer, sink = None, _Sink(sys.stdout.buffer)
    try:
        for batch in batches:
            table = _arrow_table(pa, batch)
            if writer is None:
                writer = pq.ParquetWriter(sink, table.schema, compression="zstd")
            if table.num_rows:
                writer.write_table(table)
        if writer is not None:
            writer.close()
    finally:
        sink.end()


class _Sink:
    """Where a Parquet file goes, until `end`: a writer that is dropped later writes a footer, as if all were there."""

    closed = False

    def __init__(self, target: BinaryIO) -> None:
        self._target: BinaryIO | None = target
        self._at = 0

    def write(self, data: Any) -> int:
        size = len(memoryview(data).cast("B"))
        if self._target is not None:
            self._target.write(data)
        self._at += size
        return size

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        if self._target is not None:
            self._target.flush()

    def close(self) -> None:
        """The target is another's."""

    def end(self) -> None:
        """Drop all that is still written."""
        self._target = None


def _pyarrow(form: str) -> Any:
    with needing(f"--format {form} needs pyarrow: pip install pyarrow", "pyarrow"):
        import pyarrow as pa
    if sys.stdout.isatty():
        raise Trouble(f"--format {form} writes binary data: send stdout to a file or a pipe")
    return pa


def _arrow_table(pa: Any, batch: Columns) -> Any:
    from mqindex.columns.columns import Columns as ArrowColumns

    return pa.table(batch if hasattr(batch, "__arrow_c_stream__") else ArrowColumns(batch))


FORMATS: Final[dict[str, Writer]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
    "arrow": _arrow,
    "parquet": _parquet,
}
