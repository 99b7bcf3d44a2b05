"""A broker's configuration as it is given, a mapping or a `broker.conf`: read, and refused if it is something else.

A broker ignores a name that it does not know, and so do we; but one that is nearly a known name is a misspelt one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from mqindex.columns.limits import no_whole_number, whole_number_from
from mqindex.errors import BadMagicError, FormatError, MQIndexError, path_of
from mqindex.files.regular import reading_text

__all__ = ["SETTINGS", "Config", "Settings", "blamed_on", "read_broker_conf", "read_settings", "whole_setting"]

Config = Mapping[str, Any] | str | os.PathLike[str]

SETTINGS: Final = frozenset((
    "autoMessageVersionOnTopicLen", "brokerIP1", "checkCRCOnRecover", "commitLogRecoverMaxNum",
    "configManagerVersion", "duplicationEnable", "enableAcceleratedRecovery", "enableConsumeQueueExt",
    "enableControllerMode", "enabledAppendPropCRC", "enableDLegerCommitLog", "enableLmq", "enableMultiDispatch",
    "flushCommitLogLeastPages", "flushCommitLogThoroughInterval", "flushDiskType", "flushIntervalCommitLog",
    "indexFileWriteEnable", "indexRocksDBEnable", "listenPort", "mapedFileSizeCommitLog",
    "mapedFileSizeConsumeQueue", "mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue",
    "mappedFileSizeConsumeQueueExt", "mappedFileSizeTimerLog", "maxHashSlotNum", "maxIndexNum", "maxMessageSize",
    "maxTransferBytesOnMessageInMemory", "maxTransferCountOnMessageInMemory", "messageDelayLevel",
    "messageIndexEnable", "messageIndexSafe", "readOnlyCommitLogStorePaths", "recheckReputOffsetFromCq",
    "rocksdbCQDoubleWriteEnable", "storePathCommitLog", "storeType", "timerWheelEnable", "timerWheelSnapshotFlush",
    "transRocksDBEnable",
))  # fmt: skip
"""Every name that is read anywhere; a broker has hundreds more."""

_OLD_NAMES = {  # a 4.4 broker knows only these
    "mapedFileSizeCommitLog": "mappedFileSizeCommitLog",
    "mapedFileSizeConsumeQueue": "mappedFileSizeConsumeQueue",
}
_OTHERS = frozenset(("brokerIP2", "brokerId", "haListenPort"))  # names of a broker that are nearly one of ours
_ALIKE = 2  # letters
_ASSIGNMENT = re.compile(r"^\s*((?:[^=:\s\\]|\\.)+)\s*[=:\s]\s*(.*)$", re.DOTALL)
_BROKER_NAME = re.compile(r"[a-z][a-z0-9]*[A-Z]\w*", re.ASCII)  # all of a broker's are written like this
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


class Settings(NamedTuple):
    """Values by the newest brokers' names. `file`: the broker.conf, which is complete; None: perhaps a part only."""

    values: Mapping[str, Any]
    source: str
    file: str | None


def read_settings(config: Config | None) -> Settings:
    """The given settings. `ValueError`: a misspelt name; `BadMagicError`: a file of another kind."""
    if config is None:
        return Settings({}, "given", None)
    if isinstance(config, Mapping):
        values, source, file = dict(config), "config", None
    else:
        file = source = path_of("config", config)
        values = dict(read_broker_conf(file))
        _require_broker_conf(file, values)
    with blamed_on(file):
        _refuse_misspelt(values, source)
    return Settings({_OLD_NAMES.get(name, name): value for name, value in values.items()} | values, source, file)


@contextmanager
def blamed_on(file: str | None) -> Iterator[None]:
    """A setting that is wrong is a `ValueError`; one of a file is a `FormatError` that names the file."""
    try:
        yield
    except ValueError as error:
        if file is None or isinstance(error, MQIndexError):
            raise
        raise FormatError(str(error), path=file) from error


def whole_setting(name: str, value: Any, *, least: int = 0) -> int:
    """The number of a setting, also as text, no larger than a broker's int can be.

    >>> whole_setting("maxIndexNum", "9" * 12)
    Traceback (most recent call last):
    ValueError: maxIndexNum: expected a whole number from 0 to 2147483647, got '999999999999'
    """
    try:
        return whole_number_from(least, name, int(value) if isinstance(value, str) else value)
    except (TypeError, ValueError):
        raise ValueError(no_whole_number(least, name, value)) from None


def read_broker_conf(path: str | os.PathLike[str]) -> dict[str, str]:
    """The assignments of a `broker.conf`, a Java properties file."""
    with reading_text(os.fspath(path), errors="replace") as file:
        text = file.read()
    logical = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*", r"\1", text)
    found: dict[str, str] = {}
    for line in logical.splitlines():
        if line.lstrip()[:1] in ("", "#", "!"):
            continue
        match = _ASSIGNMENT.match(line)
        name, value = match.groups() if match else (line.strip(), "")
        found[_unescape(name)] = _unescape(value).strip()
    return found


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match.group(1)
        return chr(int(code[1:], 16)) if len(code) == 5 else _CONTROLS.get(code, code)

    return _ESCAPE.sub(plain, text)


def _require_broker_conf(path: str, values: Mapping[str, str]) -> None:
    """A file of another kind, `/etc/passwd` or a Kafka server.properties, sets nothing: all would be defaults."""
    if not any(_BROKER_NAME.fullmatch(name) and value for name, value in values.items()):
        raise BadMagicError(
            "not a broker's configuration",
            path=path,
            expected="lines such as brokerName=broker-a or maxHashSlotNum=5000000",
            got="none",
        )


def _refuse_misspelt(names: Iterable[Any], source: str) -> None:
    for name in names:
        meant = None if name in SETTINGS or name in _OTHERS else _meant(str(name))
        if meant is not None:
            raise ValueError(f"{name}: expected {meant}; no broker has a setting {name} (in {source})")


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
