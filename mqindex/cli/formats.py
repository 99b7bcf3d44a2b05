"""The formats of `mqindex dump`: each writes batches of columns to stdout as they come, and keeps none of them."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from mqindex._needs import needing
from mqindex.cli.output import json_line
from mqindex.cli.trouble import Trouble
from mqindex.wording.text import iso, printable

Columns = Mapping[str, Any]  # name -> ndarray or StringColumn, of equal lengths
Writer = Callable[[Iterator[Columns]], None]

_WIDEST_TEXT = 40
_OFFSET = 13


def _lists(batch: Columns) -> Iterator[list[Any]]:
    """The values of each column; bytes as text, escaped where they are not UTF-8."""
    from mqindex.columns.columns import BinaryColumn, HeadersColumn

    for column in batch.values():
        if isinstance(column, BinaryColumn):
            yield [_text(value) for value in column.to_pylist()]
        elif isinstance(column, HeadersColumn):
            yield [[{"key": key, "value": _text(value)} for key, value in row] for row in column.to_pylist()]
        else:
            yield column.to_pylist() if hasattr(column, "to_pylist") else column.tolist()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")


def _flat(value: Any) -> Any:
    """A value for one cell: a list as JSON, an empty one as nothing."""
    return (json.dumps(value) if value else None) if isinstance(value, list) else value


def _steerless(value: Any) -> Any:
    value = _flat(value)
    return printable(value) if isinstance(value, str) else value


def _table(batches: Iterator[Columns]) -> None:
    """Aligned columns, times as people write them. Widths come from the first batch; a longer value is not cut."""
    widths: list[int] = []
    for batch in batches:
        columns = [[_cell(name, value) for value in values] for name, values in zip(batch, _lists(batch), strict=True)]
        if not widths:
            widths = [_width(name, batch[name], cells) for name, cells in zip(batch, columns, strict=True)]
            _aligned([list(batch)], widths)
        _aligned(zip(*columns, strict=True), widths)


def _width(name: str, column: Any, cells: list[str]) -> int:
    """Numbers flush right, with room to grow where they are offsets; the rest flush left (negative)."""
    longest = max([len(name), *map(len, cells)])
    if _is_time(name) or hasattr(column, "to_pylist"):
        return -min(longest, _WIDEST_TEXT)
    return max(longest, _OFFSET if column.dtype.itemsize == 8 else 0)


def _aligned(rows: Any, widths: Sequence[int]) -> None:
    for row in rows:
        cells = (f"{cell:{'<' if width < 0 else '>'}{abs(width)}}" for cell, width in zip(row, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _cell(name: str, value: Any) -> str:
    value = _flat(value)
    if value is None or (value == -1 and _is_time(name)):
        return ""
    return iso(value) if _is_time(name) else printable(value)


def _is_time(name: str) -> bool:
    return name in ("time", "timestamp") or name.endswith("_timestamp")


def _csv(batches: Iterator[Columns]) -> None:
    """Every cell as it is; on a terminal, which control codes of a record would steer, in one line without them."""
    cell = _steerless if sys.stdout.isatty() else _flat
    writer = csv.writer(sys.stdout, lineterminator="\n")
    names: list[str] = []
    for batch in batches:
        if not names:
            names = list(batch)
            writer.writerow(names)
        writer.writerows([cell(value) for value in row] for row in zip(*_lists(batch), strict=True))


def _json(batches: Iterator[Columns]) -> None:
    for batch in batches:
        names = list(batch)
        for row in zip(*_lists(batch), strict=True):
            sys.stdout.write(json_line("dump", dict(zip(names, row, strict=True))))


def _arrow(batches: Iterator[Columns]) -> None:
    """An Arrow IPC stream."""
    from mqindex.columns.columns import Columns as ArrowColumns

    with needing("--format arrow needs pyarrow: pip install pyarrow", "pyarrow"):
        import pyarrow as pa
    if sys.stdout.isatty():
        raise Trouble("--format arrow writes binary data: send stdout to a file or a pipe")
    stream = None
    for batch in batches:
        table = pa.table(ArrowColumns(batch))
        if stream is None:
            stream = pa.ipc.new_stream(sys.stdout.buffer, table.schema)
        stream.write_table(table)
    if stream is not None:
        stream.close()


FORMATS: Final[dict[str, Writer]] = {"table": _table, "csv": _csv, "json": _json, "arrow": _arrow}
