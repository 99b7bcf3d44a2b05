"""What a path is, from its content and its place, whichever broker's it is."""

from __future__ import annotations

import os
from typing import Final

from mqindex.cli import kafka_kinds, rocketmq_kinds
from mqindex.cli.rocketmq_kinds import STORE
from mqindex.cli.trouble import Trouble

__all__ = ["KINDS", "kind_of", "require_home", "require_kind", "require_store"]

KINDS: Final = {**rocketmq_kinds.KINDS, **kafka_kinds.KINDS}
_FILES = rocketmq_kinds.FILES | kafka_kinds.FILES


def kind_of(path: str) -> str | None:
    """The kind of what `path` names; None: none that we know. `FileNotFoundError` where there is nothing."""
    if os.path.isdir(path):
        return rocketmq_kinds.kind_of_directory(path) or kafka_kinds.kind_of_directory(path)
    return kafka_kinds.kind_of_file(path) or rocketmq_kinds.kind_of_file(path)


def require_kind(path: str, forced: str | None, *expected: str) -> str:
    """The kind of `path`, which must be one of `expected`; else a sentence that tells both."""
    if not os.path.exists(path):
        raise Trouble(f"no such file or directory: {path}")
    kind = forced or kind_of(path)
    if kind is None:
        raise Trouble(f"{path} is nothing that mqindex knows: expected {_either(expected)}; --kind says what it is")
    if kind not in expected:
        raise Trouble(f"{path} is {KINDS[kind]}: expected {_either(expected)}{_hint(path, expected)}")
    if os.path.isdir(path) == (kind in _FILES):
        raise Trouble(f"{path} is {'a directory' if os.path.isdir(path) else 'a file'}: expected {KINDS[kind]}")
    return kind


def require_home(path: str, forced: str | None, *expected: str) -> str:
    """As `require_kind` for directories; one that holds nothing we know may be a store that lost its parts."""
    if not os.path.exists(path):
        raise Trouble(f"no such directory: {path}")
    if forced is None and os.path.isdir(path) and kind_of(path) is None:
        return STORE
    return require_kind(path, forced, *expected)


def require_store(path: str) -> None:
    """`path` is a directory and not visibly something else than a store."""
    require_home(path, None, STORE)


def _hint(path: str, expected: tuple[str, ...]) -> str:
    parent = os.path.dirname(os.path.abspath(path))
    return f"; did you mean {parent}?" if kind_of(parent) in expected else ""


def _either(kinds: tuple[str, ...]) -> str:
    words = [KINDS[kind] for kind in kinds]
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
