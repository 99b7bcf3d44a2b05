"""`mqindex info`, and how it tells what a path is."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mqindex.wording.text import iso
from tests.cli.conftest import Shell, Store
from tests.support.golden import oracle_cases


def test_an_index_file(shell: Shell, basic: Store) -> None:
    said = basic.case.truth["indexFiles"][1]
    (info,) = shell("info", basic.index_files[1], "--json").json
    assert list(info)[:3] == ["schema", "kind", "path"]
    assert (info["schema"], info["kind"]) == ("mqindex.info/1", "index-file")
    for ours, theirs in {
        "begin_timestamp": "beginTimestamp",
        "end_timestamp": "endTimestamp",
        "begin_phy_offset": "beginPhyOffset",
        "end_phy_offset": "endPhyOffset",
        "hash_slot_count": "hashSlotCount",
        "index_count": "indexCount",
        "full": "full",
    }.items():
        assert info[ours] == said[theirs]
    assert (info["hash_slot_num"], info["index_num"], info["entries"], info["capacity"]) == (100, 400, 399, 399)
    assert info["geometry_source"] == "inferred from the file"


def test_an_index_file_for_people(shell: Shell, basic: Store) -> None:
    said = basic.case.truth["indexFiles"][0]
    done = shell("info", basic.index_files[0])
    assert (done.status, done.err) == (0, "")
    assert done.lines[0] == f"{basic.index_files[0]}: an index file"
    shown = {line.split()[0]: line.split(maxsplit=1)[1] for line in done.lines[1:]}
    assert shown["begin_timestamp"] == f"{said['beginTimestamp']}  {iso(said['beginTimestamp'])}"
    assert shown["entries"] == "399 of 399 (100.0%), full"
    assert shown["geometry"] == "inferred from the file"


def test_geometry_that_is_given_is_said_to_be(shell: Shell, basic: Store) -> None:
    arguments = ["info", basic.index_files[0], "--json"]
    (given,) = shell(*arguments, "--hash-slot-num", "100", "--index-num", "400").json
    assert given["geometry_source"] == "given"
    conf = basic.root / "broker.conf"
    conf.write_text("maxHashSlotNum=100\nmaxIndexNum=400\n")
    (configured,) = shell(*arguments, "--broker-conf", conf).json
    assert configured["geometry_source"] == str(conf)


def test_a_directory_of_index_files(shell: Shell, basic: Store) -> None:
    (info,) = shell("info", basic.root / "index", "--json").json
    said = basic.case.truth["indexFiles"]
    assert info["kind"] == "index-dir"
    assert [(file["name"], file["index_count"]) for file in info["files"]] == [
        (file["name"], file["indexCount"]) for file in said
    ]
    table = shell("info", basic.root / "index")
    assert table.status == 0
    for file in said:
        assert any(line.startswith(file["name"]) for line in table.lines)


def test_a_commit_log_and_one_of_its_files(shell: Shell, basic: Store) -> None:
    (info,) = shell("info", basic.root / "commitlog", "--json").json
    assert info["kind"] == "commitlog-dir"
    assert (info["min_phy_offset"], info["max_phy_offset"]) == (0, basic.case.truth["maxPhyOffset"])
    assert [file["start"] for file in info["files"]] == [0, 65536]
    (info,) = shell("info", basic.log_files[1], "--json").json
    assert info["kind"] == "commitlog-file"
    assert (info["min_phy_offset"], info["max_phy_offset"]) == (65536, basic.case.truth["maxPhyOffset"])
    assert shell("info", basic.root / "commitlog").status == 0


def test_a_checkpoint(shell: Shell, basic: Store) -> None:
    (info,) = shell("info", basic.root / "checkpoint", "--json").json
    said = basic.case.truth["checkpoint"]
    assert info["kind"] == "checkpoint"
    assert info["index_msg_timestamp"] == said["indexMsgTimestamp"]
    assert info["logics_msg_timestamp"] == said["logicsMsgTimestamp"]
    assert iso(said["indexMsgTimestamp"]) in shell("info", basic.root / "checkpoint").out


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("topics.json", '{"topicConfigTable":{"A":{},"B":{}}}', "what    the topics|topics  2"),
        ("delayOffset.json", '{"offsetTable":{1:5,2:7,3:0}}', "delay levels  3"),
        ("subscriptionGroup.json", '{"subscriptionGroupTable":{"G":{}}}', "groups  1"),
        ("consumerFilter.json", "{}", "topics  0"),
        ("topics.json.bak", "", "topics  0"),
    ],
)
def test_a_file_of_the_configuration(shell: Shell, tmp_path: Path, name: str, text: str, shown: str) -> None:
    """It was "nothing that mqindex knows"."""
    (tmp_path / name).write_text(text)
    done = shell("info", tmp_path / name)
    assert (done.status, done.err) == (0, "")
    assert all(f"  {line}\n" in done.out for line in shown.split("|"))
    for wrong in ("{", "[]", '{"topicConfigTable":3,"offsetTable":3,"subscriptionGroupTable":3,"filterDataByTopic":3}'):
        (tmp_path / name).write_text(wrong)
        done = shell("info", tmp_path / name)
        assert (done.status, done.out) == (2, "") and str(tmp_path / name) in done.err and "a bug" not in done.err


def test_a_store_with_all_its_parts(shell: Shell, basic: Store) -> None:
    (info,) = shell("info", basic.root, "--json").json
    assert info["kind"] == "store"
    assert (info["abort"], info["lock"]) == (False, "free")
    assert len(info["index"]["files"]) == len(basic.index_files)
    assert info["commitlog"]["max_phy_offset"] == basic.case.truth["maxPhyOffset"]
    (basic.root / "abort").touch()
    done = shell("info", basic.root, "--all")
    assert done.status == 0
    assert "the last exit was unclean" in done.out
    for part in ("commitlog", "index", "checkpoint"):
        assert any(line.split()[:1] == [part] and not line.startswith(" ") for line in done.lines)


def test_a_store_whose_parts_are_missing_is_still_a_store(shell: Shell, basic: Store) -> None:
    shutil.rmtree(basic.root / "index")
    (basic.root / "checkpoint").unlink()
    (basic.root / "lock").unlink()
    (info,) = shell("info", basic.root, "--json").json
    assert (info["index"], info["checkpoint"], info["lock"]) == (None, None, "absent")


def test_a_lock_that_a_broker_holds_is_seen_and_not_disturbed(shell: Shell, basic: Store) -> None:
    program = "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f,fcntl.LOCK_EX,1,0); print(flush=True); input()"
    lock = basic.root / "lock"
    broker = subprocess.Popen(
        [sys.executable, "-c", program, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        assert shell("info", basic.root, "--json").json[0]["lock"] == "held"
        broker.communicate("\n")
    with lock.open("r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)


def test_a_part_that_cannot_be_read_is_trouble_and_hides_no_other(shell: Shell, basic: Store) -> None:
    basic.index_files[2].write_bytes(b"\0" * 17)
    done = shell("info", basic.root, "--json")
    assert done.status == 2
    assert done.json[0]["commitlog"]["max_phy_offset"] == basic.case.truth["maxPhyOffset"]
    assert [("error" in file) for file in done.json[0]["index"]["files"]] == [False, False, True, False]
    assert basic.index_files[2].name in done.err


def test_a_file_is_known_by_its_content_whatever_its_name(shell: Shell, basic: Store, tmp_path: Path) -> None:
    index, log = tmp_path / "copy.bin", tmp_path / "log.bin"
    shutil.copy(basic.index_files[0], index)
    assert shell("info", index, "--json").json[0]["kind"] == "index-file"
    shutil.copy(basic.log_files[0], log)
    assert "expected a name of 20 digits, the offset at which it starts" in shell("info", log).err


def test_kind_is_forced_where_nothing_tells(shell: Shell, tmp_path: Path) -> None:
    empty = next(one for one in oracle_cases() if one.name.endswith("fresh-no-put"))
    file = tmp_path / "something"
    file.write_bytes(empty.bytes_after_flush)
    assert shell("info", file).status == 2
    slots, entries = empty.said["slots"], empty.said["entries"]
    geometry = ["--hash-slot-num", str(slots), "--index-num", str(entries)]
    (info,) = shell("info", file, "--kind", "index-file", *geometry, "--json").json
    assert (info["entries"], info["capacity"]) == (0, entries - 1)


@pytest.mark.parametrize("name", ["README", "00000000000000000000", "1"])
def test_a_file_that_is_nothing_of_ours_is_told_what_was_expected(shell: Shell, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("Hello, I am a text file.")
    for path in (tmp_path / name, tmp_path):
        done = shell("info", path)
        assert (done.status, done.out) == (2, "")
        assert "is nothing that mqindex knows: expected a store's root directory, " in done.err


def test_an_index_file_without_entries_takes_the_geometry_of_its_neighbours(shell: Shell, basic: Store) -> None:
    size = basic.index_files[0].stat().st_size
    fresh = basic.root / "index" / "20991231235959999"
    fresh.write_bytes(b"\0" * size)
    (info,) = shell("info", fresh, "--json").json
    assert (info["hash_slot_num"], info["index_num"], info["entries"]) == (100, 400, 0)
    assert info["geometry_source"] == "inferred from the files beside it"
