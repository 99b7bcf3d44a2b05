"""Packages that need not be installed: what needs one says so, and what installs it, only where it is not there."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def needing(sentence: str, *packages: str) -> Iterator[None]:
    """`ImportError(sentence)` where the block imports one of these packages, and it is not installed.

    One that is there and cannot be loaded, as with too little memory, is an `ImportError` that says why.

    >>> with needing("tables need pyarow: pip install pyarow", "pyarow"):
    ...     import pyarow
    Traceback (most recent call last):
    ImportError: tables need pyarow: pip install pyarow
    """
    try:
        yield
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in packages:
            raise ImportError(sentence, name=error.name) from error
        raise ImportError(f"{' or '.join(packages)} cannot be loaded: {error}", name=error.name) from error


def needed(package: str) -> Any:
    """A package that a table is made for; an `ImportError` says how it is installed."""
    with needing(f"this needs {package}: pip install {package}", package):
        return importlib.import_module(package)
