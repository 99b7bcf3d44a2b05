"""What a task does not find of what the plan has seen: a broker has deleted it since, or the worker never saw it.

A broker deletes from the old end, so where something later is left the rest is read, and the worker's log says so.
Where nothing is left the worker looks at another disk.
"""

from __future__ import annotations

import logging
import os
import socket

from mqindex.errors import FileStateError

__all__ = ["left_out", "require_seen", "unseen"]

_LOG = logging.getLogger(__name__)


def left_out(path: str, root: str, ending: str = "") -> None:
    """Say that a file was deleted; an error where this worker may never have seen it.

    root : what the user named. ending : of the files that show it: the last one of them is never deleted alone.
    """
    directory = os.path.dirname(path)
    name = os.path.basename(path).partition(".")[0]
    if os.path.isdir(directory):
        others = [os.path.splitext(other) for other in os.listdir(directory)]
        seen = any(other > name and of == ending for other, of in others)
    else:
        seen = directory != root and os.path.isdir(root) and bool(os.listdir(root))  # of a topic that was deleted
    require_seen(path, seen)
    _LOG.warning("%s: a broker deleted it before it was read; it is left out", path)


def require_seen(path: str, seen: bool) -> None:
    """An error that names the worker, unless it sees what the plan has seen."""
    if not seen:
        raise unseen(socket.gethostname(), path)


def unseen(hosts: str, path: str) -> FileStateError:
    """What is said of workers that do not see a path."""
    what, hint = f"the worker on {hosts} does not see it", "every path must be visible to all workers"
    return FileStateError(what, path=path, hint=hint)
