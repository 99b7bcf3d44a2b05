"""RocketMQ stores: index files, commit logs, and how to verify, rebuild and repair them.

Reference version 4.9.3; the formats of 4.x and 5.x are the same but for the rules that `broker_version` decides.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqindex._keys import hash_slots, key_hash, key_hashes
    from mqindex.rocketmq.checkpoint import Checkpoint
    from mqindex.rocketmq.commit_log import CommitLog
    from mqindex.rocketmq.index_file import IndexFile, IndexHeader
    from mqindex.rocketmq.index_service import IndexService, QueryOffsetResult
    from mqindex.rocketmq.message import Message
    from mqindex.rocketmq.rebuild import rebuild
    from mqindex.rocketmq.repair import repair
    from mqindex.rocketmq.verify import verify

_HOME = {
    "Checkpoint": "rocketmq.checkpoint",
    "CommitLog": "rocketmq.commit_log",
    "IndexFile": "rocketmq.index_file",
    "IndexHeader": "rocketmq.index_file",
    "IndexService": "rocketmq.index_service",
    "Message": "rocketmq.message",
    "QueryOffsetResult": "rocketmq.index_service",
    "hash_slots": "_keys",
    "key_hash": "_keys",
    "key_hashes": "_keys",
    "rebuild": "rocketmq.rebuild",
    "repair": "rocketmq.repair",
    "verify": "rocketmq.verify",
}

__all__ = [
    "Checkpoint",
    "CommitLog",
    "IndexFile",
    "IndexHeader",
    "IndexService",
    "Message",
    "QueryOffsetResult",
    "hash_slots",
    "key_hash",
    "key_hashes",
    "rebuild",
    "repair",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mqindex.rocketmq' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"mqindex.{_HOME[name]}"), name)
    globals()[name] = value  # also hides the submodule of the same name: `rocketmq.rebuild` is the function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
