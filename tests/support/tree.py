"""What a directory holds, to be compared before and after."""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = [
    "contents",
    "identities",
    "index_bytes",
    "index_paths",
    "queue_bytes",
    "queue_contents",
    "queue_paths",
    "scraps",
    "state",
]


def contents(root: Path) -> dict[str, str]:
    """sha256 of each file below `root`, "directory" for each directory, "nothing" for a link that leads nowhere."""
    return {str(path.relative_to(root)): _content(path) for path in sorted(root.rglob("*"))}


def _content(path: Path) -> str:
    if not path.exists():
        return "nothing"
    return "directory" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()


def identities(root: Path) -> dict[str, tuple[int, int]]:
    """(inode, time of the last change) of each file: the same ones mean that nobody touched it."""
    return {
        str(path.relative_to(root)): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def index_paths(root: Path) -> list[Path]:
    """The index files of a store, in load order."""
    return sorted((root / "index").iterdir()) if (root / "index").is_dir() else []


def index_bytes(root: Path) -> list[bytes]:
    return [path.read_bytes() for path in index_paths(root)]


def queue_bytes(root: Path) -> dict[str, bytes]:
    """The files of all consume queues of a store: topic/queueId/name."""
    queues = root / "consumequeue"
    return {str(path.relative_to(queues)): path.read_bytes() for path in sorted(queues.rglob("*")) if path.is_file()}


def queue_paths(root: Path) -> list[Path]:
    """The files of all consume queues of a store, then those of their extensions."""
    directories = (root / "consumequeue", root / "consumequeue_ext")
    return [path for directory in directories for path in sorted(directory.rglob("*")) if path.is_file()]


def queue_contents(root: Path) -> dict[str, bytes]:
    """Path below the store -> content."""
    return {str(path.relative_to(root)): path.read_bytes() for path in queue_paths(root)}


def scraps(directory: Path) -> list[str]:
    """Scratch that was left behind, anywhere below."""
    return [str(path.relative_to(directory)) for path in directory.rglob(".mqindex-*")]


def state(root: Path) -> dict[str, tuple[str, int, int, int]]:
    """Content, mode and owner of all that is below `root` but for backups and scratch."""
    return {
        path: (content, (root / path).stat().st_mode, (root / path).stat().st_uid, (root / path).stat().st_gid)
        for path, content in contents(root).items()
        if not path.startswith((".mqindex-", "mqindex-backup-"))
    }
