"""What the documents say is executed: docstring examples, README's and the pages' commands and Python blocks."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import mqindex
from tests.support.each import for_each
from tests.support.examples import FLAGS, Examples
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase
from tests.support.pages import MADE, PAGES, README, blocks_of, stories

ROOT = Path(__file__).parents[2]
PUBLIC = {
    "mqindex",
    "mqindex.engines",
    "mqindex.errors",
    "mqindex.report",
    "mqindex.rocketmq",
    "mqindex.kafka",
    "mqindex.spark",
}
WITH_STORES: dict[str, Any] = {"mqindex.rocketmq": [], "mqindex.kafka": [], "mqindex.spark": pytest.mark.spark}
SAMPLE = "$ mqindex sample .\n"
in_repository = pytest.mark.skipif(not README.exists(), reason="an installed package is tested without its README")


def package_modules() -> list[str]:
    names = ["mqindex"]
    names += [info.name for info in pkgutil.walk_packages(mqindex.__path__, "mqindex.", onerror=lambda _: None)]
    return [name for name in names if not name.endswith("__main__")]


EXTRAS = {
    "mqindex.spark": "pyspark",
    "mqindex.tables.polars": "polars",
    "mqindex.tables": "duckdb",
    "mqindex.cli": "click",
    "mqindex.html": "jinja2",
}


def extra_of(name: str) -> str | None:
    """What a module needs beyond NumPy."""
    return next((extra for room, extra in EXTRAS.items() if name.startswith(room)), None)


def can_load(name: str) -> bool:
    extra = extra_of(name)
    return extra is None or importlib.util.find_spec(extra) is not None


def load(name: str) -> ModuleType:
    """A module; the test of one that needs an extra which is not here is skipped by the extra's name."""
    if (extra := extra_of(name)) is not None:
        pytest.importorskip(extra)
    return importlib.import_module(name)


def may_have_examples(name: str) -> bool:
    """Whether its text has one; of a compiled module that is known once it is loaded."""
    stem = Path(mqindex.__file__).parents[1].joinpath(*name.split("."))
    texts = [path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.exists()]
    return not texts or any(">>> " in path.read_text() for path in texts)


@pytest.fixture
def examples_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the examples begin with: `store`, of a RocketMQ broker that lost its index in a crash, and
    `orders-0`, a Kafka partition that has just been copied without its time indexes."""
    case("killed-lost-493").unpack_after(tmp_path).rename(tmp_path / "store")
    PartitionCase("410-plain-mono").closed(tmp_path).rename(tmp_path / "orders-0")
    for lost in (tmp_path / "orders-0").glob("*.timeindex"):
        lost.unlink()
    for log in (tmp_path / "orders-0").glob("*.log"):
        os.utime(log)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    return tmp_path


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examples]:
    with Examples(tmp_path_factory.mktemp("examples")) as process:
        yield process


@pytest.fixture
def run_session(examples: Examples, tmp_path: Path) -> Callable[[str], None]:
    """Runs the examples of a text in another process, which finds the files of the test's directory."""
    return lambda session: examples.run(session, tmp_path)


@pytest.mark.parametrize(
    "name", [name for name in package_modules() if name not in WITH_STORES and may_have_examples(name)]
)
def test_docstring_examples(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = [test for test in docstring_examples(name) if not asks_spark(test)]
    request.getfixturevalue("monkeypatch").chdir(tmp_path)
    if any('"store' in each.source or '"orders-0' in each.source for test in found for each in test.examples):
        request.getfixturevalue("examples_place")
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in found:
        runner.run(example, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


def docstring_examples(name: str) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(load(name), name) if test.examples]


def asks_spark(test: doctest.DocTest) -> bool:
    return any(re.search(r"\bspark\b", each.source) for each in test.examples)


SPARK_BEGINS = """\
>>> import os
>>> from pyspark.sql import SparkSession
>>> from mqindex import kafka
>>> from mqindex.spark import *
>>> spark = SparkSession.builder.master("local[2]").getOrCreate()
>>> store, orders = os.path.abspath("store"), os.path.abspath("orders-0")
>>> report = kafka.repair(orders, index_interval_bytes=1000)
>>> register(spark)
"""


@pytest.mark.spark
@pytest.mark.usefixtures("examples_place")
def test_docstring_examples_on_spark(run_session: Callable[[str], None]) -> None:
    names = [name for name in package_modules() if name.startswith("mqindex.spark.")]
    tests = [test for name in names for test in docstring_examples(name) if asks_spark(test)]
    assert len(tests) > 8
    run_session("\n\n".join([SPARK_BEGINS, *(inspect.cleandoc(test.docstring or "") for test in tests)]))


@pytest.mark.usefixtures("examples_place")
@pytest.mark.parametrize("name", [pytest.param(name, marks=marks) for name, marks in WITH_STORES.items()])
def test_docstring_session(name: str, run_session: Callable[[str], None]) -> None:
    session = load(name).__doc__ or ""
    assert ">>> " in session
    run_session(session)


@for_each(name for name in package_modules() if "._" not in name and can_load(name))
def test_public_names_have_docstrings(name: str) -> None:
    module = load(name)
    assert (module.__doc__ or "").strip(), f"{name} has no docstring"
    missing = []
    defined = (key for key, thing in vars(module).items() if getattr(thing, "__module__", "") == name)
    for public in getattr(module, "__all__", [key for key in defined if not key.startswith("_")]):
        thing = getattr(module, public)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            missing += undocumented(public, thing, members=name in PUBLIC)
    assert missing == []


def undocumented(name: str, thing: object, *, members: bool) -> list[str]:
    found = [] if inspect.getdoc(thing) else [name]
    if members and inspect.isclass(thing) and thing.__module__.startswith("mqindex"):
        for member, value in vars(thing).items():
            if not member.startswith("_") and (inspect.isroutine(value) or isinstance(value, property | classmethod)):
                found += [] if inspect.getdoc(getattr(thing, member)) else [f"{name}.{member}"]
    return found


@pytest.fixture
def sampled_place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What every story begins with: what `mqindex sample .` makes, and what else it names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    blocks = request.getfixturevalue("blocks")
    if not blocks[0][1].startswith(SAMPLE):
        subprocess.run(["mqindex", "sample", "."], stdout=subprocess.DEVNULL, check=True)
    for name, make in MADE.items():
        if any(name in body for _, body in blocks):
            make(tmp_path)


@pytest.fixture
def bucket(request: pytest.FixtureRequest, sampled_place: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The bucket of the stories on S3, with the store, by a server that their commands find as they find any."""
    if not any("s3://" in body for _, body in request.getfixturevalue("blocks")):
        yield
        return
    from tests.peer.places.servers import S3  # here: it needs Java

    home = Path("server")
    home.mkdir()
    server = S3(home.absolute())
    server.upload(Path("store"), "store")
    for name in ("endpoint", "access_key_id", "secret_access_key", "region"):
        monkeypatch.setenv(f"AWS_{name.upper()}", server.options[name])
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    yield
    server.close()


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("blocks", list(stories()))
def test_a_document_does_what_it_says(
    blocks: list[tuple[str, str]], examples: Examples, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for language, body in blocks:
        if language == "console":
            commands_of(body)
    session = "\n".join(body for language, body in blocks if language == "pycon")
    if "s3://" in session:  # a process begun now knows the server of this test, and so do Spark's workers
        with Examples(tmp_path_factory.mktemp("on-s3")) as own:
            own.run(session, tmp_path)
    else:
        examples.run(session, tmp_path)


@in_repository
def test_no_command_of_a_page_escapes_the_tests() -> None:
    """What stands in other blocks is for the reader's own files, or what a broker says."""
    for page in PAGES.rglob("*.md"):
        for language, body in blocks_of(page.read_text()):
            assert language in ("console", "pycon", "sh", "text"), f"{page}: {body}"
            if language in ("sh", "text"):
                assert not re.search(r"^(\$|>>>) ", body, re.MULTILINE), f"{page}: {body}"


def commands_of(body: str) -> None:
    """Runs each `$ ` line of a console block and compares what it prints."""
    for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, wanted = step.partition("\n")
        command = command.replace("-s INT 10 ", "-s INT 40 ")  # a busy machine begins late
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        got = done.stdout
        assert doctest.OutputChecker().check_output(wanted, got, FLAGS), f"$ {command}\n{got}{done.stderr}"


@in_repository
@pytest.mark.parametrize("document", ["README.md", ".github/CONTRIBUTING.md"])
def test_every_named_dev_command_exists(document: str) -> None:
    listed = subprocess.run([ROOT / "dev"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"^\./dev (\w+)", listed, re.MULTILINE))
    named = set(re.findall(r"\./dev (\w+)", (ROOT / document).read_text()))
    assert named <= known


@in_repository
def test_readme_is_short_and_names_extras_that_exist() -> None:
    text = README.read_text()
    assert len(text.encode()) <= 12 * 1024
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"^pip install '\.\[([\w,]+)\]'", text, re.MULTILINE)
    assert named
    assert set(",".join(named).split(",")) <= set(extras)
