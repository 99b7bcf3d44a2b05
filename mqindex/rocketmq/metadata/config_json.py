"""The JSON files of `<store>/config`, as a broker writes them: maps with numbers for keys leave these unquoted.

Each save keeps the previous content in `<name>.bak`. A broker takes the file, or the `.bak` where the file is missing,
empty or no JSON (RocketMQ 4.9.3 `ConfigManager.load`); so does `load_side_json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mqindex.errors import FormatError
from mqindex.files.regular import reading

__all__ = ["load_side_json", "parse_side_json", "table_of", "whole_number"]

_T = TypeVar("_T")

# A string as a whole, so that nothing inside one is touched; else a name without quotes after `{` or `,`.
_BARE_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|([{,]\s*)(-?[^\W\d][\w%$-]*|-?\d+)(?=\s*:)', re.DOTALL)


def parse_side_json(text: str) -> dict[str, Any]:
    """The object that the text is.

    >>> parse_side_json('{"offsetTable":{"TopicA@GroupA":{0:12,1:9}}}')
    {'offsetTable': {'TopicA@GroupA': {'0': 12, '1': 9}}}
    """
    try:
        found = json.loads(_BARE_NAME.sub(_quoted, text))
    except json.JSONDecodeError as error:
        raise FormatError("no JSON", at=error.pos, got=error.msg) from error
    except (RecursionError, ValueError) as error:  # thousands of nested brackets, a number of thousands of digits
        raise FormatError("no JSON that a broker wrote", got=str(error)) from error
    if not isinstance(found, dict):
        raise FormatError("no JSON object", expected="an object", got=type(found).__name__)
    return found


def _quoted(match: re.Match[str]) -> str:
    before, name = match.groups()
    return match[0] if name is None else f'{before}"{name}"'


def load_side_json(path: str, read: Callable[[dict[str, Any]], _T]) -> _T | None:
    """The result of `read` on the file, or on its `.bak`; None where neither has content.

    `read` raises `FormatError` for an object of another kind; then the `.bak` is tried too. Where neither can be read,
    the error is the file's own.
    """
    first: FormatError | None = None
    for name in (path, path + ".bak"):
        try:
            with reading(name) as file:
                text = file.read().decode(errors="replace")
        except FileNotFoundError:
            continue
        if not text.strip("\0 \t\r\n"):  # a power failure leaves zeros
            continue
        try:
            return read(parse_side_json(text))
        except FormatError as error:
            first = first or FormatError(
                error.what, path=name, at=error.at, field=error.field, expected=error.expected, got=error.got,
                hint="restore the file, or remove it: the broker then starts without",
            )  # fmt: skip
    if first is not None:
        raise first
    return None


def table_of(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table of that name; a file may lack it."""
    table = found.get(name)
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise FormatError("not a table", field=name, expected="an object", got=type(table).__name__)
    return table


def whole_number(value: Any, field: str) -> int:
    """A number that fits 64 bits; fastjson also takes it as a string."""
    try:
        number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None or not -(2**63) <= number < 2**63:
        raise FormatError("not a whole number", field=field, expected="64 bits", got=repr(value)[:60])
    return number
