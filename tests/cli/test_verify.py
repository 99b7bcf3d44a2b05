"""`mqindex verify`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqindex.cli.printing.findings import EXPLAINED
from mqindex.cli.printing.reports import print_actions
from tests.cli.conftest import Shell, Store
from tests.support import findings_document


@pytest.mark.parametrize("deep", [[], ["--deep"]])
def test_an_intact_store_is_clean(shell: Shell, basic: Store, deep: list[str]) -> None:
    before = basic.contents()
    done = shell("verify", basic.root, *deep)
    assert (done.status, done.err) == (0, "")
    assert done.lines[0] == f"{basic.root}: clean"
    assert "4 index files, 1237 index entries, 548 units" in done.out
    assert "100 slots, 400 entries (inferred" in done.out
    assert basic.contents() == before


def test_lost_entries_are_findings(shell: Shell, lost: Store) -> None:
    before = lost.contents()
    done = shell("verify", lost.root)
    assert (done.status, done.err) == (1, "")
    assert done.lines[0] == f"{lost.root}: not clean, 1 error"
    assert "error: missing-entries. Messages of the log have no index entries." in done.lines
    would = done.lines.index(f"`mqindex repair {lost.root}` would:")
    assert done.lines[would + 1].startswith("  write a new index file with 1258 entries")
    assert done.lines[would - 2] == EXPLAINED
    assert EXPLAINED.endswith(f"/blob/main/{findings_document.PATH.relative_to(findings_document.ROOT)}")
    assert lost.contents() == before


def test_missing_entries_of_a_damaged_file_are_said_to_be_its_own(shell: Shell, basic: Store) -> None:
    """They were two errors, as if both the file were damaged and other entries were missing."""
    first, second, *_ = sorted(basic.index_files)
    size = first.stat().st_size
    alone = f"; {second.name}, with a finding of its own, should have them"
    both = f"; {first.name} and 1 other file, with findings of their own, should have them"
    for damaged, said in ((second, alone), (first, both)):
        damaged.write_bytes(b"x" * size)
        done = shell("verify", basic.root)
        (missing,) = [one for one in done.lines if "got none " in one]
        assert missing.endswith(said)
    for damaged in (first, second):
        damaged.unlink()
    assert "should have them" not in shell("verify", basic.root).out


def test_json_is_one_object_with_every_finding(shell: Shell, lost: Store) -> None:
    done = shell("verify", lost.root, "--json")
    assert done.status == 1
    (report,) = done.json
    assert list(report)[:2] == ["schema", "ok"]
    assert (report["schema"], report["ok"]) == ("mqindex.verify/1", False)
    place = {"severity", "kind", "path", "at", "field", "expected", "got", "hint"}
    assert {*place, "mended_by", "stops_start"} == set(report["findings"][0])
    assert report["settings"]["geometry"]["value"] == [500, 5000]


def test_a_wrong_entry_is_found_deep(shell: Shell, basic: Store) -> None:
    path = basic.index_files[1]
    content = bytearray(path.read_bytes())
    entry = 40 + 4 * 100 + 20 * 200
    content[entry + 4 : entry + 12] = (int.from_bytes(content[entry + 4 : entry + 12], "big") + 1).to_bytes(8, "big")
    path.write_bytes(content)
    done = shell("verify", basic.root, "--deep")
    assert done.status == 1
    assert f"  index/{path.name} " in done.out
    assert "200" in done.out


def test_an_index_that_is_gone_altogether_is_not_clean(shell: Shell, basic: Store) -> None:
    shutil.rmtree(basic.root / "index")
    done = shell("verify", basic.root, "--hash-slot-num", "100", "--index-num", "400")
    assert done.status == 1


def test_a_commit_log_elsewhere_is_passed(shell: Shell, basic: Store) -> None:
    elsewhere = basic.root.parent / "log"
    (basic.root / "commitlog").rename(elsewhere)
    assert shell("verify", basic.root, "--commitlog", elsewhere).status == 0


def test_a_commit_log_in_two_directories_is_passed(shell: Shell, basic: Store) -> None:
    second = basic.root.parent / "second"
    second.mkdir()
    basic.log_files[1].rename(second / basic.log_files[1].name)
    done = shell("verify", basic.root, "--commitlog", basic.root / "commitlog", "--commitlog", second)
    assert done.status == 0


def test_the_broker_version_decides_on_tags(shell: Shell, basic: Store) -> None:
    assert shell("verify", basic.root, "--broker-version", "4.9.3", "--deep").status == 0
    upgraded = shell("verify", basic.root, "--broker-version", "5.5.0", "--deep")
    assert upgraded.status == 0  # what is there stays right after an upgrade
    assert "whether TAGS are indexed changes at phy offset" in upgraded.out
    basic.index_files[-1].unlink()
    missing = [
        shell("verify", basic.root, "--broker-version", version, "--json").json[0]["findings"][0]["expected"]
        for version in ("4.9.3", "5.3", "5.5.0")
    ]
    assert missing[0] == missing[1]
    assert int(missing[2].split()[0]) > int(missing[0].split()[0])
    wrong = shell("verify", basic.root, "--broker-version", "newest")
    assert wrong.status == 2
    assert "newest" in wrong.err


@pytest.mark.parametrize("place", ["index", "file"])
def test_index_files_without_their_log_are_checked_against_themselves(shell: Shell, basic: Store, place: str) -> None:
    path = basic.root / "index" if place == "index" else basic.index_files[1]
    done = shell("verify", path)
    assert (done.status, done.err) == (0, "")
    assert done.lines[0] == f"{path}: clean"
    assert ("4 index files" if place == "index" else "1 index file, 399 index entries") in done.out
    content = bytearray(basic.index_files[1].read_bytes())
    entry = 40 + 4 * 100 + 20 * 200
    content[entry + 16 : entry + 20] = (300).to_bytes(4, "big")  # a link to an entry that came later
    basic.index_files[1].write_bytes(content)
    done = shell("verify", path)
    assert done.status == 1
    assert f"  {basic.index_files[1].name if place == 'index' else basic.index_files[1]} " in done.out
    (report,) = shell("verify", path, "--json").json
    assert (report["schema"], report["ok"]) == ("mqindex.verify/1", False)
    assert report["findings"][0]["path"] == str(basic.index_files[1])


def test_deep_needs_the_commit_log(shell: Shell, basic: Store) -> None:
    done = shell("verify", basic.index_files[0], "--deep")
    assert (done.status, done.out) == (2, "")
    assert "commit log" in done.err


@pytest.mark.parametrize("length", [0, 39, 44, 1000])
def test_a_truncated_index_file_among_others_is_a_finding(shell: Shell, basic: Store, length: int) -> None:
    path = basic.index_files[1]
    path.write_bytes(path.read_bytes()[:length])
    for place in (basic.root, basic.root / "index"):
        (report,) = shell("verify", place, "--json").json
        assert report["ok"] is False
        assert str(path) in [finding["path"] for finding in report["findings"]]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("nowhere", "no such file or directory"),
        ("commitlog", "is a commit-log directory: expected a store's root directory, a directory of index files"),
        ("checkpoint", "is a checkpoint: expected a store's root directory"),
    ],
)
def test_what_cannot_be_verified_is_told_so(shell: Shell, basic: Store, place: str, words: str) -> None:
    done = shell("verify", basic.root / place)
    assert (done.status, done.out) == (2, "")
    assert words in done.err


def test_many_findings_of_a_kind_are_a_paragraph(shell: Shell, basic: Store) -> None:
    """A log dir without anything wrong filled the screen with 97 rows."""
    for path in basic.index_files:
        content = bytearray(path.read_bytes())
        for entry in range(10, 200, 10):
            at = 40 + 4 * 100 + 20 * entry + 4
            content[at : at + 8] = (int.from_bytes(content[at : at + 8], "big") + 1).to_bytes(8, "big")
        path.write_bytes(content)
    (report,) = shell("verify", basic.root, "--deep", "--json").json
    done = shell("verify", basic.root, "--deep")
    kinds = {(one["severity"], one["kind"]) for one in report["findings"]}
    titles = [line for line in done.lines if line.split(":")[0] in ("error", "warning", "info")]
    assert len(report["findings"]) > 3 * len(done.lines)
    assert len(titles) == len(kinds)
    assert any("more: --json lists all" in line for line in done.lines)
    assert str(basic.root) not in "\n".join(line for line in done.lines[1:] if "mqindex repair" not in line)


def test_the_verdict_comes_first(shell: Shell, basic: Store) -> None:
    (basic.root / "commitlog" / "lost+found").mkdir()
    done = shell("verify", basic.root, "--broker-version", "4.9.3")
    assert done.status == 1
    assert done.lines[0].startswith(f"{basic.root}: not clean")
    assert done.lines[1].split("  ")[1:2] == ["would a broker start"]
    assert "no: commitlog/lost+found: a directory" in done.lines[1]
    assert "delete nothing" in done.lines[2]
    assert "free: no broker runs" in done.lines[3]


def test_the_verdict_says_what_a_start_deletes(shell: Shell, basic: Store) -> None:
    """A changed body in the first of two log files: it said "clean", and "delete nothing"."""
    first, second = sorted((basic.root / "commitlog").iterdir())
    content = bytearray(first.read_bytes())
    content[88] ^= 1
    first.write_bytes(content)
    done = shell("verify", basic.root, "--broker-version", "4.9.3")
    assert done.status == 1
    cut = f"delete commitlog/{second.name}; cut commitlog/{first.name} and delete 595 messages"
    assert done.lines[2].endswith(cut)
    assert "  -> the next start cuts the log here and deletes 595 messages and 1 later file, unless" in done.out
    assert "delete nothing, unless its log is damaged" in shell("info", basic.root).out


def test_the_proposed_repair_repeats_what_was_given(shell: Shell, basic: Store) -> None:
    elsewhere = basic.root.parent / "log"
    (basic.root / "commitlog").rename(elsewhere)
    basic.index_files[1].unlink()
    done = shell("verify", basic.root, "--deep", "--commitlog", elsewhere, "--broker-version", "4.9.3")
    assert f"`mqindex repair {basic.root} --deep --commitlog {elsewhere} --broker-version 4.9.3` would:" in done.lines


def test_a_repair_that_would_refuse_is_not_proposed_as_it_is(shell: Shell, basic: Store) -> None:
    """Pasted, the line that was proposed ended with exit code 2."""
    shutil.rmtree(basic.root / "index")
    asking = shell("verify", basic.root)
    assert f"`mqindex repair {basic.root}`, given what the warnings ask for, would:" in asking.lines
    assert shell("repair", basic.root, "--dry-run").status == 2
    given = ["--hash-slot-num", "100", "--index-num", "400"]
    assert f"`mqindex repair {basic.root} {' '.join(given)}` would:" in shell("verify", basic.root, *given).lines
    assert shell("repair", basic.root, "--dry-run", *given).status == 1


def test_of_very_many_actions_the_first_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A log dir of 40 partitions took 120 lines for what repair would do."""
    print_actions([f"write {n}" for n in range(120)])
    lines = capsys.readouterr().out.splitlines()
    assert (len(lines), lines[0], lines[-1]) == (21, "  write 0", "  and 100 more: --json lists all")
    print_actions([f"write {n}" for n in range(21)])
    assert len(capsys.readouterr().out.splitlines()) == 21


def test_a_clean_report_has_no_empty_line(shell: Shell, basic: Store) -> None:
    assert "" not in shell("verify", basic.root).lines


def test_a_geometry_of_no_entry_is_refused_by_every_command(
    shell: Shell, basic: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`verify` and `report` never ended; in others every file was of this geometry, and no key was found."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broker.conf").write_text("brokerName=a\nmaxIndexNum=1\n")
    index, key = basic.root / "index", basic.case.truth["messages"][0]["keys"]
    before = basic.contents()
    for command in (
        ["verify", basic.root], ["verify", index], ["report", basic.root, "--json"], ["info", basic.root],
        ["info", index], ["dump", basic.index_files[0]], ["query", basic.root, "--topic", "AaTopic", key],
        ["repair", basic.root], ["rebuild", basic.root, "--out", "out"], ["follow", basic.root, "--out", "out"],
    ):  # fmt: skip
        for option, said in (
            (["--index-num", "1"], "expected index_num"),
            (["--broker-conf", "broker.conf"], "broker.conf: expected maxIndexNum"),
        ):
            done = shell(*command, *option)
            assert (done.status, done.out) == (2, "")
            assert done.err == f"mqindex: a file of this geometry holds no entry: {said} 2 or more, got 1\n"
    assert shell("optimize", basic.root, "--out", "out", "--index-num", "1").status == 2
    assert basic.contents() == before
    assert not (tmp_path / "out").exists()


def test_a_log_that_is_not_where_a_configuration_says_names_the_setting(
    shell: Shell, basic: Store, tmp_path: Path
) -> None:
    shutil.rmtree(basic.root / "index")
    shutil.rmtree(basic.root / "consumequeue")
    (basic.root / "consumequeue").mkdir()
    conf = tmp_path / "broker.conf"
    conf.write_text("storePathCommitLog=/elsewhere/commitlog\nmaxHashSlotNum=100\nmaxIndexNum=400\n")
    done = shell("verify", basic.root, "--broker-conf", conf)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("mqindex: /elsewhere/commitlog: No such file or directory; ")
    assert "storePathCommitLog" in done.err and "--commitlog" in done.err
