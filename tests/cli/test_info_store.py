"""The first screen of `mqindex info STORE`, and what of it programs get."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from mqindex.rocketmq import MessageStore, NewMessage
from mqindex.wording.text import iso
from tests.cli.conftest import Shell, Store, ordinary_user
from tests.cli.test_terminal import on_a_terminal, plain
from tests.support.log_writer import FIRST_TIME, LogMessage
from tests.support.queued_store import make_queued_store, tagged


def test_a_good_store_on_one_screen(shell: Shell, basic: Store) -> None:
    truth = basic.case.truth
    done = shell("info", basic.root)
    shown = {line.split("  ")[1]: line.split("  ", 2)[-1].strip() for line in done.lines[1:] if line.startswith("  ")}
    assert (done.status, done.err) == (0, "")
    assert len(done.lines) < 24
    assert (shown["abort"], shown["would a broker start"]) == ("not there", "yes")
    assert shown["log"] == f"0 to {truth['maxPhyOffset']}"
    assert shown["queues"] == "100.0 %"
    assert shown["commitlog"].endswith(" in 2 files")
    assert shown["growth"].startswith("too short to tell: ")
    assert shown["lag"] == "no group of consumers is known"
    assert done.lines[-2:] == [
        f"`mqindex info {basic.root} --all` lists files, queues and offsets",
        f"`mqindex verify {basic.root}` says what is wrong: only headers and ends were read here",
    ]


def test_programs_get_the_same_numbers(shell: Shell, basic: Store) -> None:
    truth = basic.case.truth
    offsets = {"AaTopic@slow": {"0": 0, "1": 0}, "AaTopic@quick": {"0": 10**6}, "NoTopic@slow": {"3": 5}}
    (basic.root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    (info,) = shell("info", basic.root, "--json").json
    seen, end = info["glance"], truth["maxPhyOffset"]
    assert list(info)[-1] == "glance"
    assert seen["start"]["starts"] is True
    assert (seen["coverage"]["log"], seen["coverage"]["queues"]) == ([0, end], [[0, end]])
    behind = sum(one["lag"] for one in info["consumer_offsets"]["offsets"] if one["group"] == "slow" and one["lag"])
    assert seen["lag"] == [
        {"group": "slow", "lag": behind, "queues": 3, "unknown": 1},
        {"group": "quick", "lag": 0, "queues": 1, "unknown": 0},
    ]
    assert f"slow: {behind} messages behind in 3 queues, 1 queue of it not there" in shell("info", basic.root).out


def test_coverage_and_growth_are_those_of_the_files_whatever_length_is_set(
    shell: Shell, basic: Store, tmp_path: Path
) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("maxHashSlotNum=100\nmaxIndexNum=400\nmappedFileSizeCommitLog=4096\n")
    (info,), (plain,) = (shell("info", basic.root, "--json", *given).json for given in (["--broker-conf", conf], []))
    assert info["glance"]["start"]["starts"] is False
    assert info["glance"]["coverage"] == plain["glance"]["coverage"]
    assert info["glance"]["rates"] == plain["glance"]["rates"]


def test_a_lost_index_file_is_a_gap(shell: Shell, basic: Store) -> None:
    gone = basic.case.truth["indexFiles"][1]
    whole = shell("info", basic.root, "--json").json[0]["glance"]["coverage"]["index"]
    basic.index_files[1].unlink()
    left = shell("info", basic.root, "--json").json[0]["glance"]["coverage"]["index"]
    middle = (gone["beginPhyOffset"] + gone["endPhyOffset"]) // 2
    assert any(start <= middle < stop for start, stop in whole)
    assert not any(start <= middle < stop for start, stop in left)
    assert re.search(
        r"\n  index +\d+\.\d %, \d+ gaps?: messages without keys, or missing entries\n", shell("info", basic.root).out
    )


def test_info_says_nothing_of_right_or_wrong(shell: Shell, lost: Store) -> None:
    """It said "nothing wrong is seen" where `verify` finds errors."""
    (lost.root / "abort").touch()
    data = bytearray(lost.log_files[0].read_bytes())
    data[30000:31000] = bytes(1000)
    lost.log_files[0].write_bytes(data)
    assert shell("verify", lost.root).status == 1
    said = shell("info", lost.root).out
    assert not any(word in said for word in ("wrong is seen", "verdict", "is missing", "are missing"))
    assert "  abort                 there: the last exit was unclean" in said


def test_what_a_start_would_delete_is_said(shell: Shell, lost: Store) -> None:
    (lost.root / "abort").touch()
    (lost.root / "checkpoint").unlink()
    assert re.search(r"\n  its start would +delete .*index entr", shell("info", lost.root).out)


@pytest.mark.parametrize("columns", [60, 140])
def test_a_terminal_sees_bars_that_fit(basic: Store, columns: int) -> None:
    basic.index_files[1].unlink()
    status, _, shown = on_a_terminal("info", basic.root, columns=columns, both=True)
    lines = plain(shown).splitlines()
    bars = [line for line in lines if "█" in line]
    assert status == 0
    assert [line.split()[0] for line in bars] == ["log", "index", "queues"]
    assert "░" in bars[1]
    assert all(len(line) <= columns for line in lines if str(basic.root) not in line)


def test_a_terminal_that_knows_no_blocks_gets_signs(monkeypatch: pytest.MonkeyPatch, basic: Store) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    _, _, shown = on_a_terminal("info", basic.root, both=True)
    assert "####" in shown


@pytest.mark.parametrize("part", ["index", "consumequeue", "commitlog", "checkpoint", "config"])
def test_a_store_without_a_part_has_a_screen_too(shell: Shell, basic: Store, part: str) -> None:
    gone = basic.root / part
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink(missing_ok=True)
    done = shell("info", basic.root)
    assert (done.status, done.err) == (0, "")
    assert "would a broker start" in done.out
    if part in ("index", "consumequeue", "commitlog"):
        assert re.search(rf"\n  {part} +not there\n", done.out)


def test_damage_is_said_on_the_screen_and_on_stderr(shell: Shell, basic: Store) -> None:
    basic.index_files[2].write_bytes(b"\0" * 17)
    for log in basic.log_files:
        log.write_bytes(b"\xff" * 100)
    done = shell("info", basic.root)
    assert done.status == 2
    assert "1 cannot be read" in done.out
    assert basic.index_files[2].name in done.err


@pytest.mark.parametrize(("part", "shown"), [("index", "index"), ("consumequeue", "queues")])
def test_what_may_not_be_read_is_not_said_to_be_missing(shell: Shell, public: Store, part: str, shown: str) -> None:
    assert shell("info", public.root).status == 0  # imported as root
    (public.root / part).chmod(0)
    with ordinary_user():
        done = shell("info", public.root)
    assert done.status == 2
    assert re.findall(r"\n  (\w+) +cannot be read(?=\n)", done.out) == [shown, part]


def test_names_of_groups_are_escaped(shell: Shell, basic: Store) -> None:
    offsets = {"offsetTable": {"AaTopic@\x1b[2J\u202eg": {"0": 0}}}
    (basic.root / "config" / "consumerOffset.json").write_text(json.dumps(offsets))
    assert r"\x1b[2J\u202eg: " in shell("info", basic.root).out


def test_names_and_times_may_be_anything(shell: Shell, tmp_path: Path) -> None:
    with MessageStore.open(tmp_path / "store", writable=True) as store:
        for moment in (-(2**60), 2**62):
            store.put_message(NewMessage("T", b"x", store_timestamp=moment))
    offsets = {"offsetTable": {"T@" + "g" * 100_000: {"0": 0}}}
    (tmp_path / "store" / "config").mkdir(exist_ok=True)
    (tmp_path / "store" / "config" / "consumerOffset.json").write_text(json.dumps(offsets))
    done = shell("info", tmp_path / "store")
    assert (done.status, done.err) == (0, "")
    assert "growth        too short to tell" in done.out
    assert f"{'g' * 60}... (100000 characters): 2 messages behind in 1 queue" in done.out


def test_long_lists_are_cut_where_all_is_not_asked_for(shell: Shell, basic: Store) -> None:
    for number in range(200):
        (basic.root / "consumequeue" / "Many" / str(number)).mkdir(parents=True)
    queues = basic.root / "consumequeue"
    total = len(shell("info", queues, "--json").json[0]["queues"])
    assert f"... and {total - 100} rows more: --all lists them" in shell("info", queues).lines
    for path in (queues, basic.root):
        assert sum(line.startswith("Many") for line in shell("info", path, "--all").lines) == 200


def test_info_of_a_store_reads_no_more_of_a_larger_log(shell: Shell, basic: Store) -> None:
    """A hole in the oldest file is none of its business."""
    data = bytearray(basic.log_files[0].read_bytes())
    data[30000:31000] = bytes(1000)
    Path(basic.log_files[0]).write_bytes(data)
    assert shell("info", basic.root).status == 0


def test_growth_is_told_of_two_days(shell: Shell, tmp_path: Path) -> None:
    times = (FIRST_TIME, FIRST_TIME + 86_400_000, FIRST_TIME + 172_800_000)
    messages = [LogMessage("T", queue_offset=at, store_timestamp=time) for at, time in enumerate(times)]
    make_queued_store(tmp_path, messages)
    (info,) = shell("info", tmp_path, "--json").json
    size = info["glance"]["coverage"]["log"][1]
    assert (info["glance"]["rates"]["bytes_a_day"], info["glance"]["rates"]["messages_a_day"]) == (round(size / 2), 2)
    said = shell("info", tmp_path).out
    assert "2 messages a day" in said and f"of            {iso(times[0])} to {iso(times[-1])}, 2 days" in said


@pytest.mark.parametrize("times", [(FIRST_TIME, FIRST_TIME + 74_000), (0, FIRST_TIME), (FIRST_TIME, 2**62), (-5, -1)])
def test_no_growth_is_told_of_times_that_tell_none(shell: Shell, tmp_path: Path, times: tuple[int, ...]) -> None:
    messages = [LogMessage("T", queue_offset=at, store_timestamp=time) for at, time in enumerate(times)]
    make_queued_store(tmp_path, messages)
    (info,) = shell("info", tmp_path, "--json").json
    assert info["glance"]["rates"] is None
    assert "growth        too short to tell: it needs two messages a day apart" in shell("info", tmp_path).out


def test_what_the_system_says_is_told_without_its_number(shell: Shell) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        make_queued_store(root, tagged(3))
        (root / "config").mkdir()
        shell("info", root)  # what is imported on first use is imported now
        root.chmod(0o755)
        (root / "config").chmod(0)
        with ordinary_user():
            done = shell("info", root)
    assert re.search(r"would a broker start +not known: \S+topics.json: Permission denied", done.out)


def test_a_root_that_may_not_be_entered_is_not_an_empty_store(shell: Shell, public: Store) -> None:
    assert shell("info", public.root).status == 0  # imported as root
    public.root.chmod(0o444)
    with ordinary_user():
        done = shell("info", public.root, "--kind", "store")
    public.root.chmod(0o755)
    assert (done.status, "Permission denied" in done.err, "missing" in done.out) == (2, True, False)


def test_what_fails_in_two_parts_is_said_once(shell: Shell, public: Store) -> None:
    assert shell("info", public.root).status == 0
    topic = min((public.root / "consumequeue").iterdir())
    topic.chmod(0)
    with ordinary_user():
        done = shell("info", public.root)
    assert (done.status, done.err) == (2, f"mqindex: {topic}: Permission denied\n")


def test_links_that_lead_to_themselves_lead_nowhere(shell: Shell, basic: Store) -> None:
    """As for a broker; `verify` tells which of them keep it from starting."""
    topic = next((basic.root / "consumequeue").iterdir())
    for loop in (basic.root / "loop", basic.root / "consumequeue" / "Loop", topic / "9"):
        loop.symlink_to(loop.name)
    done = shell("info", basic.root)
    assert (done.status, done.err) == (0, "")
    verified = shell("verify", basic.root)
    assert "Too many levels" not in verified.err
    assert verified.status in (0, 1)


def test_a_file_in_the_place_of_the_queues_is_no_directory(shell: Shell, basic: Store) -> None:
    shutil.rmtree(basic.root / "consumequeue")
    (basic.root / "consumequeue").write_text("x")
    done = shell("info", basic.root)
    assert (done.status, done.err) == (2, f"mqindex: {basic.root / 'consumequeue'}: Not a directory\n")
