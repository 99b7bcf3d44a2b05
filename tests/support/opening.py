"""What verify says of a store, held against an opening for writing."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from mqindex.engines import LocalEngine
from mqindex.errors import MQIndexError
from mqindex.rocketmq import MessageStore, NewMessage, verify
from tests.support.memory_disk import memory_disk

__all__ = ["require_opens"]


def require_opens(root: Path, **options: Any) -> bool:
    """Whether verify says ok. AssertionError: it does, and yet the store does not open for writing, or is not good
    afterwards.
    """
    if not _is_good(root, **options):
        return False
    with tempfile.TemporaryDirectory(prefix="mqindex-opening-", dir=memory_disk()) as aside:
        copy = Path(aside) / "store"
        shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns("mqindex-backup-*"))
        try:
            with MessageStore.open(copy, writable=True, **options) as store:
                store.put_message(NewMessage("Opened", b"x", keys="opened"))
        except (MQIndexError, OSError) as error:
            raise AssertionError(f"verify says ok, and the store does not open for writing: {error}") from error
        assert _is_good(copy, **options), "verify says ok, and no longer once the store was opened for writing"
    return True


def _is_good(root: Path, **options: Any) -> bool:
    try:
        return verify(root, deep=True, engine=LocalEngine(1), **options).ok
    except (MQIndexError, OSError):  # it is not there yet
        return False
