"""Each kind of finding of Kafka's files is in the catalogue, and the catalogue has no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import mqindex.kafka
from mqindex.kafka.catalogue import CATALOGUE
from mqindex.kafka.checks import log_check
from mqindex.kafka.partition.leader_epochs import CHECKPOINT
from tests.support.emitted_kinds import filled, kinds_named

PLACES = sorted(Path(mqindex.kafka.__file__).parent.rglob("*.py"))
MAKERS = {"Finding": 1, "_told": 1, "stop": 0}  # which argument is the kind
FAULTS = Path(mqindex.kafka.__file__).parents[1] / "_native" / "kafka_log.pyx"
FILLED = {  # what stands for a name within a kind; by module, where it is not the same in all
    "kind": {
        "index_check.py": ["offset-index", "time-index"],
        "log_check.py": ["tail", *re.findall(r'return "(bad-[a-z]+)"', FAULTS.read_text())],
        "transaction_check.py": ["missing", "incomplete"],
    },
    "name": {"log_check.py": [name for name, *_ in log_check._ODD.values()]},
    "what": {"index_check.py": ["offset-index", "time-index"]},
    "kind.label": {name: ["offset-index", "time-index"] for name in ("index_check.py", "segment_indexes.py")},
    "_KIND": {"transaction_check.py": ["transaction-index"]},
}
NEVER = {  # what the same line says of the other index
    "offset-index-time-index", "offset-index-incomplete", "time-index-position", "time-index-offset-index",
    "offset-index-offset-index", "time-index-time-index",
}  # fmt: skip


def made(path: Path) -> Iterator[str]:
    """The kinds that a module's calls name."""
    for kind in kinds_named(path, MAKERS):
        if isinstance(kind, ast.Constant):
            yield kind.value
        elif isinstance(kind, ast.JoinedStr):
            yield from filled(kind, partial(meant, path.name))
        elif isinstance(kind, ast.Name) and kind.id == "CHECKPOINT":
            yield CHECKPOINT
        else:
            assert ast.unparse(kind) in ("kind", "done.kind"), f"{path.name}: {ast.unparse(kind)}"  # a helper's own


def meant(module: str, name: str, before: list[str]) -> list[str]:
    if (name, before) == ("what", ["offset-index-", "time-index-"]):
        return ["empty", "incomplete"]
    return FILLED[name][module]


EMITTED = {kind for path in PLACES if path.name != "catalogue.py" for kind in made(path)} - NEVER


def test_the_collector_knows_the_words() -> None:
    assert len(EMITTED) > 40


def test_no_kind_is_missing() -> None:
    assert sorted(EMITTED - set(CATALOGUE)) == []


def test_no_kind_is_made_up() -> None:
    assert sorted(set(CATALOGUE) - EMITTED) == []
