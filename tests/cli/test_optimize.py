"""`mqindex optimize`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.cli.conftest import Shell, Store


def test_writes_an_index_with_the_same_answers(shell: Shell, basic: Store, tmp_path: Path) -> None:
    before = basic.contents()
    done = shell("optimize", basic.root, "--out", tmp_path / "cold")
    assert done.status == 0, done.err
    assert done.lines[0].startswith(f"optimized {tmp_path / 'cold'}: wrote 4 files, 1237 index entries; ")
    names = [path.name for path in basic.index_files]
    assert sorted(os.listdir(tmp_path / "cold" / "index")) == names
    assert basic.contents() == before
    sides = [*(f"{name}.fence" for name in names), "keys.filter"]
    assert sorted(os.listdir(tmp_path / "cold" / "mqindex-index")) == sides
    for name, path in zip(names, basic.index_files, strict=True):
        assert (tmp_path / "cold" / "index" / name).read_bytes() != path.read_bytes()
    assert shell("verify", tmp_path / "cold" / "index").status == 0
    assert [shell("info", tmp_path / "cold" / "index" / name).status for name in names] == [0, 0, 0, 0]


def test_in_place_it_can_be_taken_back(shell: Shell, basic: Store) -> None:
    before = basic.contents()
    asked = ("query", basic.root, "--topic", "TopicTest", "KEY-1", "KEY-2", "--json")
    answered = shell(*asked).out
    refused = shell("optimize", basic.root, "--out", basic.root)
    assert (refused.status, "--force" in refused.err) == (2, True)
    assert basic.contents() == before
    (report,) = shell("optimize", basic.root, "--out", basic.root, "--force", "--json").json
    assert (report["schema"], report["files"]) == ("mqindex.optimize/1", 4)
    assert shell(*asked).out == answered
    assert "nothing to do" in shell("optimize", basic.root, "--out", basic.root, "--force").out
    side = basic.root / "mqindex-index" / f"{basic.index_files[0].name}.fence"
    side.write_bytes(side.read_bytes()[:-1])
    (again,) = shell("optimize", basic.root, "--out", basic.root, "--force", "--json").json
    assert [Path(path).name for path in again["out_files"]] == [side.name, "keys.filter"]
    side.unlink()
    beside = shell("optimize", basic.root, "--out", basic.root, "--force").out
    assert "optimized already: wrote fences and the key filter, 2 files" in beside
    assert "taken back" not in beside
    newest = max(path.name for path in basic.root.glob("mqindex-backup-*"))
    assert shell("repair", basic.root, "--undo", newest).status == 0
    assert shell("repair", basic.root, "--undo", again["backup"]).status == 0
    assert shell("repair", basic.root, "--undo", report["backup"]).status == 0
    assert {name: held for name, held in basic.contents().items() if name in before} == before


def test_a_geometry_that_is_not_seen_is_asked_for_by_options_that_the_command_has(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "20231114221320000").write_bytes(bytes(40 + 4 * 7 + 20 * 30))
    refused = shell("optimize", tmp_path / "index", "--out", tmp_path / "out")
    assert (refused.status, "--hash-slot-num, --index-num" in refused.err) == (2, True)
    assert "--broker-conf" not in refused.err


def test_another_geometry_goes_elsewhere_only(shell: Shell, basic: Store, tmp_path: Path) -> None:
    done = shell("optimize", basic.root, "--out", tmp_path / "few", "--hash-slot-num", "7", "--index-num", "2000")
    assert done.status == 0, done.err
    sizes = {path.stat().st_size for path in (tmp_path / "few" / "index").iterdir()}
    assert sizes == {40 + 4 * 7 + 20 * 2000}
    assert shell("verify", tmp_path / "few" / "index", "--hash-slot-num", "7", "--index-num", "2000").status == 0
    refused = shell("optimize", basic.root, "--out", basic.root, "--force", "--hash-slot-num", "7")
    assert (refused.status, "another geometry goes elsewhere" in refused.err) == (2, True)
    refused = shell("optimize", basic.root, "--out", tmp_path / "small", "--index-num", "20")
    assert refused.status == 2
    assert "--index-num" in refused.err
    assert sorted(os.listdir(tmp_path)) == ["basic-493", "few"]


def test_a_damaged_file_is_refused_in_the_words_of_verify(shell: Shell, basic: Store, tmp_path: Path) -> None:
    path = basic.index_files[1]
    data = bytearray(path.read_bytes())
    data[-4:] = b"\0\0\0\1"
    path.write_bytes(data)
    refused = shell("optimize", basic.root, "--out", tmp_path / "cold")
    assert (refused.status, refused.out) == (2, "")
    assert f"An entry does not point to the previous one of its slot, so look-ups miss entries: {path}" in refused.err
    assert "repair the store first" in refused.err
    assert not (tmp_path / "cold").exists()


def test_a_warning_of_verify_is_no_reason_to_refuse(shell: Shell, basic: Store, tmp_path: Path) -> None:
    """A kill during a put leaves the count of used slots behind; that was told as a broker that writes meanwhile."""
    path = basic.index_files[1]
    data = bytearray(path.read_bytes())
    data[32:36] = b"\0\0\0\3"
    path.write_bytes(data)
    assert shell("optimize", basic.root, "--out", tmp_path / "cold").status == 0
    kept = (tmp_path / "cold" / "index" / path.name).read_bytes()
    assert kept[:40] == data[:40]
    warned = shell("verify", tmp_path / "cold" / "index")
    assert warned.status == 0
    assert f"{path.name} field hash_slot_count at byte 32: expected" in warned.out


def test_what_is_no_index_is_said(shell: Shell, basic: Store, tmp_path: Path) -> None:
    (tmp_path / "nothing" / "index").mkdir(parents=True)
    assert "no index file there" in shell("optimize", tmp_path / "nothing" / "index", "--out", tmp_path / "a").err
    assert shell("optimize", tmp_path / "absent", "--out", tmp_path / "a").status == 2
    assert shell("optimize", basic.root / "commitlog", "--out", tmp_path / "a").status == 2
    inside = shell("optimize", basic.root, "--out", basic.root / "index" / "new")
    assert (inside.status, "expected a place outside of" in inside.err) == (2, True)


def test_out_takes_nothing_of_the_store_away(shell: Shell, basic: Store, tmp_path: Path) -> None:
    """Whatever links lead there."""
    before = basic.contents()
    (tmp_path / "alias").symlink_to(basic.root)
    for place in ("alias/index", "alias/index/new", f"{basic.root}/commitlog", "alias/consumequeue"):
        for command in ("optimize", "rebuild"):
            refused = shell(command, basic.root, "--out", tmp_path / place, "--force")
            assert (refused.status, "expected a place " in refused.err) == (2, True), refused.err
    assert basic.contents() == before
    refused = shell("optimize", basic.root, "--out", basic.root)
    assert "the old files then go to a backup in the store" in refused.err
    assert "beside it" not in refused.err


def test_a_copied_file_is_optimized_beside_itself(shell: Shell, basic: Store, tmp_path: Path) -> None:
    copy = Path(shutil.copy(basic.index_files[0], tmp_path / "lone"))
    for force in ([], ["--force"]):
        assert shell("optimize", copy, "--out", tmp_path / "cold", *force).status == 0
    before = copy.read_bytes()
    for place in (tmp_path, copy):
        assert shell("optimize", copy, "--out", place, "--force").status == 2
    assert copy.read_bytes() == before
    refused = shell("optimize", basic.index_files[0], "--out", basic.root / "index" / "cold")
    assert (refused.status, "expected a place outside of" in refused.err) == (2, True)
