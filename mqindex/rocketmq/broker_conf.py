"""A broker's configuration as it is given, a mapping or a `broker.conf`: read, and refused if it is something else.

A broker ignores a name that it does not know, and so do we; but one that is nearly a known name is a misspelt one.
Of a broker.conf the values are those that the broker takes. No broker reads a mapping: a wrong value is an error.
Source: RocketMQ 4.0.0 to 5.5.0 `MixAll.properties2Object`, which drops every exception, so that the default stays.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from mqindex._rules import Broker
from mqindex._settings import Setting
from mqindex.errors import BadMagicError, FormatError, MQIndexError, path_of
from mqindex.files.reading.regular import reading_text
from mqindex.report import Value
from mqindex.rocketmq.brokers import MAPED_NAMES, TEXTS_TRIMMED
from mqindex.rocketmq.settings import BROKER_NAME, FLUSH_DISK_TYPE, FLUSH_DISK_TYPES, SETTINGS

Config = Mapping[str, Any] | str | os.PathLike[str]

_FORMER: Final = {one.former: one for one in SETTINGS.values() if one.former is not None}  # names of MAPED_NAMES
_NAMES: Final = frozenset((*SETTINGS, *_FORMER))
_OTHERS = frozenset(("brokerIP2", "brokerId", "haListenPort"))  # names of a broker that are nearly one of ours
_ALIKE = 2  # letters
_BLANKS = " \t\f"
_ASSIGNMENT = re.compile(r"((?:[^=: \t\f\\]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_OF_BROKERS = _NAMES - {"listenPort"} | {  # names that no configuration of another program has
    "abortFile", "allAckInSyncStateSet", "autoCreateSubscriptionGroup", "autoCreateTopicEnable", "brokerClusterName",
    "brokerId", "brokerIP2", "brokerRole", "defaultTopicQueueNums", "deleteWhen",
    "diskMaxUsedSpaceRatio", "fileReservedTime", "haListenPort", "namesrvAddr", "sendMessageThreadPoolNums",
    "slaveReadEnable", "storeCheckpoint", "storePathConsumeQueue", "storePathIndex", "storePathRootDir",
}  # fmt: skip
_MOST_BYTES = 1 << 20  # of a broker.conf
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?0*\d{1,10}")  # in the digits of every script, as `Character.digit` has it
_TRIMMED = "".join(map(chr, range(0x21)))  # what `String.trim` removes


class Given(NamedTuple):
    """Values by the newest brokers' names, as they were given. `file`: the broker.conf, which is complete; else None.

    `unlike`: settings that the broker has otherwise than the file says, each with what it takes and why.
    """

    values: Mapping[str, Any]
    file: str | None
    unlike: tuple[tuple[str, Value], ...] = ()


def read_config(config: Config | None, *, broker: Broker) -> Given:
    """The given settings, as the broker reads them.

    `ValueError`: a misspelt name, or one that only some versions read; `BadMagicError`: a file of another kind. What
    the broker takes otherwise than it is written is a warning.
    """
    if config is None:
        return Given({}, None)
    unlike: dict[str, Value] = {}
    old = broker.does(MAPED_NAMES)
    if isinstance(config, Mapping):
        file, values = None, dict(config)
        _refuse_misspelt(values, "config")
        _refuse_blanks(values)
    else:
        file = path_of("config", config)
        with blamed_on(file), _as_a_conf():
            values = dict(read_broker_conf(file))
        _require_broker_conf(file, values)
        with blamed_on(file):
            _refuse_misspelt(values, file)
            for name in values.keys() & _unread(old):
                del values[name]
            unlike = _as_taken(values, file, trims=broker.does(TEXTS_TRIMMED))
    with blamed_on(file):
        values = _by_new_names(values, old)
    for name, taken in unlike.items():
        warnings.warn(f"{name}: {taken.value}, {taken.source}", stacklevel=2)
    return Given(values, file, tuple(unlike.items()))


def _unread(old: bool | None) -> set[str]:
    """The names that a broker does not read."""
    return set() if old is None else {one.name for one in _FORMER.values()} if old else set(_FORMER)


def _by_new_names(values: Mapping[str, Any], old: bool | None) -> dict[str, Any]:
    """The values that the broker takes, without old names. Many a configuration of a newer broker has them still."""
    found = {name: value for name, value in values.items() if name not in _FORMER}
    for name, new in _FORMER.items():
        if name not in values:
            continue
        said, later = new.parser(name, values[name], 1), values.get(new.name, new.default)
        if old is None and said != new.parsed(later):
            raise ValueError(
                f"{name}: only brokers {MAPED_NAMES.brokers} read this name, later ones have {new.name}={later} "
                "here; broker_version= (--broker-version) says which it is"
            )
        if old:
            found[new.name] = said
    return found


def _as_taken(values: dict[str, str], file: str, *, trims: bool | None) -> dict[str, Value]:
    """Make these texts what a broker takes of them; gives those that are not what is written there.

    What is ignored is left out. `trims`: of brokers.TEXTS_TRIMMED; None: it is not known.

    >>> values = {"maxIndexNum": "4M", "maxHashSlotNum": "+7"}
    >>> _as_taken(values, "broker.conf", trims=None)["maxIndexNum"].value, values
    (20000000, {'maxHashSlotNum': '+7'})
    """
    unlike = {}
    for name in [one for one in values if one in _NAMES]:
        said, row = values[name], SETTINGS.get(name) or _FORMER[name]
        if isinstance(row.default, bool):
            values[name] = str(said.lower() == "true").lower()
            if said.lower() not in ("true", "false"):
                unlike[name] = Value("false", f"as the broker takes {said!r:.60} of {file}")
            continue
        if isinstance(row.default, str) and row is not BROKER_NAME:  # which decides nothing: its blanks are no question
            values[name] = said = _trimmed(name, said, trims)
        if _is_ignored(row, said):
            del values[name]
            unlike[name] = Value(row.default, f"the broker's default, as it ignores {said!r:.60} of {file}")
    return unlike


def _is_ignored(row: Setting[Any], said: str) -> bool:
    if isinstance(row.default, int):
        return _NUMBER.fullmatch(said) is None or not -(2**31) <= int(said) < 2**31
    return row is FLUSH_DISK_TYPE and said not in FLUSH_DISK_TYPES


def _trimmed(name: str, said: str, trims: bool | None) -> str:
    plain = said.strip(_TRIMMED)
    if trims is None and said != plain:
        raise ValueError(
            f"{name}: a broker before {TEXTS_TRIMMED.since} keeps the blank before or after {said!r:.60}, later ones "
            "remove it; broker_version= (--broker-version) says which it is"
        )
    return plain if trims else said


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
        meant = None if name in _NAMES or name in _OTHERS else _meant(str(name))
        if meant is not None:
            raise ValueError(f"{name}: expected {meant}; no broker has a setting {name} (in {source})")


def _refuse_blanks(values: Mapping[str, Any]) -> None:
    """Of a mapping: what was meant is not known."""
    for name, value in values.items():
        plain = value.strip() if isinstance(value, str) else value
        if name in _NAMES and value != plain and plain.lower() != "false":
            raise ValueError(
                f"{name}: expected no blank before or after the value, got {value!r}: a broker ignores such a number, "
                f"takes such a switch as off, and before {TEXTS_TRIMMED.since} keeps the blank of a text; give what "
                "the broker has"
            )


def _meant(name: str) -> str | None:
    """The setting that a name is nearest to, within two letters, whatever its case and its underscores."""
    plain = _plain(name)
    apart = {one: _letters_apart(plain, _plain(one)) for one in (*sorted(SETTINGS), *_FORMER)}
    nearest = min(apart, key=apart.__getitem__)
    return nearest if apart[nearest] <= _ALIKE else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _letters_apart(one: str, other: str) -> int:
    """How many letters are wrong, missing or too many (Levenshtein's distance); of more than two only that."""
    if abs(len(one) - len(other)) > _ALIKE:
        return _ALIKE + 1
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, row = row, [at]
        for column, wanted in enumerate(other, 1):
            row.append(min(before[column] + 1, row[-1] + 1, before[column - 1] + (letter != wanted)))
        if min(row) > _ALIKE:
            return _ALIKE + 1
    return row[-1]
