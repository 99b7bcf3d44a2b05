"""Each kind of finding of a RocketMQ store is in the catalogue, and the catalogue has no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mqindex.rocketmq
from mqindex.report import Finding
from mqindex.rocketmq.checks.catalogue import CATALOGUE, rows

PLACES = sorted(Path(mqindex.rocketmq.__file__).parent.rglob("*.py"))
NATIVE = Path(mqindex.rocketmq.__file__).parents[1] / "_native"
MAKERS = {"Finding": 1, "_tell": 1, "_see": 0, "_refuse": 2}  # which argument is the kind
KIND = re.compile(r"[a-z]+(-[a-z]+)+")


def texts_of(node: ast.expr) -> list[str]:
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def texts(path: Path) -> Iterator[str]:
    """Every text of a module, those with names in them too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield from filled(node)
        elif isinstance(node, ast.expr):
            yield from texts_of(node)


def native(module: str, name: str) -> list[str]:
    """The texts of a tuple in a Cython module."""
    text = re.search(rf"^(?:cdef tuple )?{name} = \((.*?)\)", (NATIVE / module).read_text(), re.DOTALL | re.MULTILINE)
    assert text is not None
    return re.findall(r'"([^"]+)"', text[1])


FAULTS = native("index_file.pyx", "FAULT_KINDS")
FILLED = {  # what stands for a name within a kind
    "kind.replace('_', '-')": [name.replace("_", "-") for name in FAULTS],
    "damage.kind": native("commit_log.pyx", "_KINDS"),
    "kind": ["consumer-offset", "delay-offset"],
    "what": ["log", "queue"],
    "self.kind": ["geometry", "broker-version", "queue-file-size"],
}


def made(path: Path) -> Iterator[str]:
    """The kinds that a module can emit, as far as its calls name them; else every text of it that could be one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name not in MAKERS or len(node.args) <= MAKERS[name]:
            continue
        kind = node.args[MAKERS[name]]
        if isinstance(kind, ast.Constant):
            yield kind.value
        elif isinstance(kind, ast.JoinedStr):
            yield from filled(kind)
        else:
            yield from (text for text in texts(path) if text in CATALOGUE)


def filled(kind: ast.JoinedStr) -> Iterator[str]:
    found = [""]
    for part in kind.values:
        named = FILLED.get(ast.unparse(part.value), []) if isinstance(part, ast.FormattedValue) else texts_of(part)
        found = [before + text for before in found for text in named]
    yield from found


EMITTED = {kind for path in PLACES if path.name != "catalogue.py" for kind in made(path)}


def test_no_kind_is_missing() -> None:
    assert sorted(EMITTED - set(CATALOGUE)) == []


def test_no_kind_is_made_up() -> None:
    assert sorted(set(CATALOGUE) - EMITTED) == []


@pytest.mark.parametrize("kind", sorted(CATALOGUE))
def test_a_kind_is_said_in_a_plain_sentence(kind: str) -> None:
    assert KIND.fullmatch(kind)
    meaning, hint = CATALOGUE[kind].meaning, CATALOGUE[kind].hint
    assert meaning[0].isupper()
    assert meaning.endswith(".")
    assert CATALOGUE[kind].severity == "info" or CATALOGUE[kind].severity == "warning" or hint, "what is to be done?"
    assert hint is None or not hint.endswith(".")


def test_the_table_has_a_row_for_each_and_the_errors_first() -> None:
    table = rows()
    assert {row[0] for row in table} == set(CATALOGUE)
    severities = [row[1] for row in table]
    assert severities == sorted(severities, key=("error", "warning", "info").index)


def test_the_collector_sees_what_a_call_names(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('Finding("error", "some-kind")\nlook._tell("error", f"log-{damage.kind}")\n')
    assert {"some-kind", "log-bad-crc"} <= set(made(module))
    assert Finding("error", "some-kind").kind not in CATALOGUE
