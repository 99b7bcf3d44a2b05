"""`mqindex query`: the broker's answers, from arguments and stdin."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.cli.conftest import Shell, Store, process
from tests.support.elsewhere import Ways, memory

__all__ = ["memory"]  # a fixture


@pytest.mark.filterwarnings("ignore:begin .* is after end:UserWarning")  # the broker was asked so too
def test_answers_as_the_broker_did(shell: Shell, basic: Store) -> None:
    """Every recorded query of the store, those of equal limits in one call."""
    alike = defaultdict(list)
    for asked in basic.case.truth["queryOffset"]:
        if all(key not in asked["key"] for key in "\n\r") and asked["key"]:
            alike[asked["topic"], min(asked["maxNum"], 64), asked["begin"], asked["end"]].append(asked)
    assert alike
    for (topic, max_num, begin, end), asked in list(alike.items())[:40]:
        keys = "\n".join(one["key"] for one in asked).encode()
        limits = ["--max-num", str(max_num), "--begin", str(begin), "--end", str(end)]
        done = shell("query", basic.root, "-", "--topic", topic, "--json", *limits, stdin=keys)
        assert [one["phy_offsets"] for one in done.json] == [one["phy"] for one in asked]
        assert done.status == (0 if any(one["phy"] for one in asked) else 1)


@pytest.fixture
def found(basic: Store) -> dict[str, str]:
    return next(one for one in basic.case.truth["messages"] if one["topic"] == "BBTopic" and one["uniqKey"])


def test_a_hit_is_a_line_for_people(shell: Shell, basic: Store, found: dict[str, str]) -> None:
    done = shell("query", basic.root, "--topic", "BBTopic", found["uniqKey"])
    assert (done.status, done.err) == (0, "")
    assert [line.split() for line in done.lines] == [
        ["phy_offset", "key"],
        [str(found["phyOffset"]), found["uniqKey"]],
    ]


def test_one_found_key_of_several_is_a_yes(shell: Shell, basic: Store, found: dict[str, str]) -> None:
    done = shell("query", basic.root, "--topic", "BBTopic", "no such key", found["uniqKey"], "--json")
    assert done.status == 0
    assert [(one["key"], len(one["phy_offsets"])) for one in done.json] == [("no such key", 0), (found["uniqKey"], 1)]
    assert done.lines[0].startswith('{"schema": "mqindex.query/1", ')


def test_no_hit_is_a_no_without_output(shell: Shell, basic: Store, found: dict[str, str]) -> None:
    done = shell("query", basic.root, "--topic", "WrongTopic", found["uniqKey"])
    assert (done.status, done.out) == (1, "")


def test_a_topic_that_is_not_there_is_said_with_the_nearest_one(shell: Shell, basic: Store) -> None:
    """A misspelt topic was answered with nothing."""
    said = "mqindex: no entry of topic 'BbTopik' with such keys; the store has no queue of this topic; did you mean "
    assert shell("query", basic.root, "--topic", "BbTopik", "no-key").err == f"{said}BBTopic?\n"
    assert shell("query", basic.root, "--topic", "BBTopic", "no-key").err == ""


def test_a_directory_and_a_file_of_the_index_answer_too(shell: Shell, basic: Store, found: dict[str, str]) -> None:
    for path in (basic.root / "index", basic.index_files[0]):
        done = shell("query", path, "--topic", "BBTopic", found["uniqKey"], "--json")
        assert done.json[0]["phy_offsets"] == [found["phyOffset"]]


def test_times_may_be_written_as_info_prints_them(shell: Shell, basic: Store, found: dict[str, str]) -> None:
    query = ["query", basic.root, "--topic", "BBTopic", found["uniqKey"]]
    assert shell(*query, "--begin", "2023-02-23T13:00:00Z", "--end", "2030-01-01").status == 0
    assert shell(*query, "--begin", "2030-01-01").status == 1


def test_geometry_may_be_given_as_options_or_as_broker_conf(shell: Shell, basic: Store, found: dict[str, str]) -> None:
    conf = basic.root / "broker.conf"
    conf.write_text("maxHashSlotNum=100\nmaxIndexNum = 400\n")
    query = ["query", basic.root, "--topic", "BBTopic", found["uniqKey"]]
    assert shell(*query, "--broker-conf", conf).status == 0
    assert shell(*query, "--hash-slot-num", "100", "--index-num", "400").status == 0
    wrong = shell(*query, "--hash-slot-num", "99", "--index-num", "400")
    assert (wrong.status, wrong.out) == (2, "")


def test_a_stray_file_is_a_warning_in_one_line(basic: Store, found: dict[str, str]) -> None:
    (basic.root / "index" / "notes.txt").write_text("not an index file")
    done = process("query", basic.root, "--topic", "BBTopic", found["uniqKey"])
    assert done.returncode == 0
    assert done.stderr.startswith(b"mqindex: warning: ")
    assert done.stderr.count(b"\n") == 1


def test_a_store_without_index_is_trouble_with_a_way_out(shell: Shell, basic: Store) -> None:
    for file in basic.index_files:
        file.unlink()
    (basic.root / "index").rmdir()
    done = shell("query", basic.root, "--topic", "T", "k")
    assert (done.status, done.out) == (2, "")
    assert "mqindex repair" in done.err


def test_a_commit_log_is_not_asked_for_keys(shell: Shell, basic: Store, tmp_path: Path) -> None:
    done = shell("query", basic.root / "commitlog", "--topic", "T", "k")
    assert done.status == 2
    assert "is a commit-log directory: expected a store's root directory" in done.err


@pytest.mark.parametrize("flag", ["--begin", "--end"])
@pytest.mark.parametrize("moment", [str(2**63), str(-(2**63) - 1)])
def test_a_time_that_no_file_can_hold_is_one_sentence(shell: Shell, basic: Store, flag: str, moment: str) -> None:
    """It was told as a bug."""
    done = shell("query", basic.root, "--topic", "AaTopic", "Aa", flag, moment)
    assert (done.status, done.out) == (2, "")
    assert f"Invalid value for '{flag}': expected 64 bits, got more" in done.err


@pytest.mark.parametrize("flags", [[], ["--exact"]], ids=str)
@pytest.mark.parametrize("most", [2**63 - 2, 2**63 - 1, 10**30])
@pytest.mark.parametrize("what", ["store", "index", "file"])
def test_max_num_may_be_any_number(shell: Shell, basic: Store, what: str, most: int, flags: list[str]) -> None:
    """Those of more than 64 bits were told as a bug."""
    path = {"store": basic.root, "index": basic.root / "index", "file": basic.index_files[0]}[what]
    words = ["query", path, "--topic", "AaTopic", "Aa", *(flags if what == "store" else [])]
    done, expected = shell(*words, "--max-num", str(most)), shell(*words)
    assert (done.status, done.out, done.err) == (0, expected.out, "")


@pytest.fixture
def frequent(basic: Store) -> tuple[str, str]:
    """A topic and a key of several messages."""
    asked = next(one for one in basic.case.truth["queryOffset"] if len(one["phy"]) > 1 and one["key"].isalnum())
    return asked["topic"], asked["key"]


def test_an_answer_that_max_num_cuts_is_told(shell: Shell, basic: Store, frequent: tuple[str, str]) -> None:
    """Whoever got 64 of 3000 hits took them for all."""
    topic, key = frequent
    whole = shell("query", basic.root, "--topic", topic, key, "--json")
    (answer,) = whole.json
    assert (answer["more"], whole.err, len(answer["phy_offsets"]) > 1) == (False, "", True)
    cut = shell("query", basic.root, "--topic", topic, key, "--max-num", "1", "--json")
    assert (cut.json[0]["phy_offsets"], cut.json[0]["more"]) == (answer["phy_offsets"][:1], True)
    assert cut.err == "mqindex: --max-num 1 cut the answer of 1 key: there are more entries, older ones\n"
    exact = shell("query", basic.root, "--topic", topic, key, "--max-num", str(len(answer["phy_offsets"])))
    assert exact.err == ""


def test_one_damaged_index_file_does_not_end_a_query(shell: Shell, basic: Store, frequent: tuple[str, str]) -> None:
    topic, key = frequent
    words = ["query", basic.root, "--topic", topic, key, "--json"]
    (whole,) = shell(*words).json
    path = basic.index_files[0]
    path.write_bytes(path.read_bytes()[:1000])
    done = shell(*words)
    assert done.status == 0
    assert set(done.json[0]["phy_offsets"]) <= set(whole["phy_offsets"])
    assert str(path) in done.err and "missing from the answer" in done.err
    nothing = shell("query", basic.root, "--topic", topic, "no such key")
    assert (nothing.status, nothing.out) == (2, "")
    assert "nothing was found, but 1 index file could not be read" in nothing.err


def test_the_index_of_a_url(shell: Shell, basic: Store, found: dict[str, str], tmp_path: Path, memory: Ways) -> None:
    """Of an ordinary index with its geometry; of an optimised one, its store or one of its files without."""
    url, asked = memory.upload(Path(basic.root)), ["--topic", "BBTopic", found["uniqKey"], "absent"]
    here = shell("query", basic.root, *asked)
    slots, entries = basic.case.geometry
    given = ["--hash-slot-num", str(slots), "--index-num", str(entries)]
    done = shell("query", f"{url}/index", *asked, *given)
    assert (done.status, done.out, done.err) == (0, here.out, "")
    assert shell("query", f"{url}/index", "--topic", "BBTopic", "absent", *given).status == 1
    assert shell("optimize", basic.root, "--out", tmp_path / "out").status == 0
    out = memory.upload(tmp_path / "out")
    for place in (out, f"{out}/index"):
        assert shell("query", place, *asked).out == here.out
    for path in (tmp_path / "out" / "index").iterdir():
        for place in (f"{out}/index/{path.name}", f"file://{path}"):
            assert shell("query", place, *asked).out == shell("query", path, *asked).out


def test_a_file_of_a_url_that_cannot_be_read_is_named(shell: Shell, basic: Store, memory: Ways) -> None:
    first = sorted((Path(basic.root) / "index").iterdir())[0]
    first.write_bytes(b"")
    slots, entries = basic.case.geometry
    keys = [one["uniqKey"] for one in basic.case.truth["messages"] if one["topic"] == "BBTopic" and one["uniqKey"]]
    given = ["--hash-slot-num", str(slots), "--index-num", str(entries), "--topic", "BBTopic", *keys[:100]]
    url = memory.upload(Path(basic.root))
    done = shell("query", url, *given)
    assert (
        f"{url}/index/{first.name}: expected 1 byte or more, got 0; its entries are missing from the answer" in done.err
    )
    assert (done.status, done.out) == (0, shell("query", basic.root, *given).out)
    assert done.out


def test_a_url_without_obstore(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    done = shell("query", "s3://bucket/index", "--topic", "T", "k")
    assert (done.status, done.err) == (2, "mqindex: s3://bucket needs obstore: pip install 'mqindex[remote]'\n")


def test_what_a_url_does_not_give_is_said(shell: Shell, basic: Store, memory: Ways) -> None:
    def said(*line: object) -> str:
        done = shell("query", *line, "--topic", "T", "k")
        assert (done.status, done.out) == (2, "")
        return done.err

    url = memory.upload(Path(basic.root))
    assert shell("query", f"{url}/index", "--topic", "T", "k").status == 1  # which needs no geometry
    assert "is no store: expected its root directory" in said(f"{url}/index", "--messages")
    assert "is a store's root directory: expected a file" not in said(url, "--kind", "partition")
    assert said(f"{url}/nothing") == f"mqindex: {url}/nothing: No such file or directory\n"
    assert f"{url}/commitlog is a commit-log directory: expected a store's root directory" in said(f"{url}/commitlog")
    assert f"did you mean {url}?" in said(f"{url}/commitlog")
    assert "expected a URL of abfs, abfss, az" in said("nosuch://bucket/index")
    assert "--offset is for Kafka" in shell("query", url, "--offset", "1").err
