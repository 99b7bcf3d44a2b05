"""Names of files elsewhere."""

from __future__ import annotations

import os
import re

from mqindex.errors import ReadOnlyFileError

__all__ = ["is_url", "refuse_writing"]

_URL = re.compile(r"[a-z][a-z0-9+.:-]*://", re.IGNORECASE)


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether this names a file elsewhere; a name that is there on this machine never does.

    >>> is_url("s3://bucket/store/index"), is_url("/store/index"), is_url("simplecache::https://host/index")
    (True, False, True)
    """
    return isinstance(path, str) and _URL.match(path) is not None and not os.path.lexists(path)


def refuse_writing(url: str, writable: bool) -> None:
    """`ReadOnlyFileError` where a file elsewhere is to be written."""
    if writable:
        raise ReadOnlyFileError("files elsewhere are only read", path=url, hint="copy them here, or mount their place")
