"""How results are printed: JSON lines for programs, tables for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from mqindex.wording.text import printable, shell_command

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_WIDEST_CELL = 60  # up to which others are aligned
_WIDE = 1 << 16  # a pipe has no width: nothing is cut or folded there
_GAP = "  "  # between the columns of a table
_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def json_line(command: str, fields: Mapping[str, Any]) -> str:
    """One object in one line, its schema first. ASCII, so that it survives any locale and any key."""
    import json

    return json.dumps({"schema": f"mqindex.{command}/1", **fields}, default=_plain) + "\n"


def print_json(command: str, fields: Mapping[str, Any]) -> None:
    """Print one JSON line."""
    sys.stdout.write(json_line(command, fields))


def _plain(value: Any) -> Any:
    for convert in ("tolist", "__fspath__"):  # NumPy's values and arrays; paths
        if hasattr(value, convert):
            return getattr(value, convert)()
    return str(value)


def command_line(name: str, path: str, *options: str) -> str:
    """A command for the reader's shell. A path that begins with - would be taken for an option.

    >>> command_line("verify", "-d/my store", "--deep")
    "mqindex verify './-d/my store' --deep"
    """
    return shell_command(["mqindex", name, os.path.join(".", path) if path.startswith("-") else path, *options])


def print_line(text: str = "") -> None:
    """Print one line for people."""
    sys.stdout.write(printable(text) + "\n")


def print_paragraph(text: str, *, indent: int = 0, style: str = "") -> None:
    """Print text that is folded between words on a terminal; in a pipe it stays one line. `style`: a severity."""
    if _is_in_a_pipe():
        print_line((" " * indent + text).rstrip())
        return
    from rich.padding import Padding
    from rich.text import Text

    words = Text(printable(text), overflow="fold")
    if style:
        words.stylize(_STYLES[style], 0, text.find(".") if "." in text else None)
    _print(Padding(words, (0, 0, 0, indent), expand=False))


def print_table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A small table, in full: on a terminal long cells are folded, in a pipe every row is one line.

    Columns whose cells are all numbers are set flush right; an empty column is left out.
    """
    from rich.table import Table
    from rich.text import Text

    cells = [["" if cell is None else cell for cell in row] for row in rows]
    used = [i for i in range(len(titles)) if any(row[i] != "" for row in cells)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i in used:
        numbers = all(isinstance(row[i], int) or row[i] == "" for row in cells)
        table.add_column(titles[i], justify="right" if numbers else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(printable(row[i]), style=_STYLES.get(str(row[i]), "")) for i in used))
    _print(table)


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Names and values, a line each; None is left out."""
    rows = [(f"  {printable(name)}", printable(value)) for name, value in fields if value is not None]
    if _is_in_a_pipe():
        widest = max((len(name) for name, _ in rows), default=0)
        sys.stdout.writelines(f"{name:<{widest}}{_GAP}{value}".rstrip() + "\n" for name, value in rows)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, len(_GAP), 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    _print(table)


def _is_in_a_pipe() -> bool:
    """Nothing is folded or coloured there, so that Rich need not be loaded, a sixth of a short command."""
    return not sys.stdout.isatty() and not os.environ.get("FORCE_COLOR")


def _print(shown: RenderableType) -> None:
    console = _console(sys.stdout)
    with console.capture() as captured:
        console.print(shown)
    for line in captured.get().splitlines():
        sys.stdout.write(line.rstrip() + "\n")


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=stream, width=None if stream.isatty() else _WIDE, markup=False, highlight=False, emoji=False)


class Column(NamedTuple):
    """A column of `Rows`. Numbers, of at most `width` digits, are set flush right; width 0: text, the last column."""

    title: str
    width: int = 0


class Rows:
    """A table of any length, written as it comes: the widths are given beforehand, and never cut a value."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._begun = False

    def write(self, rows: Iterable[Sequence[object]]) -> None:
        """Append rows; the titles come with the first."""
        for row in rows:
            if not self._begun:
                self._begun = True
                self._line([column.title for column in self._columns])
            self._line(row)

    def _line(self, cells: Sequence[object]) -> None:
        padded = (
            f"{'' if cell is None else printable(cell):>{max(column.width, len(column.title)) if column.width else 0}}"
            for cell, column in zip(cells, self._columns, strict=True)
        )
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


class Aligned:
    """A table of any length, written as it comes: the first rows give the widths, and no value is ever cut."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._titles = titles
        self._widths: list[int] = []

    def write(self, rows: Sequence[Sequence[object]]) -> None:
        """Append rows; the titles come with the first."""
        lines = [["" if cell is None else printable(cell) for cell in row] for row in rows]
        if lines and not self._widths:
            lines.insert(0, list(self._titles))
            self._widths = [min(max(map(len, column)), _WIDEST_CELL) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = (f"{cell:<{width}}" for cell, width in zip(line, self._widths, strict=True))
            sys.stdout.write("  ".join(cells).rstrip() + "\n")
