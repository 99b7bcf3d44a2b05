"""The ids in a log dir's `meta.properties` and a partition's `partition.metadata`, as a broker that starts reads them.

Source: Kafka 4.1.0 `MetaProperties`, `PartitionMetadataReadBuffer`, `Uuid`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Final

from mqindex.errors import MQIndexError
from mqindex.files.paths import join
from mqindex.files.places.place import require_answer
from mqindex.kafka.directories.offset_checkpoint import split_fields, text_lines, whole_number

_BLANK: Final = " \t\f"
_PROPERTY: Final = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{0,4}|.?)", re.DOTALL)
_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
_RESERVED: Final = 100
_LARGEST: Final = 1 << 20


# ---- of a log dir


def wrong_property(path: str) -> str | None:
    """Why no broker starts with a log dir's `meta.properties`; None: nothing is wrong. A `ValueError` says why, too."""
    return _wrong_property(_properties(text_lines(path, _LARGEST, encoding="latin-1")))


def broker_name(log_dir: str) -> str | None:
    """Which broker a log dir is of, by its `meta.properties`; None: that does not say it."""
    try:
        properties = _properties(text_lines(join(log_dir, "meta.properties"), _LARGEST, encoding="latin-1"))
        number = _whole(properties, name := _id_name(_whole(properties, "version")))
    except (OSError, MQIndexError, ValueError) as error:
        require_answer(error, log_dir)
        return None
    if number is None:
        return None
    cluster = properties.get("cluster.id")
    return f"{name} {number}" + (f" of cluster {cluster[:80]}" if cluster else "")


def missing_property(path: str) -> str | None:
    """What a broker with KRaft needs in a `meta.properties` with which others start; None: it is all there.

    Source: what brokers 3.6.2, 3.9.1 and 4.1.0 refuse; 2.8.2 with ZooKeeper writes it anew.
    """
    missing = _missing(_properties(text_lines(path, _LARGEST, encoding="latin-1")))
    return f"no {missing[0]}" if missing else None


def _properties(lines: Iterable[str]) -> dict[str, str]:
    """As Java's `Properties.load`: a backslash at a line's end continues it; elsewhere it begins an escape."""
    found, left = {}, iter(lines)
    for line in left:
        whole = line.lstrip(_BLANK)
        if not whole or whole[0] in "#!":
            continue
        while re.search(r"(?<!\\)(\\\\)*\\$", whole):
            whole = whole[:-1] + next(left, "").lstrip(_BLANK)
        key, value = _PROPERTY.fullmatch(whole).groups()  # type: ignore[union-attr]
        found[_ESCAPE.sub(_unescaped, key)] = _ESCAPE.sub(_unescaped, value)
    return found


def _unescaped(match: re.Match[str]) -> str:
    name = match[1]
    if name[0] != "u":
        return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(name, name)
    if len(name) != 5:
        raise ValueError("an escape \\u without four hexadecimal digits")
    return chr(int(name[1:], 16))


def _wrong_property(properties: dict[str, str]) -> str | None:
    version = _whole(properties, "version")
    if version not in (None, 0, 1):
        return f"version {version}"
    _whole(properties, _id_name(version))
    if "directory.id" in properties:
        found = _uuid(properties["directory.id"])
        if found is None or int.from_bytes(found, "big") < _RESERVED:  # Kafka 4.1.0 `DirectoryId.reserved`
            return f"directory.id {properties['directory.id'][:80]!r}"
    missing = _missing(properties)
    return f"no {missing[0]}" if missing and version == 1 else None


def _missing(properties: dict[str, str]) -> list[str]:
    return [each for each in ("cluster.id", _id_name(_whole(properties, "version"))) if each not in properties]


def _id_name(version: int | None) -> str:
    return "node.id" if version == 1 else "broker.id"


def _whole(properties: dict[str, str], name: str) -> int | None:
    """A property that must be a whole number, if it is there; a `ValueError` where it is none."""
    try:
        return whole_number(properties[name], 32) if name in properties else None
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None


# ---- of a topic


def topic_id_of(path: str) -> bytes | None:
    """The id in a partition's metadata; None: there is no file. A `ValueError` says why a broker cannot read it."""
    try:
        lines = [*text_lines(path, _LARGEST), "", ""]
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ValueError("other bytes than UTF-8 text") from None
    try:
        version = whole_number(split_fields(lines[0], 2, r":\s+")[1], 32)
    except ValueError:
        version = -1
    if version < 0:
        raise ValueError(f"{lines[0][:80]!r}, not version: 0")
    try:
        found = _uuid(split_fields(lines[1], 2, r":\s+")[1])
    except ValueError:
        found = None
    if found is None or not any(found):
        raise ValueError(f"{lines[1][:80]!r}, not topic_id: and 22 characters")
    return found


def _uuid(text: str) -> bytes | None:
    """As `Uuid.fromString`: 16 bytes in the alphabet of URLs, with or without the two signs that fill them up."""
    return base64.urlsafe_b64decode(text[:22] + "==") if _UUID.fullmatch(text) else None


def id_text(topic_id: bytes) -> str:
    """As a broker writes it."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
