"""The kinds of findings that a module's calls name, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

__all__ = ["filled", "kinds_named"]


def kinds_named(path: Path, makers: Mapping[str, int]) -> Iterator[ast.expr]:
    """The argument that is the kind, of each call of a maker of findings; `makers`: which argument that is."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in makers and len(node.args) > makers[name]:
                yield node.args[makers[name]]


def filled(kind: ast.JoinedStr, meant: Callable[[str, list[str]], list[str]]) -> list[str]:
    """A kind that is put together: each text that `meant` has for its names, after what stands before them."""
    found = [""]
    for part in kind.values:
        texts = [str(part.value)] if isinstance(part, ast.Constant) else []
        if isinstance(part, ast.FormattedValue):
            texts = meant(ast.unparse(part.value), found)
        found = [before + text for before in found for text in texts]
    return found
