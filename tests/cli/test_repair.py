"""`mqindex repair`."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Shell, Store
from tests.support.offsets_given_again import CONFIG, store_with_offsets_given_again
from tests.support.rocketmq_damage import DAMAGE
from tests.support.tree import contents


def test_brings_a_lost_file_back(shell: Shell, basic: Store) -> None:
    middle = basic.index_files[1]
    content = middle.read_bytes()
    middle.unlink()
    assert shell("verify", basic.root).status == 1
    done = shell("repair", basic.root)
    assert done.status == 0
    assert any(line.startswith(f"repaired {basic.root}: wrote 1 file, 399 index entries") for line in done.lines)
    assert shell("verify", basic.root, "--deep").status == 0
    assert basic.index_files[1].read_bytes() == content


def test_brings_queues_back(shell: Shell, basic: Store) -> None:
    before = basic.contents()
    shutil.rmtree(basic.root / "consumequeue" / "AaTopic" / "1")
    gone = basic.root / "consumequeue" / "BBTopic" / "0" / f"{1000:020d}"
    gone.unlink()
    found = shell("verify", basic.root)
    assert found.status == 1
    assert "write the units of queue AaTopic/1 anew" in found.out
    done = shell("repair", basic.root)
    assert done.status == 0
    assert any("queue AaTopic/1" in line for line in done.lines)
    assert {path: content for path, content in basic.contents().items() if "backup" not in path} == before
    clean = shell("verify", basic.root, "--deep")
    assert (clean.status, "548 units" in clean.out) == (0, True)


def test_a_dry_run_says_what_would_be_done_and_does_nothing(shell: Shell, lost: Store) -> None:
    before = lost.contents()
    done = shell("repair", lost.root, "--dry-run")
    assert done.status == 1, "there is something to do"
    written = done.lines[done.lines.index("would:") + 1]
    assert written.startswith("  write a new index file with 1258 entries")
    assert written.endswith(", named by the time of its first message")
    assert lost.contents() == before
    (report,) = shell("repair", lost.root, "--dry-run", "--json").json
    assert report["dry_run"] is True
    assert report["actions"]
    assert lost.contents() == before


def test_a_crashed_store_is_whole_again(shell: Shell, lost: Store) -> None:
    before = set(lost.index_files)
    done = shell("repair", lost.root)
    assert done.status == 0
    (new,) = set((lost.root / "index").iterdir()) - before
    assert done.lines[done.lines.index("done:") + 1].endswith(f", named {new.name}")
    assert shell("verify", lost.root, "--deep").status == 0
    key = next(one for one in lost.case.truth["messages"] if one["uniqKey"])
    found = shell("query", lost.root, "--topic", key["topic"], key["uniqKey"], "--json").json
    assert key["phyOffset"] in found[0]["phy_offsets"]


def test_an_intact_store_needs_nothing(shell: Shell, basic: Store) -> None:
    before = basic.contents()
    done = shell("repair", basic.root)
    assert done.status == 0
    assert "nothing to do" in done.lines
    assert basic.contents() == before


def test_messages_that_consumers_get_leave_a_queue_only_with_the_option(shell: Shell, tmp_path: Path) -> None:
    store_with_offsets_given_again(tmp_path, 50, range(40, 42), CONFIG)
    settings = tmp_path / "broker.conf"
    settings.write_text(
        "".join(f"{name}={value}\n" for name, value in {**CONFIG, "mappedFileSizeCommitLog": 1 << 20}.items())
    )
    command = ["repair", tmp_path, "--broker-conf", settings]
    before = contents(tmp_path)
    planned = shell(*command, "--dry-run")
    assert (planned.status, "2 later messages at queue offsets 40 to 41" in planned.out) == (1, True)
    refused = shell(*command)
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.startswith("mqindex: a repair would take messages out of a queue that consumers get now: ")
    assert "2 later messages at queue offsets 40 to 41; queue offset 40: phy offset " in refused.err
    assert "allow it with replace_served=True (mqindex repair --replace-served)" in refused.err
    assert contents(tmp_path) == before
    assert shell(*command, "--replace-served").status == 0
    assert shell("verify", tmp_path, "--broker-conf", settings).status == 0


def test_json_is_one_object(shell: Shell, lost: Store) -> None:
    (report,) = shell("repair", lost.root, "--json").json
    assert list(report)[:2] == ["schema", "ok"]
    assert report["schema"] == "mqindex.repair/1"
    assert report["actions"]


def test_a_broken_file_goes_to_the_backup(shell: Shell, basic: Store) -> None:
    broken = basic.index_files[2]
    broken.write_bytes(b"x" * broken.stat().st_size)
    done = shell("repair", basic.root)
    assert done.status == 0
    (backup,) = basic.root.glob("mqindex-backup-*")
    assert str(backup) in done.out
    assert any(path.name == broken.name for path in backup.rglob("*"))
    assert shell("verify", basic.root, "--deep").status == 0


def test_undo_takes_a_repair_back(shell: Shell, basic: Store) -> None:
    broken = basic.index_files[2]
    broken.write_bytes(b"x" * broken.stat().st_size)
    basic.index_files[1].unlink()
    before = basic.contents()
    done = shell("repair", basic.root)
    (backup,) = basic.root.glob("mqindex-backup-*")
    back = done.lines.index(f"this can be taken back: mqindex repair {basic.root} --undo {backup}")
    assert done.lines[back + 1].startswith("the backup may be removed once the broker has started")
    undone = shell("repair", basic.root, "--undo", backup)
    assert undone.status == 0
    assert f"  put index/{broken.name} back" in undone.lines
    assert {path: content for path, content in basic.contents().items() if "backup" not in path} == before
    (counted,) = [line for line in undone.lines if line.startswith("put back in ")]
    aside = sum(line.startswith("  move ") for line in undone.lines)
    assert aside and counted.startswith(f"put back in {basic.root}: 1 file, {aside} moved to the backup; ")
    again = shell("repair", basic.root, "--undo", backup)
    assert (again.status, "no such backup" in again.err) == (2, True)
    (forward,) = basic.root.glob("mqindex-backup-*")
    for command in (["repair", basic.root, "--undo"], ["repair", "--undo", "--", basic.root]):
        which = shell(*command)
        assert (which.status, forward.name in which.err) == (2, True)
    refused = shell("repair", basic.root, "--undo", backup, "--deep")
    assert (refused.status, "--undo takes a repair back as a whole" in refused.err) == (2, True)


def test_a_dry_run_of_undo_checks_the_backup(shell: Shell, basic: Store) -> None:
    broken = basic.index_files[2]
    broken.write_bytes(b"x" * broken.stat().st_size)
    shell("repair", basic.root)
    (backup,) = basic.root.glob("mqindex-backup-*")
    kept = backup / "index" / broken.name
    before, right = basic.contents(), kept.read_bytes()
    command = ["repair", basic.root, "--undo", backup, "--dry-run"]

    def refused(got: str) -> None:
        for one in (command, command[:-1]):
            done = shell(*one)
            assert (done.status, done.out) == (2, "")
            assert done.err.startswith(
                f"mqindex: a file of this backup is not what was put there; nothing was changed: {kept}: expected "
                f"{len(right)} bytes, BLAKE2b "
            )
            assert f", got {got}" in done.err
            assert "; `repair` writes it from the log; other backups are checked with --undo BACKUP" in done.err

    good = shell(*command)
    assert (good.status, good.err, good.lines[0]) == (0, "", "would:")
    assert f"  put index/{broken.name} back" in good.lines
    assert any(line.startswith(f"checked {basic.root}; ") for line in good.lines)
    assert not any(line.startswith(("put back in", "this can be taken back")) for line in good.lines)
    as_json = json.loads(shell(*command, "--json").out)
    assert (as_json["ok"], as_json["dry_run"], as_json["backup"]) == (True, True, None)
    kept.write_bytes(b"y" + right[1:])
    refused(f"{len(right)} bytes, BLAKE2b ")
    kept.unlink()
    refused("no file")
    kept.write_bytes(right)
    assert basic.contents() == before
    assert shell(*command[:-1]).status == 0
    again = shell(*command)
    assert (again.status, "no such backup" in again.err) == (2, True)


def test_what_nobody_told_is_asked_for(shell: Shell, basic: Store) -> None:
    shutil.rmtree(basic.root / "index")
    before = basic.contents()
    for flags in ([], ["--dry-run"]):
        done = shell("repair", basic.root, *flags)
        assert (done.status, done.out) == (2, "")
        assert done.err == (
            f"mqindex: nothing shows the geometry of the index files: {basic.root}/index; give --hash-slot-num 5000000 "
            "--index-num 20000000 if the broker runs with its defaults, or --broker-conf FILE\n"
        )
    assert basic.contents() == before
    assert shell("repair", basic.root, "--hash-slot-num", "100", "--index-num", "400").status == 0


def test_a_log_that_is_not_mounted(shell: Shell, basic: Store) -> None:
    shutil.rmtree(basic.root / "commitlog")
    (basic.root / "commitlog").mkdir()
    before = basic.contents()
    done = shell("repair", basic.root)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"mqindex: the commit log is missing: {basic.root}/commitlog: ")
    assert shell("rebuild", basic.root, "--out", basic.root.parent / "out").status == 2
    assert shell("verify", basic.root).status == 1
    (basic.root / "commitlog").rmdir()
    assert shell("verify", basic.root).status == 1
    assert shell("repair", basic.root).status == 2
    (basic.root / "commitlog").mkdir()
    assert basic.contents() == before


@pytest.mark.parametrize("name", ["/dev/zero", "fifo"])
def test_a_broker_conf_that_never_ends_is_not_read(shell: Shell, basic: Store, tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    done = shell("verify", basic.root, "--broker-conf", tmp_path / name)
    assert (done.status, done.out) == (2, "")
    assert f"{tmp_path / name}: not a regular file" in done.err


def test_a_file_that_is_no_broker_conf(shell: Shell, basic: Store) -> None:
    for command in ("repair", "verify", "info"):
        done = shell(command, basic.root, "--broker-conf", "/etc/passwd")
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith("mqindex: not a broker's configuration: /etc/passwd: expected lines such as ")


def test_what_was_only_read_is_not_told_as_written(shell: Shell, basic: Store) -> None:
    done = shell("repair", basic.root)
    assert "nothing to do" in done.lines
    assert any(line.startswith(f"checked {basic.root}; ") for line in done.lines)
    assert "wrote" not in done.out
    basic.index_files[1].unlink()
    (line,) = [line for line in shell("repair", basic.root).lines if line.startswith("repaired ")]
    assert line.startswith(f"repaired {basic.root}: wrote 1 file, 399 index entries; ")


def test_the_backup_of_another_store_is_told_as_that(shell: Shell, basic: Store, lost: Store) -> None:
    shell("repair", lost.root)
    (backup,) = lost.root.glob("mqindex-backup-*")
    done = shell("repair", basic.root, "--undo", backup)
    assert done.status == 2
    assert done.err == f"mqindex: a backup of another directory: {backup}: expected one in {basic.root}\n"


def test_whole_messages_behind_damage_are_given_up_only_with_the_option(shell: Shell, basic: Store) -> None:
    DAMAGE["log: newest body"](basic.root)
    before = basic.contents()
    refused = shell("repair", basic.root)
    assert (refused.status, refused.out, basic.contents()) == (2, "", before)
    assert refused.err.startswith("mqindex: a repair would take messages out of queues and index that are whole in ")
    assert "190 whole messages behind it that queues have" in refused.err
    assert "(mqindex repair --cut-damaged)" in refused.err
    assert shell("repair", basic.root, "--cut-damaged").status == 0


@pytest.mark.parametrize("left", ["nothing", "no file", "a strange file", "an index file of 4 bytes", "of other bytes"])
def test_an_index_that_shows_no_geometry_is_asked_for_it(shell: Shell, basic: Store, left: str) -> None:
    """A broker makes its files by its own configuration, whatever is there: with another one no look-up finds a key."""
    index, before = basic.root / "index", {path.name: path.read_bytes() for path in basic.index_files}
    shutil.rmtree(index)
    if left != "nothing":
        index.mkdir()
    junk = {"a strange file": ("notes.txt", 9), "an index file of 4 bytes": ("20231114221320123", 4)}
    name, size = junk.get(left, ("20231114221320123", 5000 if left == "of other bytes" else 0))
    if size:
        (index / name).write_bytes(b"\xa5" * size)
    done = shell("repair", basic.root)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "--hash-slot-num" in done.err
    slots, entries = basic.case.geometry
    given = ["--hash-slot-num", str(slots), "--index-num", str(entries)]
    assert shell("repair", basic.root, *given).status == 0
    made = [path.read_bytes() for path in sorted(index.iterdir()) if path.name.isdecimal()]
    assert [one[40:] for one in made] == [one[40:] for one in before.values()]
    assert (index / "notes.txt").exists() == (left == "a strange file")
    assert shell("verify", basic.root, "--deep").status == 0
