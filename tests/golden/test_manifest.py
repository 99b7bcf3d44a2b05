"""The golden files are the ones that were put there."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.support.golden import DATA, STORE_CASES, case, oracle_cases

MANIFEST = json.loads((DATA / "MANIFEST.json").read_text())


@pytest.mark.parametrize("path", MANIFEST["files"])
def test_golden_file_is_the_recorded_one(path: str) -> None:
    content = (DATA / path).read_bytes()
    assert {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()} == MANIFEST["files"][path]


def test_no_golden_file_is_missing_from_the_manifest() -> None:
    assert sorted(str(path.relative_to(DATA)) for path in DATA.rglob("*.gz")) == sorted(MANIFEST["files"])


@pytest.mark.parametrize("name", STORE_CASES)
def test_manifest_tells_version_and_settings_of_each_case(name: str) -> None:
    truth = case(name).truth
    assert MANIFEST["cases"][name] == {"version": truth["version"], "config": truth["config"]}


def test_all_cases_are_there() -> None:
    assert len(STORE_CASES) == 11
    assert len(oracle_cases()) == 19
