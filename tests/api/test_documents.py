"""What the documents say is executed: docstring examples, README commands and Python blocks."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import mqindex

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
in_repository = pytest.mark.skipif(not README.exists(), reason="an installed package is tested without its README")


def package_modules() -> list[str]:
    names = ["mqindex"]
    names += [info.name for info in pkgutil.walk_packages(mqindex.__path__, "mqindex.", onerror=lambda _: None)]
    return [name for name in names if not name.endswith("__main__")]


def load(name: str) -> ModuleType:
    """A module; the test of one that needs an extra which is not here is skipped by the extra's name."""
    for room, extra in [("mqindex.spark", "pyspark"), ("mqindex.cli", "click")]:
        if name.startswith(room):
            pytest.importorskip(extra)
    return importlib.import_module(name)


@pytest.mark.parametrize("name", package_modules())
def test_docstring_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in finder.find(load(name), name):
        runner.run(example, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


@pytest.mark.parametrize("name", [name for name in package_modules() if "._" not in name])
def test_public_names_have_docstrings(name: str) -> None:
    module = load(name)
    assert (module.__doc__ or "").strip(), f"{name} has no docstring"
    missing = []
    for public in getattr(module, "__all__", []):
        thing = getattr(module, public)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            missing += undocumented(public, thing)
    assert missing == []


def undocumented(name: str, thing: object) -> list[str]:
    found = [] if inspect.getdoc(thing) else [name]
    if inspect.isclass(thing) and thing.__module__.startswith("mqindex"):
        for member, value in vars(thing).items():
            if not member.startswith("_") and (inspect.isroutine(value) or isinstance(value, property | classmethod)):
                found += [] if inspect.getdoc(getattr(thing, member)) else [f"{name}.{member}"]
    return found


def blocks(language: str) -> list[str]:
    if not README.exists():
        return []
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def readme_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with what the README's examples assume: the store of a broker that lost its index."""
    from tests.support.golden import case

    case("killed-lost-493").unpack(tmp_path, after=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path
