"""Files that the plan has seen and a task does not find: a broker has deleted them since, or the worker never saw them.

A broker deletes from the old end, so where a later file is left the rest is read, and the worker logs it. Where nothing
is left, the worker has another disk.
"""

from __future__ import annotations

import logging
import os
import socket

from mqindex.engines.visibility import unseen
from mqindex.errors import FileStateError
from mqindex.files import disk
from mqindex.files.paths import base_name, list_names, parent_of
from mqindex.files.places.place import Place

_LOG = logging.getLogger(__name__)


def left_out(path: str, root: str, ending: str = "") -> None:
    """Log that a file was deleted; an error where this worker may never have seen it.

    root : the path that the user gave. ending : of the files that decide: the last one of them is never deleted alone.
    """
    directory = parent_of(path)
    name = base_name(path).partition(".")[0]
    if disk.is_directory(directory):
        others = [os.path.splitext(other) for other in list_names(directory)]
        seen = any(other > name and of == ending for other, of in others)
    else:
        seen = directory != root and disk.is_directory(root) and bool(list_names(root))  # of a topic that was deleted
    require_seen(path, seen)
    _LOG.warning("%s: a broker deleted it before it was read; it is left out", path)


def require_seen(path: str, seen: bool) -> None:
    """An error that names the worker, unless it sees what the plan has seen. Elsewhere all see the same."""
    if not seen and isinstance(path, Place):
        raise FileStateError("it is gone, or not as it was when the read was planned", path=path, hint="read it again")
    if not seen:
        raise unseen(socket.gethostname(), path)
