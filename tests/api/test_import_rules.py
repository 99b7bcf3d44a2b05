"""Imports go downwards only, brokers do not know each other, and `import mqindex` loads nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import mqindex
from tests.support.each import for_each

PACKAGE = Path(mqindex.__file__).parent
LEVELS = {
    "_java_text": 0,
    "_needs": 0,
    "_options": 0,
    "_room": 0,
    "_rules": 0,
    "_settings": 0,
    "_words": 0,
    "errors": 0,
    "_native": 1,
    "files": 2,
    "columns": 2,
    "engines": 3,
    "health": 3,
    "report": 3,
    "several": 3,
    "undo": 3,
    "zones": 3,
    "wording": 3,
    "rocketmq": 4,
    "kafka": 4,
    "html": 5,
    "spark": 5,
    "tables": 5,
    "cli": 6,
    "__main__": 6,
}
INSIDE = {  # the rooms of a room from the bottom to the top; modules without one of their own stand by themselves
    "rocketmq": [
        {"brokers", "catalogue", "kinds", "layout"},
        {"broker_conf", "options", "settings"},
        {"directories"},
        {"metadata"},
        {"messages"},
        {"log"},
        {"sidecar"},
        {"index"},
        {"queue"},
        {"tally"},
        {"pipeline"},
        {"checks"},
        {"health", "mending", "optimized_file"},
        {"optimize", "rebuild", "repair", "report", "verify"},
        {"dispatch"},
        {"serving"},
        {"scanning"},
    ],
    "kafka": [
        {"brokers", "catalogue", "kinds", "layout", "options", "settings"},
        {"index"},
        {"log"},
        {"internal"},
        {"directories"},
        {"partition"},
        {"checks"},
        {"stages"},
        {"building"},
        {"health", "mending"},
        {"verify", "rebuild", "repair", "report"},
        {"scanning"},
    ],
    "spark": [
        {"geometry_named", "jobs", "missing_files", "noise", "options", "parcels", "rows", "session"} | {"store_paths"},
        {"engine"},
        {"build", "functions", "sources"},
    ],
    "zones": [
        {"zone_map"},
        {"cache"},
        {"index_cover"},
    ],
    "tables": [
        {"bounds", "kinds"},
        {"arrow_filter", "polars_filter", "table"},
        {"kafka", "rocketmq"},
        {"kafka_internal"},
        {"table_scanner"},
        {"table_dataset", "polars_source", "duckdb_query"},
    ],
    "wording": [
        {"text"},
        {"findings"},
        {"reports", "verdict"},
    ],
    "html": [
        {"palette", "text"},
        {"drawing"},
        {"figures", "page"},
        {"earlier", "render"},
        {"parts"},
        {"rocketmq", "kafka"},
    ],
    "cli": [
        {"times", "trouble"},
        {"completion", "keys", "printing"},
        {"group", "options"},
        {"broker"},
        {"rocketmq", "kafka"},
        {"arrow_rows", "brokers", "doctor", "kinds", "output_file", "places"},
        {"commands"},
    ],
}
OPTIONAL = {"pyspark", "pyarrow", "pandas", "polars", "duckdb", "click", "rich", "cramjam", "jinja2"}
NEVER = [  # (importer, imported): not even inside a function
    ("rocketmq", "kafka"),
    ("kafka", "rocketmq"),
    ("spark", "html"),
    ("html", "spark"),
]


def room(module: str) -> str:
    """`mqindex.rocketmq.directories.store` is of the room `rocketmq`."""
    return [*module.split("."), ""][1]


@cache
def modules() -> tuple[str, ...]:
    names = []
    for path in sorted(PACKAGE.rglob("*.py*")):
        if path.suffix in {".py", ".pyx"}:
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return tuple(names)


@cache
def source(module: str) -> Path:
    stem = PACKAGE.parent.joinpath(*module.split("."))
    candidates = [stem.with_suffix(".py"), stem / "__init__.py", stem.with_suffix(".pyx")]
    return next(path for path in candidates if path.exists())


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(source(module).read_text())


@cache
def imports(module: str) -> tuple[tuple[str, bool], ...]:
    """What a module imports of the package, and whether it does so when it is loaded."""
    return tuple(each_import(module))


def each_import(module: str) -> Iterator[tuple[str, bool]]:
    path = source(module)
    if path.suffix == ".pyx":
        for line in path.read_text().splitlines():
            words = line.split()
            if words[:1] in (["from"], ["import"], ["cimport"]) and words[1].startswith("mqindex"):
                yield words[1], not line.startswith(" ")
        return
    tree = tree_of(module)
    inside = {id(node) for top in ast.walk(tree) if deferred(top) for node in ast.walk(top) if node is not top}
    for node in ast.walk(tree):
        at_load = id(node) not in inside
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_load) for alias in node.names if alias.name.split(".")[0] == "mqindex")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import at line {node.lineno}"
            if node.module == "mqindex":
                yield from ((f"mqindex.{alias.name}", at_load) for alias in node.names)
            elif node.module and node.module.startswith("mqindex."):
                yield node.module, at_load


def deferred(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


@for_each(name for name in modules() if name != "mqindex")
def test_imports_go_downwards_only(module: str) -> None:
    level = LEVELS[room(module)]
    for imported, _ in imports(module):
        target = room(imported)
        if target in LEVELS and target != room(module):
            assert LEVELS[target] <= level, f"{module} (level {level}) imports {imported} (level {LEVELS[target]})"
            assert (room(module), target) not in NEVER, f"{module} imports {imported}"


@for_each(name for name in modules() if room(name) in INSIDE and name.count(".") > 1)
def test_imports_inside_a_room_go_downwards_only(module: str) -> None:
    level = level_inside(module)
    for imported, _ in imports(module):
        if room(imported) == room(module) and imported.count(".") > 1:
            assert level_inside(imported) <= level, f"{module} imports {imported}"


def level_inside(module: str) -> int:
    _, outer, inner, *_ = module.split(".")
    return next(level for level, rooms in enumerate(INSIDE[outer]) if inner in rooms)


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Packages' `__init__` and imports for types alone do not count."""
    names = set(modules())
    sees = {module: {one for one in needed(module) if one in names and one != module} for module in names}
    while free := {module for module, seen in sees.items() if not seen}:
        sees = {module: seen - free for module, seen in sees.items() if module not in free}
    assert sees == {}


def needed(module: str) -> Iterator[str]:
    if source(module).suffix == ".pyx" or source(module).name == "__init__.py":
        return
    tree = tree_of(module)
    guards = [top for top in ast.walk(tree) if isinstance(top, ast.If) and deferred(top)]
    for_types = {id(node) for guard in guards for node in ast.walk(guard)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in for_types:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@for_each(name for name in modules() if room(name) == "cli")
def test_the_shell_loads_spark_only_inside_a_command(module: str) -> None:
    at_load = [imported for imported, now in imports(module) if now and room(imported) == "spark"]
    assert at_load == []


def test_nothing_below_the_spark_room_names_spark_or_arrow_at_load() -> None:
    for module in modules():
        if room(module) in {"spark", "tables", "cli", ""} or source(module).suffix != ".py":
            continue
        for node in tree_of(module).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            heavy = [name for name in names if name.split(".")[0] in OPTIONAL]
            assert heavy == [], f"{module} imports {heavy}"


def test_no_room_is_named_after_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [name for name in modules() if vague & set(name.split("."))] == []


def test_no_directory_has_more_than_16_modules() -> None:
    held: dict[Path, int] = {}
    for path in PACKAGE.rglob("*.py"):
        held[path.parent] = held.get(path.parent, 0) + 1
    assert {str(path.relative_to(PACKAGE)): files for path, files in held.items() if files > 16} == {}


@for_each(["mqindex", "mqindex.errors", "mqindex.engines", "mqindex.report"])
def test_import_is_light(module: str) -> None:
    assert loaded_by(module) & {"numpy", *OPTIONAL} == set()


def test_rocketmq_needs_numpy_at_most() -> None:
    everything = "mqindex.rocketmq as r; [getattr(r, name) for name in r.__all__]"
    assert loaded_by(everything) & OPTIONAL == set()


def test_a_command_for_one_broker_does_without_the_other() -> None:
    for kind, other in (("partition", "mqindex.rocketmq"), ("store", "mqindex.kafka")):
        assert other not in loaded_by(f"mqindex.cli.brokers as b; b.broker_of({kind!r})"), kind


def loaded_by(imported: str) -> set[str]:
    program = f"import sys; import {imported}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())
