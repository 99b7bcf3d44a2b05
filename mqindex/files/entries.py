"""What the entries of a directory lead to: where a link leads to itself, nowhere, as for a broker."""

from __future__ import annotations

import errno
from collections.abc import Callable

from mqindex.files.paths import Entry


def leads_to_directory(entry: Entry) -> bool:
    """Whether it is a directory, itself or as a link. What cannot be looked at is an `OSError`, not "no"."""
    return _leads(entry.is_dir)


def leads_to_file(entry: Entry) -> bool:
    """Whether it is a regular file, likewise."""
    return _leads(entry.is_file)


def _leads(look: Callable[[], bool]) -> bool:
    try:
        return look()
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return False
