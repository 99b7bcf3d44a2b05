"""Names of files elsewhere."""

from __future__ import annotations

import os
import re

from mqindex.errors import ReadOnlyFileError

_URL = re.compile(r"[a-z][a-z0-9+.:-]*://", re.IGNORECASE)


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether this names a file elsewhere; a name that is there on this machine never does.

    >>> is_url("s3://bucket/store/index"), is_url("/store/index"), is_url("simplecache::https://host/index")
    (True, False, True)
    """
    return isinstance(path, str) and _URL.match(path) is not None and not os.path.lexists(path)


def parts(url: str) -> tuple[str, str, str]:
    """A chained URL, cut before and after the one that has the path.

    >>> parts("zip://index::file:///x.zip"), parts("simplecache::https://host/index")
    (('', 'zip://index', '::file:///x.zip'), ('simplecache::', 'https://host/index', ''))
    """
    links = url.split("::")
    at = next((number for number, link in enumerate(links) if "://" in link), 0)
    return "".join(link + "::" for link in links[:at]), links[at], "".join("::" + link for link in links[at + 1 :])


def name_of(url: str) -> str:
    """The last name of its path.

    >>> name_of("https://host/index/20231114221320000?key=x"), name_of("zip://index::file:///x.zip")
    ('20231114221320000', 'index')
    """
    return parts(url)[1].partition("?")[0].rstrip("/").rpartition("/")[2]


def refuse_writing(url: str, writable: bool) -> None:
    """`ReadOnlyFileError` where a file elsewhere is to be written."""
    if writable:
        raise ReadOnlyFileError("files elsewhere are only read", path=url, hint="copy them here, or mount their place")
