"""CONTRIBUTING is true: its picture shows today's imports, its table every room, and every file it names is there."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("bench", reason="an installed package is tested without its benchmarks")

from bench import house, pictures

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / ".github" / "CONTRIBUTING.md"
EXAMPLES = {  # and how many files a recipe names at least
    "A command": ("dump", "", 7),
    "An engine": ("spark", "", 7),
    "A layout": ("consume_queue", "rocketmq", 7),
    "A setting": ("mappedFileSizeTimerLog", "rocketmq", 4),
    "A rule of a broker": ("TAGS_INDEXED", "rocketmq", 4),
    "A finding": ("linked-directory", "rocketmq", 4),
}
IN_ORDER = {  # what a recipe's example is called in the code, and the files of it that have to name it
    "A setting": ("TIMER_LOG_FILE_SIZE", ["rocketmq/settings.py", "rocketmq/checks/start/load_look.py"]),
    "A rule of a broker": ("TAGS_INDEXED", ["rocketmq/brokers.py", "rocketmq/options.py"]),
    "A finding": ("LINKED_DIRECTORY", ["rocketmq/catalogue.py", "rocketmq/pipeline/survey.py"]),
}
TEXT = DOCUMENT.read_text() if DOCUMENT.exists() else ""
SECTIONS = [part for part in re.split(r"^(?=###? )", TEXT, flags=re.MULTILINE)[1:] if not part.startswith("## Gloss")]
PATH = re.compile(r"`((?:\.?[\w-]+/)+[\w.-]*|[\w-]+\.(?:py|md|toml))`")
DRAW = "`python -m bench report` draws the rooms anew"

pytestmark = pytest.mark.skipif(not DOCUMENT.exists(), reason="an sdist has no CONTRIBUTING")


def named(text: str, name: str = "", broker: str = "") -> list[str]:
    return [path.replace("NAME", name).replace("BROKER", broker) for path in PATH.findall(text)]


def test_the_picture_shows_todays_imports() -> None:
    table = json.loads(json.dumps(house.table()))
    assert pictures.stale({"house": table}) == [], DRAW


def test_another_import_makes_the_picture_stale() -> None:
    table = json.loads(json.dumps(house.table()))
    other = copy.deepcopy(table)
    other["arrows"]["files"].append("columns")
    assert len(pictures.stale({"house": other})) == 2


def test_the_picture_leaves_out_only_arrows_that_follow_from_others() -> None:
    arrows = house.table()["arrows"]
    drawn = house.needed(arrows)
    reached = {name: {name} for name in arrows}
    for _ in arrows:
        for above, below in drawn:
            reached[above] |= reached[below]
    assert all(below in reached[above] for above, direct in arrows.items() for below in direct)
    assert set(drawn) <= {(above, below) for above, direct in arrows.items() for below in direct}
    assert len(drawn) < sum(map(len, arrows.values()))


def test_the_table_has_every_room_of_the_picture() -> None:
    rows = re.findall(r"^\| (`[^|]*) \|", TEXT.split("The rooms inside")[0], re.MULTILINE)
    rooms = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(rooms) == sorted(house.table()["levels"])


def test_the_second_table_has_every_room_inside_the_brokers_and_the_commands() -> None:
    rows = re.findall(r"^\| ([^|]*?) ?\| (`[^|]*`) \|", TEXT.split("The rooms inside")[1].split("## ")[0], re.MULTILINE)
    listed: dict[str, set[str]] = {}
    of: list[str] = []
    for where, names in rows:
        of = ["rocketmq", "kafka"] if where == "both" else re.findall(r"`(\w+)`", where) or of
        for room in of:
            listed.setdefault(room, set()).update(re.findall(r"`(\w+)`", names))
    inside = house.table()["inside"]
    assert listed == {room: set(inside[room]) for room in ("cli", "kafka", "rocketmq")}


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.splitlines()[0].strip("# "))
def test_every_file_that_is_named_is_there(section: str) -> None:
    heading = section.splitlines()[0].strip("# ")
    name, broker, least = EXAMPLES.get(heading, ("", "", 0))
    paths = named(section, name, broker)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert paths or heading not in {"The house", "The way of a message through the pipeline", *EXAMPLES}
    if heading in EXAMPLES:
        assert f"`{name}`" in section or f"`mqindex {name}`" in section
        assert len(paths) >= least


def test_the_lists_of_files_are_those_that_name_the_example() -> None:
    """A file outside the tests that speaks of `dump` as a command, or of the engine, is on the list."""
    for path in (ROOT / "mqindex").rglob("*.py"):
        if '"local", "spark"' in path.read_text():
            assert f"`{path.relative_to(ROOT)}`" in TEXT.split("### An engine")[1].split("### A layout")[0]
        if re.search(r'^    "dump": ', path.read_text(), re.MULTILINE):
            assert f"`{path.relative_to(ROOT)}`" in TEXT.split("### A command")[1].split("### An engine")[0]


@pytest.mark.parametrize("heading", IN_ORDER)
def test_a_setting_a_rule_and_a_finding_are_in_the_files_of_their_recipe_and_in_no_more(heading: str) -> None:
    """One home and one place where it decides: what has its name elsewhere would be a step that the recipe lacks."""
    name, files = IN_ORDER[heading]
    section = next(part for part in SECTIONS if part.startswith(f"### {heading}\n"))
    named_in = [path for path in files if f"`mqindex/{path}`" in section]
    assert named_in == files
    each = (ROOT / "mqindex" / "rocketmq").rglob("*.py")
    found = {str(path.relative_to(ROOT / "mqindex")) for path in each if re.search(rf"\b{name}\b", path.read_text())}
    assert found >= set(files)
    assert heading == "A rule of a broker" or found == set(files)  # a rule may be asked in many places
