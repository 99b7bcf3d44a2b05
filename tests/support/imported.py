"""The whole package, imported: where the checkout is in a directory of one user, another one can import nothing."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil

import mqindex

__all__ = ["import_all"]


def import_all() -> None:
    """Import what calls import on their first use, before the user changes."""
    for module in pkgutil.walk_packages(mqindex.__path__, "mqindex."):
        if not module.name.startswith(("mqindex.spark", "mqindex.__main__")):
            with contextlib.suppress(ImportError):  # of what an extra brings
                importlib.import_module(module.name)
