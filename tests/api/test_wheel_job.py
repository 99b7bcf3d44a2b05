"""The tests that run inside a wheel need nothing but what its environment has."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.wheels import PROJECT, packages, settings

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "wheels.yml"
in_the_project = pytest.mark.skipif(not WORKFLOW.exists(), reason="a wheel is tested without the project's workflows")
MODULES = {  # what a package is imported as, where that is not its name
    "cython": {"Cython"},
    "gcovr": {"gcovr"},
    "googleapis-common-protos": {"google.rpc"},
    "grpcio": {"grpc"},
    "grpcio-status": {"grpc_status"},
    "pytest-xdist": {"xdist"},
}
IDENTIFIERS = [
    f"cp{version}-{system}"
    for version in ("311", "312", "313", "314", "314t", "315")
    for system in (
        "manylinux_x86_64",
        "manylinux_aarch64",
        "musllinux_x86_64",
        "musllinux_aarch64",
        "macosx_arm64",
        "macosx_x86_64",
    )
]


def modules(requirements: list[str]) -> set[str]:
    names = [re.split(r"[<>=!~;\[ ]", each)[0].lower() for each in requirements]
    return {module for name in names for module in MODULES.get(name, {name.replace("-", "_")})}


def optional() -> list[str]:
    """Whatever this project names anywhere and a wheel's smallest environment may be without."""
    extras = [each for extra in PROJECT["project"]["optional-dependencies"].values() for each in extra]
    every = modules([*packages(*PROJECT["dependency-groups"]), *extras]) - {"mqindex"}
    return sorted(every - modules([*packages("test"), *PROJECT["project"]["dependencies"]]) - {"setuptools"})


def test_every_module_can_be_collected_in_the_smallest_environment() -> None:
    """`import cramjam` and `import polars` stood above the guard: eleven of 21 wheels failed at once."""
    there = [name for name in optional() if importlib.util.find_spec(name.split(".")[0]) is not None]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.support.without", "-p", "no:cacheprovider", "--collect-only",
         "-qq", "-m", "not spark and not peer", "--ignore=tests/spark", "--ignore=tests/peer", "--ignore=tests/counts"],
        cwd=ROOT, env=os.environ | {"MQINDEX_TEST_WITHOUT": ",".join(there)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert {"pyarrow", "polars", "pyspark"} <= set(optional())
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_each_wheel_has_what_its_tests_import(identifier: str) -> None:
    said = settings(identifier)
    assert said is not None
    there = modules(packages(*said["test-groups"]))
    assert {"pytest", "hypothesis", "click", "cramjam", "pyarrow", "pandas"} <= there
    assert ("polars" in there) == ("t-" not in identifier)
    assert "jinja2" in there
    assert said["test-environment"]["PIP_ONLY_BINARY"] == ":all:"
    assert said["test-environment"].get("PYTHON_GIL") == ("0" if "t-" in identifier else None)


def test_what_is_not_built() -> None:
    assert [settings(f"cp{each}-manylinux_x86_64") for each in ("310", "313t", "315t", "316")] == [None] * 4


@in_the_project
def test_the_workflow_builds_what_the_configuration_has_and_with_the_same_tools() -> None:
    text = WORKFLOW.read_text()
    jobs = re.search(r"python: \[(.*)\]", text)
    assert jobs is not None
    assert [f"{each}-*" for each in jobs[1].split(", ")] == PROJECT["tool"]["cibuildwheel"]["build"].split()
    assert re.findall(r"pipx run ([a-z-]+==[0-9.]+)", text) == sorted(packages("wheels"), reverse=True)


@in_the_project
def test_every_action_is_named_by_its_commit_and_everywhere_the_same() -> None:
    pins: dict[str, set[str]] = {}
    for path in WORKFLOW.parent.glob("*.yml"):
        for action, pin in re.findall(r"uses: ([\w-]+/[\w-]+)@(.*)", path.read_text()):
            assert re.fullmatch(r"[0-9a-f]{40} # v[0-9.]+", pin), (path.name, action, pin)
            pins.setdefault(action, set()).add(pin)
    assert "actions/checkout" in pins
    assert [action for action, found in pins.items() if len(found) > 1] == []
