"""The JSON files of `<store>/config`, as a broker writes them: maps with numbers for keys leave these unquoted.

Each save keeps the previous content in `<name>.bak`. A broker takes the file, or the `.bak` where the file is missing,
empty or no JSON (RocketMQ 4.9.3 `ConfigManager.load`); so does `load_side_json`. What fastjson takes was tried with the
brokers 4.9.3 and 5.5.0. A save deletes the file before it renames the new one, or writes into it
(`MixAll.string2File`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from mqindex.errors import FormatError
from mqindex.files import disk
from mqindex.files.reading.regular import reading

_T = TypeVar("_T")
_PAUSES: Final = (0.01, 0.03)  # seconds before another look: a save takes less
_REMOVE = "restore the file, or remove it: the broker then starts without"

# A string as a whole, so that nothing inside one is touched; else a name without quotes after `{` or `,`.
_BARE_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|([{,]\s*)(-?[^\W\d][\w%$-]*|-?\d+)(?=\s*:)', re.DOTALL)


def parse_side_json(text: str) -> dict[str, Any]:
    """The object that the text is.

    >>> parse_side_json('{"offsetTable":{"TopicA@GroupA":{0:12,1:9}}}')
    {'offsetTable': {'TopicA@GroupA': {'0': 12, '1': 9}}}
    """
    found = json_value(text)
    if not isinstance(found, dict):
        raise FormatError("no JSON object", expected="an object", got=in_json(found))
    return found


def json_value(text: str) -> Any:
    """What the text is, of whatever kind; brokers pass over zeros and a byte order mark around it."""
    try:
        return json.loads(_BARE_NAME.sub(_quoted, text.strip("\0\ufeff")))
    except json.JSONDecodeError as error:
        raise FormatError("no JSON", at=error.pos, got=error.msg) from error
    except (RecursionError, ValueError) as error:  # thousands of nested brackets, a number of thousands of digits
        raise FormatError("no JSON that a broker wrote", got=str(error)) from error


def in_json(value: Any) -> str:
    """What a value is, in the words of the file: null, not None.

    >>> in_json(None), in_json(True), in_json([1])
    ('null', 'true', 'an array')
    """
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "an array"
    return json.dumps(value, ensure_ascii=False)[:60]


def _quoted(match: re.Match[str]) -> str:
    before, name = match.groups()
    return match[0] if name is None else f'{before}"{name}"'


def saved(path: str) -> bytes:
    """The content of the file or of a `.bak`, with another look where it may be that a broker just saves it."""
    for pause in _PAUSES:
        try:
            content = _content(path)
        except FileNotFoundError:
            if not disk.is_there(f"{path}.bak"):
                raise
        else:
            if content.rstrip(b"\0 \t\r\n").endswith(b"}"):
                return content
        time.sleep(pause)
    return _content(path)


def _content(path: str) -> bytes:
    with reading(path) as file:
        return file.read()


def load_side_json(path: str, read: Callable[[dict[str, Any]], _T]) -> _T | None:
    """The result of `read` on the file, or on its `.bak`; None where neither has content.

    `read` raises `FormatError` for an object of another kind; then the `.bak` is tried too. Where neither can be read,
    the error is the file's own.
    """
    first: FormatError | None = None
    for name in (path, path + ".bak"):
        try:
            text = saved(name).decode(errors="replace")
            if text.strip():
                return read(parse_side_json(text))
        except (FileNotFoundError, NotADirectoryError):  # no file either where config/ is none
            continue
        except IsADirectoryError:
            first = first or FormatError("a directory, not a file", path=name, hint=_REMOVE)
        except FormatError as error:
            first = first or FormatError(
                error.what, path=name, at=error.at, field=error.field, expected=error.expected, got=error.got,
                hint=_REMOVE,
            )  # fmt: skip
    if first is not None:
        raise first
    return None


def table_of(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table of that name; a file may lack it."""
    table = found.get(name, {})
    if not isinstance(table, dict):
        raise FormatError("not a table", field=name, expected="an object", got=in_json(table))
    return table


def tables_of(found: Mapping[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """The table of that name, of which each item is one."""
    table = table_of(found, name)
    return {each: table_of(table, each) for each in table}


def whole_number(value: Any, field: str) -> int:
    """A number that fits 64 bits; fastjson also takes it as a string or a truth value, and cuts off a fraction."""
    try:
        number = int(value) if isinstance(value, (int, float, str)) else None
    except (OverflowError, ValueError):
        number = None
    if number is None or not -(2**63) <= number < 2**63:
        raise FormatError("not a whole number", field=field, expected="64 bits", got=in_json(value))
    return number
