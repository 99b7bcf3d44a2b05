"""What README.md, bench/README.md and the plots say of speed is what the newest record gives."""

from __future__ import annotations

import copy
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("bench", reason="an installed package is tested without its benchmarks")

from bench import pictures, report
from bench.records import newest
from bench.rows import FRONT

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "bench" / "README.md"]


def repository() -> str:
    """What the absolute links of README.md begin with: an index of packages shows it too."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"])


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    found = newest()
    assert found
    return found


def test_tables_and_plots_are_those_of_the_newest_records(records: list[dict[str, Any]]) -> None:
    assert report.stale(records) == []


def test_another_figure_makes_documents_and_plots_stale(records: list[dict[str, Any]]) -> None:
    other = copy.deepcopy(records)
    other[0]["parts"]["full"]["put_keys"]["numbers"][0].update(ours=12.5, ratio=20.75)
    changed = {"speed-light", "speed-dark", "speed-up-light", "speed-up-dark", "growth-light", "growth-dark"}
    assert set(report.stale(other)) == {"README.md", "bench/README.md"} | {f"bench/svg/{name}.svg" for name in changed}


def test_readme_says_also_where_there_is_no_gain() -> None:
    table = DOCUMENTS[0].read_text().split(report.BEGIN)[1].split(report.END)[0]
    verdicts = [line.split(" | ")[-1] for line in table.split("\n\n")[0].strip().splitlines()[2:]]
    assert len(verdicts) == len(FRONT)
    assert not [one for one in verdicts if re.match(r"\**(0\.9|1\.0)", one)], "so small a difference is none"
    assert any(one.endswith(" as long |") for one in verdicts)


@pytest.mark.parametrize("document", DOCUMENTS, ids=["README", "bench"])
def test_pictures_exist_light_and_dark(document: Path) -> None:
    text = document.read_text().replace(f"{repository()}/raw/main/", "")
    light, dark = (sorted(re.findall(rf'"([\w/.-]*)-{theme}\.svg"', text)) for theme in ("light", "dark"))
    assert light == dark
    for name in light:
        for theme in pictures.THEMES:
            assert (document.parent / f"{name}-{theme}.svg").stat().st_size < 60_000
    assert light


@pytest.mark.parametrize("document", DOCUMENTS, ids=["README", "bench"])
def test_goals_are_not_what_users_read(document: Path) -> None:
    assert not re.search(r"\b(must|aim) met\b|\bnot met\b|\| must \|", document.read_text())
