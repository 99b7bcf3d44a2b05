"""Every compiled module has a stub, and it promises nothing that is not there (`./dev lint` compares the types too)."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

from mqindex import _native
from tests.support.each import for_each

COMPILED = [info.name for info in pkgutil.iter_modules(_native.__path__)]


def test_the_kernels_are_built() -> None:
    assert {"keys", "arrow", "index_file", "commit_log"} <= set(COMPILED)


@for_each(COMPILED)
def test_stub_names_only_what_the_module_has(name: str) -> None:
    module = importlib.import_module(f"mqindex._native.{name}")
    stub = Path(_native.__path__[0], f"{name}.pyi")
    assert stub.exists(), f"{name}.pyi is missing"
    promised = {
        node.name if isinstance(node, ast.ClassDef | ast.FunctionDef) else ast.unparse(target)
        for node in ast.parse(stub.read_text()).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AnnAssign)
        for target in ([node.target] if isinstance(node, ast.AnnAssign) else [node])
    }
    assert {public for public in promised if not public.startswith("_")} - set(vars(module)) == set()


def test_the_package_says_that_it_is_typed() -> None:
    assert Path(_native.__path__[0]).parent.joinpath("py.typed").exists()
