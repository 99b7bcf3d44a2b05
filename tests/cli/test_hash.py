"""`mqindex hash`."""

from __future__ import annotations

import json
import os

import pytest

from mqindex.rocketmq import key_hash
from tests.cli.conftest import Shell, process


def test_prints_the_brokers_hash_of_each_key(shell: Shell) -> None:
    done = shell("hash", "Aa", "BB", "polygenelubricants", "")
    assert (done.status, done.err) == (0, "")
    assert [line.split() for line in done.lines] == [
        ["key_hash", "key"],
        ["2112", "Aa"],
        ["2112", "BB"],
        ["0", "polygenelubricants"],
        ["0"],
    ]


def test_the_topic_is_hashed_in_front(shell: Shell) -> None:
    with_topic = shell("hash", "--topic", "AaTopic", "BB", "--json").json
    whole = shell("hash", "AaTopic#BB", "--json").json
    assert with_topic[0]["key_hash"] == whole[0]["key_hash"]
    assert (with_topic[0]["topic"], with_topic[0]["key"]) == ("AaTopic", "BB")


def test_json_is_an_object_a_key_with_its_schema_first(shell: Shell) -> None:
    done = shell("hash", "--hash-slot-num", "100", "--json", "Aa", "é😀")
    assert done.lines[0] == '{"schema": "mqindex.hash/1", "topic": null, "key": "Aa", "key_hash": 2112, "slot": 12}'
    assert [one["key"] for one in done.json] == ["Aa", "é😀"]


def test_slots_are_printed_for_a_number_of_slots(shell: Shell) -> None:
    assert shell("hash", "Aa", "--hash-slot-num", "100").lines[1].split() == ["2112", "12", "Aa"]


def test_keys_come_from_stdin_one_a_line(shell: Shell) -> None:
    done = shell("hash", "-", "--json", stdin="Aa\n\nzwei Wörter\r\nlast".encode())
    assert [one["key"] for one in done.json] == ["Aa", "zwei Wörter", "last"]


def test_a_byte_order_mark_is_no_part_of_the_first_key(shell: Shell) -> None:
    """The key was looked up with the mark, and not found."""
    done = shell("hash", "-", "--json", stdin="\ufeffAa\n\ufeffBB\n".encode())
    assert [one["key"] for one in done.json] == ["Aa", "\ufeffBB"]


@pytest.mark.parametrize("arguments", [["-", "Aa"], ["Aa", "-"]])
def test_stdin_and_arguments_do_not_mix(shell: Shell, arguments: list[str]) -> None:
    done = shell("hash", *arguments)
    assert done.status == 2
    assert "either KEY... or -" in done.err


def test_a_line_that_is_not_utf_8_is_named(shell: Shell) -> None:
    done = shell("hash", "-", stdin=b"good\n\xff\xfe\n")
    assert done.status == 2
    assert "stdin, line 2" in done.err


def test_a_key_cannot_steer_the_terminal(shell: Shell) -> None:
    assert "\x1b" not in shell("hash", "a\x1b[2Jb").out


def test_a_locale_of_ascii_does_not_change_a_key() -> None:
    """It was refused as no UTF-8, and a topic was hashed as something else."""
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = process("hash", "--topic", "thé", "标签", "--json", env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["key_hash"] == key_hash("thé#标签")


@pytest.mark.parametrize("words", [["hash", "--topic", "\udcff", "k"], ["hash", "\udcff"]])
def test_bytes_that_are_no_text_are_refused(shell: Shell, words: list[str]) -> None:
    done = shell(*words)
    assert (done.status, done.out) == (2, "")
    assert "expected UTF-8, got '\\udcff'" in done.err
