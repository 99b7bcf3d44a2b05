"""Every command and option of the shell explains itself, and is in the README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

click = pytest.importorskip("click")

from mqindex.cli.group import COMMANDS, root  # noqa: E402
from tests.support.each import for_each  # noqa: E402

README = Path(__file__).parents[2] / "README.md"
OPTIONS = {  # the contract: options a script may rely on
    "info": {"--all", "--kind", "--json"},
    "query": {
        "--topic",
        "--begin",
        "--end",
        "--max-num",
        "--messages",
        "--exact",
        "--offset",
        "--timestamp",
        "--kind",
        "--json",
    },
    "messages": {
        "--topic",
        "--queue-id",
        "--partition",
        "--begin",
        "--end",
        "--key",
        "--tag",
        "--offset",
        "--limit",
        "--columns",
        "--where",
        "--format",
        "--out",
        "--force",
        "--cache",
        "--isolation-level",
        "--kind",
        "--json",
    },
    "sql": {"--format", "--out", "--force", "--json"},
    "message": {"--body", "--out", "--force", "--topic", "--json"},
    "verify": {"--deep", "--cache", "--engine", "--workers", "--master", "--verbose", "--json"},
    "report": {"--out", "--force", "--deep", "--engine", "--workers", "--master", "--verbose", "--json"},
    "repair": {"--dry-run", "--undo", "--parts", "--engine", "--workers", "--master", "--verbose", "--json"},
    "rebuild": {"--out", "--force", "--parts", "--cache", "--engine", "--workers", "--master", "--verbose", "--json"},
    "optimize": {
        "--out",
        "--force",
        "--hash-slot-num",
        "--index-num",
        "--engine",
        "--workers",
        "--master",
        "--verbose",
        "--json",
    },
    "follow": {"--out", "--json"},
    "dump": {"--format", "--records", "--kind"},
    "hash": {"--json"},
    "doctor": {"--json"},
    "sample": {"--json"},
}
STORE_OPTIONS = {"--commitlog", "--hash-slot-num", "--index-num", "--broker-version", "--broker-conf"}
PARTITION_OPTIONS = {"--kafka-version", "--index-interval-bytes", "--max-index-size"}


def command(name: str) -> click.Command:
    found = root.get_command(click.Context(root), name)
    assert found is not None
    return found


def test_the_commands_are_those_of_the_contract() -> None:
    assert set(COMMANDS) == set(OPTIONS)


@for_each(COMMANDS)
def test_every_option_has_a_help_text(name: str) -> None:
    options = [param for param in command(name).params if isinstance(param, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_where_a_period_ends_is_said_in_the_same_words() -> None:
    """A query asks as a broker does, a scan as a half-open range: the end is in the one and not in the other."""
    ends = {
        name: next(one.help for one in command(name).params if isinstance(one, click.Option) and "--end" in one.opts)
        for name in ("query", "messages")
    }
    assert "begin <= t <= end" in (ends["query"] or "")
    assert "begin <= t < end" in (ends["messages"] or "")


@for_each(COMMANDS)
def test_help_says_what_how_and_the_exit_codes(name: str) -> None:
    text = command(name).get_help(click.Context(command(name), info_name=name))
    assert f"Usage: {name}" in text
    assert COMMANDS[name].endswith(".")
    assert "xit code" in text or name in {"info", "dump", "hash"}


def test_options_for_one_broker_are_under_its_name() -> None:
    text = command("query").get_help(click.Context(command("query"), info_name="query"))
    everywhere, rest = text.split("For RocketMQ:\n")
    rocketmq, kafka = rest.split("For Kafka:\n")
    for words, options in (
        (everywhere, ("--kind", "--json")),
        (rocketmq, ("--topic", "--index-num")),
        (kafka, ("--offset",)),
    ):
        assert all(f"  {option} " in words for option in options), words
    assert "  PATH" not in everywhere.partition("Options:")[2]
    assert "RocketMQ: " not in text.replace("likewise. RocketMQ: ", "").partition("Options:")[2]


@for_each(COMMANDS)
def test_the_options_of_the_contract_exist(name: str) -> None:
    known = flags(name)
    opens_a_store = {"query", "message", "verify", "report", "repair", "rebuild", "follow", "info"}
    wanted = OPTIONS[name] | (STORE_OPTIONS if name in opens_a_store else set())
    wanted |= PARTITION_OPTIONS if name in opens_a_store - {"follow", "message"} else set()
    assert wanted - known == set()


def flags(name: str) -> set[str]:
    return {flag for param in command(name).params for flag in param.opts}


@pytest.mark.skipif(not README.exists(), reason="an installed package is tested without its README")
@for_each(COMMANDS)
def test_the_readme_names_every_command(name: str) -> None:
    assert f"mqindex {name}" in README.read_text()


@pytest.mark.skipif(not README.exists(), reason="an installed package is tested without its README")
def test_the_readme_names_options_that_exist() -> None:
    text = README.read_text()
    lines = re.findall(r"`mqindex (\w+)([^`]*)`", text)
    wrong = [(name, flag) for name, rest in lines for flag in re.findall(r"--[\w-]+", rest) if flag not in flags(name)]
    everywhere = set().union(*map(flags, COMMANDS))
    wrong += [("any", flag) for flag in re.findall(r"`(--[\w-]+)", text) if flag not in everywhere]
    assert lines
    assert wrong == []
