"""Who goes on after an `OSError` asks whether a server elsewhere gave no answer: that says nothing of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.api.test_import_rules import modules, room, source, tree_of
from tests.support.each import for_each

# Where an error ends that is none of a file elsewhere, or that changes no answer; each with the modules in it.
ELSEWHERE_IS_NONE = {
    "mqindex.cli.places": "only what is on this machine is a broker's",
    "mqindex.cli.trouble": "of standard output",
    "mqindex.engines": "what the system says of processors, and what workers share",
    "mqindex.kafka.repair": "nothing elsewhere is repaired",
    "mqindex.rocketmq.dispatch": "nothing elsewhere is followed",
    "mqindex.rocketmq.index.names": "of a time",
    "mqindex.rocketmq.log.writing": "nothing elsewhere is appended to",
    "mqindex.rocketmq.repair": "nothing elsewhere is repaired",
    "mqindex.rocketmq.scanning.indexed_keys": "without the index the log is read, and answers the same",
    "mqindex.rocketmq.sidecar": "without a sidecar a look-up reads more, and answers the same",
    "mqindex.several": "an empty directory that is left",
    "mqindex.spark.noise": "of standard error",
    "mqindex.zones.cache": "the cache is on this machine",
}

OF_A_MACHINE = ("lock.hold", "resource.setrlimit")


def silent(tree: ast.AST) -> Iterator[str]:
    """Where an `OSError` ends: it is not raised again, told, or given to `require_answer`, and may be of elsewhere."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and any(map(_leaves_elsewhere, node.body)):
            continue
        if isinstance(node, ast.ExceptHandler):
            if not node.type or not _has_os_error(node.type) or _goes_on(node):
                continue
            yield f"except at line {node.lineno}"
        elif isinstance(node, ast.With) and _suppresses(node):
            yield f"suppress at line {node.lineno}"
        yield from silent(node)


def _leaves_elsewhere(line: ast.stmt) -> bool:
    """Whether this statement of a function ends it for a place elsewhere."""
    asks = isinstance(line, ast.If) and "isinstance(" in (test := ast.unparse(line.test)) and "Place)" in test
    return asks and isinstance(line.body[-1], ast.Return)


def _has_os_error(caught: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "OSError" for one in ast.walk(caught))


def _goes_on(handler: ast.ExceptHandler) -> bool:
    asked = {handler.name, "require_answer"}
    found = list(ast.walk(handler))
    return any(isinstance(one, ast.Raise) or (isinstance(one, ast.Name) and one.id in asked) for one in found)


def _suppresses(block: ast.With) -> bool:
    if any(own in ast.unparse(block) for own in OF_A_MACHINE):
        return False
    calls = [one.context_expr for one in block.items if isinstance(one.context_expr, ast.Call)]
    return any("suppress" in ast.unparse(one.func) and any(map(_has_os_error, one.args)) for one in calls)


def is_in(module: str, place: str) -> bool:
    return module == place or module.startswith(f"{place}.")


OUTSIDE = [name for name in modules() if room(name) != "files" and source(name).suffix == ".py"]
READERS = [name for name in OUTSIDE if not any(is_in(name, place) for place in ELSEWHERE_IS_NONE)]


@for_each(READERS)
def test_no_unanswered_request_is_an_absent_file(module: str) -> None:
    assert list(silent(tree_of(module))) == []


@for_each(ELSEWHERE_IS_NONE)
def test_each_exception_is_needed(place: str) -> None:
    assert any(list(silent(tree_of(name))) for name in OUTSIDE if is_in(name, place))


@pytest.mark.parametrize(
    "text",
    [
        "with suppress(OSError): f()",
        "with contextlib.suppress(MQIndexError, OSError): f()",
        "try: f()\nexcept OSError: pass",
        "def g(path):\n    try: f()\n    except (MQIndexError, OSError) as error: return None",
    ],
)
def test_what_is_silent_is_seen(text: str) -> None:
    assert len(list(silent(ast.parse(text)))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "with suppress(FileNotFoundError): f()",
        "with suppress(OSError), lock.hold(path): f()",
        "try: f()\nexcept OSError as error: require_answer(error, path)",
        "try: f()\nexcept (OSError, ValueError) as error: return {'error': reason(error)}",
        "def g(path):\n    if isinstance(path, Place): return\n    with suppress(OSError): f()",
    ],
)
def test_what_is_not_silent_is_let_be(text: str) -> None:
    assert not list(silent(ast.parse(text)))
