"""What a package index and a host of repositories show: links that lead somewhere, forms, the changelog's parts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FORMS = ["config.yml", "idea.yml", "wrong-answer.yml"]
DOCUMENTS = ["README.md", "CHANGELOG.md", ".github/SECURITY.md", *(f".github/ISSUE_TEMPLATE/{name}" for name in FORMS)]

pytestmark = pytest.mark.skipif(
    not (ROOT / ".github").exists(), reason="an installed package is tested without what its host shows"
)


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


@pytest.mark.parametrize("document", [*DOCUMENTS, "pyproject.toml"])
def test_every_link_into_the_repository_leads_to_a_file(document: str, project: dict[str, Any]) -> None:
    base = project["urls"]["Repository"]
    text = (ROOT / document).read_text()
    owner = base.rpartition("/")[0]
    assert set(re.findall(rf"{owner}/[\w.-]+", text)) <= {base}
    for path in re.findall(rf"{base}/(?:blob|raw)/main/([\w./-]+\w)", text):
        assert (ROOT / path).is_file(), path


def test_the_readme_has_no_link_that_an_index_would_break() -> None:
    text = (ROOT / "README.md").read_text()
    found = re.findall(r'(?:src|srcset|href)="([^"]*)"|\]\(([^)]*)\)', text)
    assert [link for link in map("".join, found) if not link.startswith("https://")] == []
    assert len(found) > 5


def test_who_made_it_and_where_it_is(project: dict[str, Any]) -> None:
    assert set(project["urls"]) >= {"Repository", "Documentation", "Changelog", "Issues"}
    assert project["authors"] == [{"name": "mqindex contributors"}]
    assert all(url.startswith(project["urls"]["Repository"]) for url in project["urls"].values())


def test_the_changelog_has_its_parts_in_order_and_its_links() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert versions[0].startswith("[Unreleased]\n")
    for version in versions:
        parts = re.findall(r"^### (.*)", version, re.MULTILINE)
        assert parts == [one for one in ["Added", "Changed", "Deprecated", "Removed", "Fixed"] if one in parts]
        assert f"\n[{version[1 : version.index(']')]}]: https://" in text
    assert re.findall(r"^### (.*)", versions[0], re.MULTILINE) == ["Added", "Changed", "Fixed"]


@pytest.mark.parametrize("name", FORMS[1:])
def test_an_issue_form_has_what_the_host_asks_for(name: str) -> None:
    head, *fields = re.split(r"^  - type: ", (ROOT / ".github/ISSUE_TEMPLATE" / name).read_text(), flags=re.MULTILINE)
    assert re.findall(r"^(\w+):", head, re.MULTILINE) == ["name", "description", "labels", "body"]
    ids = [re.search(r"^    id: (\w+)$", field, re.MULTILINE) for field in fields if not field.startswith("markdown")]
    assert all(ids)
    assert len({found[1] for found in ids if found}) == len(ids) > 2
    for field in fields:
        kind = field.splitlines()[0]
        assert kind in {"markdown", "textarea", "input", "dropdown"}
        assert ("      label: " in field) == (kind != "markdown")
        assert ("      options: [" in field) == (kind == "dropdown")


def test_dependabot_watches_places_that_are_there() -> None:
    text = (ROOT / ".github/dependabot.yml").read_text()
    watched = dict(re.findall(r"package-ecosystem: ([\w-]+).*\n +directory: /?(\S*)", text))
    files = {"github-actions": ".github/workflows", "pip": "pyproject.toml", "maven": "pom.xml"}
    assert set(watched) == set(files)
    for ecosystem, directory in watched.items():
        assert (ROOT / directory / files[ecosystem]).exists()


def test_the_oldest_packages_replace_the_newest_that_are_there() -> None:
    """uv keeps what is installed and fits: the job had NumPy 2.4 and PySpark 4.3, and said 1.26 and 4.0."""
    (line,) = re.findall(r"- run: (.* lowest-direct .*)", (ROOT / ".github/workflows/checks.yml").read_text())
    assert " --upgrade " in line and line.endswith("--extra all")


@pytest.mark.parametrize("compiler", ["/nowhere/cc", "no-such-compiler -O2"])
def test_a_build_without_a_compiler_says_what_to_install(compiler: str, tmp_path: Path) -> None:
    pytest.importorskip("Cython")
    program = f"""
        import sys, Cython.Build
        Cython.Build.cythonize = lambda extensions, **options: extensions
        sys.argv = ["setup.py", "-q", "build_ext", "--build-temp", {str(tmp_path)!r}, "--build-lib", {str(tmp_path)!r}]
        exec(compile(open("setup.py").read(), "setup.py", "exec"))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        cwd=ROOT, env={**os.environ, "CC": compiler}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    name = compiler.split(maxsplit=1)[0]
    assert done.stderr == (
        f"mqindex: no C compiler: {name} is not there; install one (gcc or clang), name it in CC, or let pip take a "
        "wheel (--only-binary mqindex)\n"
    )


def test_the_nightly_run_has_each_loop_that_goes_further_at_night() -> None:
    """What is marked it finds by itself; of these files it has to be told."""
    told = re.findall(r"tests/[\w./]+", (ROOT / ".github/workflows/nightly.yml").read_text())
    asks = re.compile(r"^from tests\.support\.nightly import .*NIGHTLY", re.MULTILINE)
    asking = [path for path in (ROOT / "tests").rglob("test_*.py") if asks.search(path.read_text())]
    names = [str(path.relative_to(ROOT)) for path in asking]
    assert "tests/crash/test_failing_dispatch.py" in names
    assert [name for name in names if not name.startswith(tuple(told))] == []
