"""`mqindex query --messages` and `--exact`: the messages themselves, and only those that have the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.rocketmq import MessageStore, NewMessage
from mqindex.wording.text import iso
from tests.cli.conftest import Shell, Store
from tests.cli.test_terminal import on_a_terminal, plain


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """AaTopic#k and BBTopic#k have one hash."""
    root = tmp_path / "store"
    with MessageStore.open(root, writable=True) as store:
        for number, topic in enumerate(["AaTopic", "BBTopic", "AaTopic"]):
            body = b"first line\nsecond \x1b[2J " + b"x" * 100 if number else b"\xff\xfe"
            store.put_message(
                NewMessage(topic, body, 3, f"t{number}", "k j", f"id-{number}", store_timestamp=1000 + number)
            )
    return root


def test_a_row_a_message_in_a_pipe(shell: Shell, store: Path) -> None:
    done = shell("query", store, "--topic", "AaTopic", "k", "--messages", "--exact")
    titles, newest, oldest = (line.split() for line in done.lines)
    assert (done.status, done.err) == (0, "")
    assert titles == [
        "store_timestamp",
        "topic",
        "queue_id",
        "queue_offset",
        "phy_offset",
        "tags",
        "keys",
        "uniq_key",
        "body",
    ]
    assert newest[:4] + newest[5:9] == [iso(1002), "AaTopic", "3", "1", "t2", "k", "j", "id-2"]
    assert " ".join(newest[9:]).startswith(r"first line\nsecond \x1b[2J xxx")
    assert newest[-1].endswith("x...")
    assert oldest[-3:] == ["id-0", "ff", "fe"]


def test_exact_leaves_out_what_has_only_the_hash(shell: Shell, store: Path) -> None:
    by_hash, exact = (
        shell("query", store, "--topic", "BBTopic", "k", "--json", *flags).json[0]["phy_offsets"]
        for flags in ([], ["--exact"])
    )
    assert (len(by_hash), exact) == (3, by_hash[1:2])
    nothing = shell("query", store, "--topic", "BBTopic", "id-0", "--exact")
    assert (nothing.status, nothing.out) == (1, "")


def test_max_num_counts_what_is_exact(shell: Shell, store: Path) -> None:
    done = shell("query", store, "--topic", "AaTopic", "k", "--json", "--exact", "--max-num", "1", "--messages")
    (answer,) = done.json
    assert (len(answer["phy_offsets"]), answer["more"]) == (1, True)
    (message,) = answer["messages"]
    assert message["phy_offset"] == answer["phy_offsets"][0]
    assert (message["topic"], message["queue_id"], message["queue_offset"]) == ("AaTopic", 3, 1)
    assert (message["keys"], message["tags"], message["uniq_key"]) == ("k j", "t2", "id-2")
    assert message["store_timestamp"] == 1002
    assert message["body_beginning"].startswith("first line\nsecond \x1b[2J xx")


@pytest.mark.parametrize("columns", [60, 160])
def test_a_terminal_gets_lines_that_fit(store: Path, columns: int) -> None:
    status, _, shown = on_a_terminal(
        "query", store, "--topic", "AaTopic", "k", "--messages", "--exact", columns=columns, both=True
    )
    assert status == 0
    lines = plain(shown).splitlines()
    assert lines[0].startswith(f"{iso(1002)}  AaTopic, queue 3,")
    assert "  tags: t2  keys: k j  uniq_key: id-2" in lines
    assert any(line.startswith(r"  first line\nsecond \x1b[2J") for line in lines)
    assert all(len(line) <= columns for line in lines)
    assert "\x1b[2J" not in shown


def test_a_place_that_the_log_has_no_more_is_said(shell: Shell, basic: Store) -> None:
    found = next(one for one in basic.case.truth["messages"] if one["uniqKey"] and one["phyOffset"] < 65536)
    basic.log_files[0].unlink()
    query = ["query", basic.root, "--topic", found["topic"], found["uniqKey"], "--messages"]
    assert shell(*query).lines[1].split(maxsplit=1) == [str(found["phyOffset"]), "(expired: the log begins at 65536)"]
    assert shell(*query, "--json").json[0]["messages"] == [{"phy_offset": found["phyOffset"], "store_timestamp": None}]
    assert shell(*query, "--exact").status == 1
    places = shell(*query[:-1])
    assert (places.status, places.err) == (0, "mqindex: 1 of these messages is expired: the log begins at 65536\n")


@pytest.mark.parametrize("flag", ["--messages", "--exact"])
def test_only_a_store_has_messages(shell: Shell, store: Path, flag: str, tmp_path: Path) -> None:
    done = shell("query", store / "index", "--topic", "AaTopic", "k", flag)
    assert (done.status, done.out) == (2, "")
    assert "is no store: expected its root directory; --messages and --exact read the commit log" in done.err
