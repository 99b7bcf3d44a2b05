"""What a path is, from its content and its place."""

from __future__ import annotations

import os
from typing import Final

from mqindex.cli.trouble import Trouble
from mqindex.errors import MQIndexError
from mqindex.rocketmq import layout

__all__ = [
    "CHECKPOINT",
    "COMMIT_LOG_DIR",
    "COMMIT_LOG_FILE",
    "INDEX_DIR",
    "INDEX_FILE",
    "KINDS",
    "STORE",
    "kind_of",
    "require_kind",
    "require_store",
]

INDEX_FILE: Final = "index-file"
INDEX_DIR: Final = "index-dir"
COMMIT_LOG_FILE: Final = "commitlog-file"
COMMIT_LOG_DIR: Final = "commitlog-dir"
STORE: Final = "store"
CHECKPOINT: Final = "checkpoint"

KINDS: Final = {
    STORE: "a store's root directory",
    INDEX_DIR: "a directory of index files",
    INDEX_FILE: "an index file",
    COMMIT_LOG_DIR: "a commit-log directory",
    COMMIT_LOG_FILE: "a commit-log file",
    CHECKPOINT: "a checkpoint",
}

_MAGICS = {layout.MAGIC_MESSAGE_V1, layout.MAGIC_MESSAGE_V2, layout.MAGIC_BLANK}
_PARTS = {"commitlog", "index", "consumequeue"}
_QUEUES = {"consumequeue", "consumequeue_ext", "batchconsumequeue"}
_LOG_NAME, _INDEX_NAME, _CHECKPOINT_SIZE = 20, 17, 4096


def kind_of(path: str) -> str | None:
    """The kind of what `path` names; None: none that we know. `FileNotFoundError` where there is nothing."""
    if os.path.isdir(path):
        return _kind_of_directory(path)
    with open(path, "rb") as file:
        head = file.read(8)
        length = os.fstat(file.fileno()).st_size
    return _kind_of_file(os.path.abspath(path), head, length) or (INDEX_FILE if _fits_a_geometry(path) else None)


def require_kind(path: str, forced: str | None, *expected: str) -> str:
    """The kind of `path`, which must be one of `expected`; else a sentence that tells both."""
    if not os.path.exists(path):
        raise Trouble(f"no such file or directory: {path}: expected {_either(expected)}")
    kind = forced or kind_of(path)
    if kind is None:
        raise Trouble(f"{path} is nothing that mqindex knows: expected {_either(expected)}; --kind says what it is")
    if kind not in expected:
        raise Trouble(f"{path} is {KINDS[kind]}: expected {_either(expected)}")
    if os.path.isdir(path) == (kind in (INDEX_FILE, COMMIT_LOG_FILE, CHECKPOINT)):
        raise Trouble(f"{path} is {'a directory' if os.path.isdir(path) else 'a file'}: expected {KINDS[kind]}")
    return kind


def require_store(path: str) -> None:
    """`path` is a directory and not visibly something else; a store that lost its parts still passes."""
    if not os.path.exists(path):
        raise Trouble(f"no such directory: {path}: expected {KINDS[STORE]}")
    kind = kind_of(path)
    if kind == STORE or (kind is None and os.path.isdir(path)):
        return
    what = KINDS[kind] if kind else "a file"
    parent = os.path.dirname(os.path.abspath(path))
    hint = f"; did you mean {parent}?" if kind and kind.endswith("-dir") and kind_of(parent) == STORE else ""
    raise Trouble(f"{path} is {what}: expected {KINDS[STORE]}{hint}")


def _either(kinds: tuple[str, ...]) -> str:
    words = [KINDS[kind] for kind in kinds]
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _kind_of_directory(path: str) -> str | None:
    with os.scandir(path) as entries:
        below = {entry.name: entry.is_dir() for entry in entries}
    if any(below.get(part) for part in _PARTS) or (below.get("checkpoint") is False and "lock" in below):
        return STORE
    numbers = sorted(name for name, is_dir in below.items() if not is_dir and name.isdecimal())
    place = os.path.basename(os.path.abspath(path))
    if any(len(name) == _LOG_NAME for name in numbers):
        kinds = [kind_of(os.path.join(path, name)) for name in numbers if len(name) == _LOG_NAME]
        return COMMIT_LOG_DIR if COMMIT_LOG_FILE in kinds else None
    if numbers or (place == "index" and not below):
        return INDEX_DIR if place == "index" or any(len(name) == _INDEX_NAME for name in numbers) else None
    return COMMIT_LOG_DIR if place == "commitlog" and not below else None


def _kind_of_file(path: str, head: bytes, length: int) -> str | None:
    directory, name = os.path.split(path)
    place = os.path.basename(directory)
    if len(head) == 8 and int.from_bytes(head[4:], "big", signed=True) in _MAGICS:
        return COMMIT_LOG_FILE
    if name.isdecimal() and len(name) == _LOG_NAME and not _in_queue(directory):
        return COMMIT_LOG_FILE if place == "commitlog" or not any(head) else None
    if name.isdecimal() and (place == "index" or len(name) == _INDEX_NAME):
        return INDEX_FILE
    if name == "checkpoint" and length == _CHECKPOINT_SIZE:
        return CHECKPOINT
    return None


def _fits_a_geometry(path: str) -> bool:
    from mqindex.rocketmq import geometry

    try:
        return bool(geometry.infer([path]))
    except (MQIndexError, OSError):
        return False


def _in_queue(directory: str) -> bool:
    return os.path.basename(os.path.dirname(os.path.dirname(directory))) in _QUEUES
