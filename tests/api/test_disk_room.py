"""Only `mqindex.files` changes a disk, maps a file or takes a lock: faults are injected into that one room."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.api.test_import_rules import modules, room, source, tree_of
from tests.support.each import for_each

CALLS = {
    "os": {
        "chmod", "chown", "copy_file_range", "fchmod", "fchown", "fdatasync", "fsync", "ftruncate", "link", "makedirs",
        "mkdir", "open", "posix_fallocate", "pwrite", "pwritev", "remove", "removedirs", "rename", "renames", "replace",
        "rmdir", "sendfile", "symlink", "truncate", "unlink", "utime", "write",
    },
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move", "rmtree"},
    "mmap": {"mmap"},
    "fcntl": {"fcntl", "flock", "lockf"},
    "tempfile": {"mkdtemp", "mkstemp", "NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile"},
}  # fmt: skip


def touches(tree: ast.AST) -> Iterator[str]:
    """The calls of the system in a module that change a disk; a file is opened only to be read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in CALLS.get(node.value.id, ()):
                yield f"{node.value.id}.{node.attr} at line {node.lineno}"
        elif isinstance(node, ast.ImportFrom) and node.module in CALLS:
            yield from (f"from {node.module} import {a.name}" for a in node.names if a.name in CALLS[node.module])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            mode = (
                node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords if k.arg == "mode"), None)
            )
            if mode is not None and not (isinstance(mode, ast.Constant) and set(mode.value) <= set("rbt")):
                yield f"open to write at line {node.lineno}"


OUTSIDE = [name for name in modules() if room(name) != "files" and source(name).suffix == ".py"]


@for_each(OUTSIDE)
def test_nothing_else_touches_a_disk(module: str) -> None:
    assert list(touches(tree_of(module))) == []


@pytest.mark.parametrize(
    "line",
    [
        "os.fsync(1)",
        "open(p, 'wb')",
        "open(p, mode=m)",
        "from os import rename",
        "mmap.mmap(1, 2)",
        "fcntl.lockf(1, 2)",
    ],
)
def test_the_rule_sees_what_it_forbids(line: str) -> None:
    assert list(touches(ast.parse(line)))
    assert not list(touches(ast.parse("open(p, 'rb'), open(p), os.stat(p)")))
