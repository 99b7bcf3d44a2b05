"""Each kind of finding of a RocketMQ store is in the catalogue, and the catalogue has no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import mqindex.rocketmq
from mqindex.report import Finding
from mqindex.rocketmq.checks.catalogue import CATALOGUE
from tests.support.emitted_kinds import filled, kinds_named

PLACES = sorted(Path(mqindex.rocketmq.__file__).parent.rglob("*.py"))
NATIVE = Path(mqindex.rocketmq.__file__).parents[1] / "_native"
MAKERS = {"Finding": 1, "_tell": 1, "_see": 0, "_refuse": 2}  # which argument is the kind


def texts(path: Path) -> Iterator[str]:
    """Every text of a module, those with names in them too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield from filled(node, meant)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def meant(name: str, before: list[str]) -> list[str]:
    return FILLED.get(name, [])


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
    for kind in kinds_named(path, MAKERS):
        if isinstance(kind, ast.Constant):
            yield kind.value
        elif isinstance(kind, ast.JoinedStr):
            yield from filled(kind, meant)
        else:
            yield from (text for text in texts(path) if text in CATALOGUE)


EMITTED = {kind for path in PLACES if path.name != "catalogue.py" for kind in made(path)}


def test_no_kind_is_missing() -> None:
    assert sorted(EMITTED - set(CATALOGUE)) == []


def test_no_kind_is_made_up() -> None:
    assert sorted(set(CATALOGUE) - EMITTED) == []


def test_the_collector_sees_what_a_call_names(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('Finding("error", "some-kind")\nlook._tell("error", f"log-{damage.kind}")\n')
    assert {"some-kind", "log-bad-crc"} <= set(made(module))
    assert Finding("error", "some-kind").kind not in CATALOGUE
