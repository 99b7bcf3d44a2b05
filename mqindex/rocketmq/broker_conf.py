"""A broker's configuration as it is given, a mapping or a `broker.conf`: read, and refused if it is something else.

A broker ignores a name that it does not know, and so do we; but one that is nearly a known name is a misspelt one.
Of a broker.conf the values are those that the broker takes. No broker reads a mapping: a wrong value is an error.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from mqindex._rules import Broker
from mqindex.columns.limits import no_whole_number, whole_number_from
from mqindex.errors import BadMagicError, FormatError, MQIndexError, path_of
from mqindex.files.reading.regular import reading_text
from mqindex.report import Value
from mqindex.rocketmq.brokers import MAPED_NAMES, TEXTS_TRIMMED
from mqindex.rocketmq.settings import SETTINGS, as_taken

Config = Mapping[str, Any] | str | os.PathLike[str]

_OLD_NAMES: Final = {  # names of MAPED_NAMES: the later names
    "mapedFileSizeCommitLog": "mappedFileSizeCommitLog",
    "mapedFileSizeConsumeQueue": "mappedFileSizeConsumeQueue",
}
_OTHERS = frozenset(("brokerIP2", "brokerId", "haListenPort"))  # names of a broker that are nearly one of ours
_ALIKE = 2  # letters
_BLANKS = " \t\f"
_ASSIGNMENT = re.compile(r"((?:[^=: \t\f\\]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_OF_BROKERS = SETTINGS.keys() - {"listenPort"} | {  # names that no configuration of another program has
    "abortFile", "allAckInSyncStateSet", "autoCreateSubscriptionGroup", "autoCreateTopicEnable", "brokerClusterName",
    "brokerId", "brokerIP2", "brokerName", "brokerRole", "defaultTopicQueueNums", "deleteWhen",
    "diskMaxUsedSpaceRatio", "fileReservedTime", "haListenPort", "namesrvAddr", "sendMessageThreadPoolNums",
    "slaveReadEnable", "storeCheckpoint", "storePathConsumeQueue", "storePathIndex", "storePathRootDir",
}  # fmt: skip
_MOST_BYTES = 1 << 20  # of a broker.conf
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


class Settings(NamedTuple):
    """Values by the newest brokers' names. `file`: the broker.conf, which is complete; None: perhaps a part only.

    `unlike`: settings that the broker has otherwise than the file says, each with what it takes and why.
    """

    values: Mapping[str, Any]
    source: str
    file: str | None
    unlike: tuple[tuple[str, Value], ...] = ()


def read_settings(config: Config | None, *, broker: Broker) -> Settings:
    """The given settings, as the broker reads them.

    `ValueError`: a misspelt name, or one that only some versions read; `BadMagicError`: a file of another kind. What
    the broker takes otherwise than it is written is a warning.
    """
    old, trims = broker.does(MAPED_NAMES), broker.does(TEXTS_TRIMMED)
    unlike: list[tuple[str, Value]] = []
    if config is None:
        return Settings({}, "given", None)
    if isinstance(config, Mapping):
        values, source, file = dict(config), "config", None
    else:
        file = source = path_of("config", config)
        with blamed_on(file), _as_a_conf():
            values = dict(read_broker_conf(file))
        _require_broker_conf(file, values)
    with blamed_on(file):
        _refuse_misspelt(values, source)
        if file is None:
            _refuse_blanks(values)
        else:
            unread = () if old is None else _OLD_NAMES.values() if old else _OLD_NAMES.keys()
            values = {name: value for name, value in values.items() if name not in unread}
            values, unlike = as_taken(values, file, trims=trims)
        values = _by_new_names(values, old)
    for name, taken in unlike:
        warnings.warn(f"{name}: {taken.value}, {taken.source}", stacklevel=2)
    return Settings(values, source, file, tuple(unlike))


def _by_new_names(values: Mapping[str, Any], old: bool | None) -> dict[str, Any]:
    """The values that the broker takes, without old names. Many a configuration of a newer broker has them still."""
    found = {name: value for name, value in values.items() if name not in _OLD_NAMES}
    for name, new in _OLD_NAMES.items():
        if name not in values:
            continue
        said, later = whole_setting(name, values[name], least=1), values.get(new, SETTINGS[new].default)
        if old is None and said != whole_setting(new, later, least=1):
            raise ValueError(
                f"{name}: only brokers {MAPED_NAMES.brokers} read this name, later ones have {new}={later} "
                "here; broker_version= (--broker-version) says which it is"
            )
        if old:
            found[new] = said
    return found


@contextmanager
def _as_a_conf() -> Iterator[None]:
    """The error of a file that is not there, or that is none, says which one is expected."""
    try:
        yield
    except OSError as error:
        error.strerror = f"{error.strerror}; --broker-conf (config=) is the file that the broker starts with"
        raise


@contextmanager
def blamed_on(file: str | None) -> Iterator[None]:
    """A setting that is wrong is a `ValueError`; the error of one of a file names the file."""
    try:
        yield
    except MQIndexError as error:
        error.path = error.path or file
        raise
    except ValueError as error:
        if file is None:
            raise
        raise FormatError(str(error), path=file) from error


def whole_setting(name: str, value: Any, *, least: int = 0) -> int:
    """The number of a setting, also as text, no larger than a broker's int can be.

    >>> whole_setting("maxIndexNum", "9" * 12)
    Traceback (most recent call last):
    ValueError: maxIndexNum: expected a whole number from 0 to 2147483647, got '999999999999'
    """
    try:
        return whole_number_from(least, name, int(value) if isinstance(value, str) and "_" not in value else value)
    except (TypeError, ValueError):
        raise ValueError(no_whole_number(least, name, value)) from None


def read_broker_conf(path: str | os.PathLike[str]) -> dict[str, str]:
    """The assignments of a `broker.conf`, as the broker reads them: `java.util.Properties.load` of a stream of bytes.

    So the bytes are Latin-1, and blanks after a value belong to it.
    """
    with reading_text(os.fspath(path), encoding="latin-1") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise _not_a_conf(os.fspath(path), f"more than {_MOST_BYTES} bytes")
    found: dict[str, str] = {}
    for line in _logical_lines(iter(text.split("\n"))):
        name, value = _ASSIGNMENT.findall(line)[0]
        found[_unescape(name)] = _unescape(value)
    return found


def _logical_lines(lines: Iterator[str]) -> Iterator[str]:
    """Lines without comments; one that ends with a backslash goes on in the next, a comment never does."""
    for line in lines:
        part = line.lstrip(_BLANKS)
        if part[:1] in ("", "#", "!"):
            continue
        parts = []
        while _goes_on(part):
            parts.append(part[:-1])
            if not any(parts):  # nothing before the backslash: the next line is one of its own
                break
            part = next(lines, "").lstrip(_BLANKS)
        else:
            yield "".join([*parts, part])


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match.group(1)
        if code == "u":
            raise ValueError(f"expected four hexadecimal digits after \\u, got {text!r:.60}: no broker starts with it")
        return chr(int(code[1:], 16)) if len(code) == 5 else _CONTROLS.get(code, code)

    return _ESCAPE.sub(plain, text)


def _require_broker_conf(path: str, values: Mapping[str, str]) -> None:
    """A file of another kind, `/etc/passwd` or a Kafka server.properties, sets nothing: all would be defaults."""
    if not any(name in _OF_BROKERS and value for name, value in values.items()):
        raise _not_a_conf(path, "none")


def _not_a_conf(path: str, got: str) -> BadMagicError:
    expected = "lines such as brokerName=broker-a or maxHashSlotNum=5000000"
    return BadMagicError("not a broker's configuration", path=path, expected=expected, got=got)


def _refuse_misspelt(names: Iterable[Any], source: str) -> None:
    for name in names:
        meant = None if name in SETTINGS or name in _OTHERS else _meant(str(name))
        if meant is not None:
            raise ValueError(f"{name}: expected {meant}; no broker has a setting {name} (in {source})")


def _refuse_blanks(values: Mapping[str, Any]) -> None:
    """Of a mapping: what was meant is not known."""
    for name, value in values.items():
        plain = value.strip() if isinstance(value, str) else value
        if name in SETTINGS and value != plain and plain.lower() != "false":
            raise ValueError(
                f"{name}: expected no blank before or after the value, got {value!r}: a broker ignores such a number, "
                f"takes such a switch as off, and before {TEXTS_TRIMMED.since} keeps the blank of a text; give what "
                "the broker has"
            )


def _meant(name: str) -> str | None:
    """The setting that a name is within two letters of, whatever its case and its underscores."""
    plain = _plain(name)
    return next((one for one in sorted(SETTINGS) if _alike(plain, _plain(one))), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _alike(one: str, other: str) -> bool:
    """Whether at most two letters are wrong, missing or too many (Levenshtein's distance)."""
    if abs(len(one) - len(other)) > _ALIKE:
        return False
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, row = row, [at]
        for column, wanted in enumerate(other, 1):
            row.append(min(before[column] + 1, row[-1] + 1, before[column - 1] + (letter != wanted)))
        if min(row) > _ALIKE:
            return False
    return row[-1] <= _ALIKE
