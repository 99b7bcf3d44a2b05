"""Each kind of finding of Kafka's files is in the catalogue, and the catalogue has no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mqindex.kafka
from mqindex.kafka import index_check, log_check, segment_indexes
from mqindex.kafka.catalogue import CATALOGUE, rows
from mqindex.kafka.leader_epochs import CHECKPOINT

PLACES = sorted(Path(mqindex.kafka.__file__).parent.glob("*.py"))
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
    "_KIND": {"transaction_check.py": ["transaction-index"]},
    "_WHAT[ending]": {"segment_indexes.py": list(segment_indexes._WHAT.values())},
}
NEVER = {  # what the same line says of the other index
    "offset-index-time-index", "offset-index-incomplete", "time-index-position", "time-index-offset-index",
    "offset-index-offset-index", "time-index-time-index",
}  # fmt: skip


def made(path: Path) -> Iterator[str]:
    """The kinds that a module's calls name."""
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
            yield from filled(kind, path.name)
        elif isinstance(kind, ast.Name) and kind.id == "CHECKPOINT":
            yield CHECKPOINT
        else:
            assert ast.unparse(kind) in ("kind", "done.kind"), f"{path.name}: {ast.unparse(node)}"  # a helper's own


def filled(kind: ast.JoinedStr, module: str) -> Iterator[str]:
    found = [""]
    for part in kind.values:
        if isinstance(part, ast.Constant):
            texts = [str(part.value)]
        else:
            name = ast.unparse(part.value)  # type: ignore[attr-defined]
            texts = ["empty", "incomplete"] if (name, found) == ("what", ["offset-index-", "time-index-"]) else (
                FILLED[name][module])  # fmt: skip
        found = [before + text for before in found for text in texts]
    yield from found


EMITTED = {kind for path in PLACES if path.name != "catalogue.py" for kind in made(path)} - NEVER


def test_the_collector_knows_the_words() -> None:
    assert index_check._WHAT["timeindex"] == "time-index"
    assert len(EMITTED) > 40


def test_no_kind_is_missing() -> None:
    assert sorted(EMITTED - set(CATALOGUE)) == []


def test_no_kind_is_made_up() -> None:
    assert sorted(set(CATALOGUE) - EMITTED) == []


@pytest.mark.parametrize("kind", sorted(CATALOGUE))
def test_a_kind_is_said_in_a_plain_sentence(kind: str) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", kind)
    meaning, hint = CATALOGUE[kind].meaning, CATALOGUE[kind].hint
    assert meaning[0].isupper()
    assert meaning.endswith(".")
    assert CATALOGUE[kind].severity != "error" or hint, "what is to be done?"
    assert hint is None or not hint.endswith(".")


def test_the_table_has_a_row_for_each_and_the_errors_first() -> None:
    table = rows()
    assert {row[0] for row in table} == set(CATALOGUE)
    severities = [row[1] for row in table]
    assert severities == sorted(severities, key=("error", "warning", "info").index)
