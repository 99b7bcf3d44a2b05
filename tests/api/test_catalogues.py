"""Each finding is made of a kind of its broker's catalogue; no kind is defined in vain, or filled in wrongly."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import mqindex
from mqindex.kafka import catalogue as kafka
from mqindex.kafka.checks import log_check
from mqindex.report import Kind
from mqindex.rocketmq import catalogue as rocketmq
from tests.support.each import for_each
from tests.support.findings_document import sections

PACKAGE = Path(mqindex.__file__).parent
BROKERS = pytest.mark.parametrize("broker", [rocketmq, kafka], ids=["rocketmq", "kafka"])
EACH = [(name, kinds) for module in (rocketmq, kafka) for name, kinds in sorted(module.CATALOGUE.items())]
FILLING = {"a", "an", "and", "for", "in", "is", "it", "its", "no", "not", "of", "on", "or", "that", "the", "this", "to"}
ALWAYS = {"path", "at", "field", "expected", "got", "many"}  # parameters of `Kind.finding`


@for_each(EACH)
def test_a_kind_has_a_plain_sentence(name: str, kinds: tuple[Kind, ...]) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", name)
    for kind in kinds:
        assert kind.meaning == kinds[0].meaning
        assert kind.meaning[0].isupper()
        assert kind.meaning.endswith(".")
        assert kind.severity != "error" or kind.hint, "what is to be done?"
        assert kind.hint is None or not kind.hint.endswith(".")


@for_each(EACH)
def test_what_a_repair_mends_is_said_to_be_mended_by_it(_name: str, kinds: tuple[Kind, ...]) -> None:
    """Nobody is told to do by hand what the repair does."""
    assert [one.hint for one in kinds if one.mended_by is not None and "`mqindex repair` " not in str(one.hint)] == []


@for_each([(name, kinds[0]) for name, kinds in EACH if kinds[0].hint])
def test_a_hint_does_not_repeat_the_meaning(_name: str, usual: Kind) -> None:
    said, again = (set(re.findall(r"[a-z0-9.]+", str(text).lower())) - FILLING for text in (usual.meaning, usual.hint))
    assert 4 * len(said & again) < 3 * len(again), usual.hint


def test_the_page_has_each_kind_once_so_that_its_name_is_its_anchor() -> None:
    kinds = [kind for of in sections().values() for kind in of]
    assert len(kinds) == len(set(kinds))
    assert set(kinds) == set(rocketmq.CATALOGUE) | set(kafka.CATALOGUE)


# ---- who makes findings of them


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def test_every_finding_is_made_of_a_kind() -> None:
    makers = {
        path.name
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Finding", "Kind")
    }
    assert makers == {"report.py", "catalogue.py"}


def modules_of(broker: ModuleType) -> Iterator[tuple[Path, ast.Module]]:
    """The broker's modules, and those of the shell that are its own."""
    name = broker.__name__.split(".")[1]
    for path, tree in trees().items():
        if name in path.parts and path.name != "catalogue.py":
            yield path, tree


def kind_named(broker: ModuleType, node: ast.AST | None) -> str | None:
    """`NAME` of an expression `catalogue.NAME`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "catalogue":
        assert hasattr(broker, node.attr)
        return node.attr
    return None


@BROKERS
def test_every_kind_is_used(broker: ModuleType) -> None:
    used = {kind_named(broker, node) for _, tree in modules_of(broker) for node in ast.walk(tree)}
    assert {name for name, value in vars(broker).items() if name.isupper() and name[0] != "_"} - used == {"CATALOGUE"}


@BROKERS
def test_a_hint_gets_the_names_that_it_asks_for(broker: ModuleType) -> None:
    """Where a call does not name its kind, the kinds that its module names go to such calls."""
    for path, tree in modules_of(broker):
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and maker(node) is not None]
        direct = {id(maker(call)): call for call in calls if kind_named(broker, maker(call)) is not None}
        others = [given(call) for call in calls if id(maker(call)) not in direct]
        if any(isinstance(node, ast.Name) and node.id == "unit_finding" for node in ast.walk(tree)):
            others += [{"places"}, {"units"}]  # what it gives the kinds that are handed to it
        if any(isinstance(node, ast.Name) and node.id == "Loaded" for node in ast.walk(tree)):
            others.append({"who"})  # what `Refused.finding` gives them
        parts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "name"}
        for node in ast.walk(tree):
            name = kind_named(broker, node)
            wanted = asked(getattr(broker, name)) if name is not None else []
            if id(node) in direct:
                assert [given(direct[id(node)])] == wanted, f"{path.name}: {name}"
            elif id(node) not in parts:
                assert all(any(names <= those for those in others) for names in wanted if names), f"{path.name}: {name}"


def maker(call: ast.Call) -> ast.expr | None:
    """`X` of a call `X.finding(…)`."""
    return call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "finding" else None


def given(call: ast.Call) -> set[str]:
    return {str(keyword.arg) for keyword in call.keywords} - ALWAYS


def asked(value: object) -> list[set[str]]:
    """What the hint of a kind has filled in, or of each kind that a name stands for."""
    kinds = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value]
    return [set(re.findall(r"\{(\w+)\}", kind.hint or "")) for kind in kinds if isinstance(kind, Kind)]


# ---- faults that a kernel names


def native(module: str, found: str) -> set[str]:
    """The texts in what a pattern finds in a Cython module."""
    parts = re.findall(found, (PACKAGE / "_native" / module).read_text(), re.DOTALL | re.MULTILINE)
    return {text for part in parts for text in re.findall(r'"([^"]+)"', part)}


@pytest.mark.skipif(
    not (PACKAGE / "_native" / "index_file.pyx").exists(), reason="an installed package is tested without its sources"
)
def test_every_fault_of_a_kernel_has_its_kind() -> None:
    assert set(rocketmq.INDEX_FAULTS) == native("index_file.pyx", r"^cdef tuple FAULT_KINDS = \((.*?)\)")
    assert set(rocketmq.LOG_DAMAGE) == native("commit_log.pyx", r"^_KINDS = \((.*?)\)")
    assert set(log_check._ODD) == native("kafka_recovery.pyx", r"^_ODDITIES = \((.*?)\)")
    assert set(kafka.LOG_TAILS) == native("kafka_log.pyx", r"return \"bad-[a-z]+\"") | {"tail"}
