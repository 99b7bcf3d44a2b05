"""`mqindex report`."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("jinja2")

from tests.cli.conftest import Shell, Store, ordinary_user, process
from tests.support.golden_kafka import PartitionCase
from tests.support.html_page import Html, requires_accessible


def test_a_clean_store_gives_a_page(shell: Shell, basic: Store, tmp_path: Path) -> None:
    before, out = basic.contents(), tmp_path / "page.html"
    done = shell("report", basic.root, "--out", out)
    assert (done.status, done.err) == (0, "")
    assert done.lines[0] == f"{basic.root}: clean"
    assert done.lines[1].startswith(f"wrote {out}: ")
    assert out.read_text().startswith("<!DOCTYPE html>")
    assert basic.contents() == before
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "basic-493"}


def test_a_page_of_a_name_that_the_locale_cannot_write_appears(basic: Store, tmp_path: Path) -> None:
    """All was read, and then "'ascii' codec can't encode character" was said, of which nobody could know the file."""
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = process("report", str(basic.root), "--out", str(tmp_path / "ü.html"), env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert {path.name for path in tmp_path.iterdir()} == {"ü.html", "basic-493"}


@pytest.mark.parametrize("deep", [[], ["--deep"]])
def test_findings_are_the_exit_code_and_json_has_the_pages_numbers(
    shell: Shell, lost: Store, tmp_path: Path, deep: list[str]
) -> None:
    done = shell("report", lost.root, "--json", "--out", tmp_path / "page.html", *deep)
    assert (done.status, done.err) == (1, "")
    (line,) = done.json
    assert next(iter(line)) == "schema"
    assert line["schema"] == "mqindex.report/1"
    assert (line["ok"], line["coverage"]["missing_entries"], line["read"]["deep"]) == (False, 1258, bool(deep))
    page = (tmp_path / "page.html").read_text()
    assert '<data value="1258" data-at="/coverage/missing_entries">1,258</data>' in page
    assert f"mqindex repair {lost.root}{' --deep' if deep else ''} --dry-run" in page


def test_the_commands_of_a_page_run_in_any_directory(
    shell: Shell, lost: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lost.root.parent)
    name, log = lost.root.name, os.path.join(lost.root.name, "commitlog")
    shell("report", name, "--out", tmp_path / "page.html", "--commitlog", log)
    assert f"mqindex repair {lost.root} --commitlog {lost.root / 'commitlog'}\n" in (tmp_path / "page.html").read_text()


def test_json_alone_writes_nothing(shell: Shell, lost: Store, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    done = shell("report", lost.root, "--json")
    assert done.status == 1
    assert json.loads(done.out)["topics"]["messages"] == 610
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_that_is_there_is_replaced_only_by_force(shell: Shell, basic: Store, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    out.write_text("mine")
    done = shell("report", basic.root, "--out", out)
    asked = "choose another name, or overwrite it (--force)"
    assert (done.status, done.err) == (2, f"mqindex: the output exists: {out}; {asked}\n")
    assert out.read_text() == "mine"
    assert shell("report", basic.root, "--out", out, "--force").status == 0
    assert out.read_text() != "mine"


def test_a_file_that_appears_meanwhile_is_not_replaced(
    shell: Shell, basic: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mqindex.cli.commands import report

    out = tmp_path / "page.html"
    real = report._require_place

    def then_appears(*arguments: str, **options: bool) -> None:
        real(*arguments, **options)
        out.write_text("mine")

    monkeypatch.setattr(report, "_require_place", then_appears)
    done = shell("report", basic.root, "--out", out)
    assert (done.status, done.err.startswith("mqindex: the output exists")) == (2, True)
    assert out.read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "basic-493"}


def test_places_that_will_not_do_are_refused_before_the_work(shell: Shell, basic: Store, tmp_path: Path) -> None:
    def refused(out: str | os.PathLike[str]) -> str:
        done = shell("report", basic.root, "--out", out, "--force")
        assert (done.status, done.out) == (2, "")
        return done.err

    assert "expected a place outside of" in refused(basic.root / "index" / "page.html")
    assert "no: nothing can be made in it (No such file or directory)" in refused(tmp_path / "no" / "page.html")
    assert "the output is no file" in refused(tmp_path)


def test_neither_page_nor_json_is_a_wrong_call(shell: Shell, basic: Store) -> None:
    done = shell("report", basic.root)
    assert (done.status, done.err.split(";")[0]) == (2, "mqindex: expected --out FILE for a page, or --json")


def test_an_option_of_the_other_broker_is_a_wrong_call_that_leaves_no_page(
    shell: Shell, basic: Store, tmp_path: Path
) -> None:
    partition = PartitionCase("410-plain-mono").closed(tmp_path)
    for path, option in ((partition, "--broker-version"), (basic.root, "--kafka-version")):
        done = shell("report", path, option, "4.0.0", "--out", tmp_path / "page.html")
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert f"{option} is an option for" in done.err
        assert not (tmp_path / "page.html").exists()


def test_what_is_not_there_is_one_sentence(shell: Shell, tmp_path: Path) -> None:
    done = shell("report", tmp_path / "nothing", "--out", tmp_path / "page.html")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert not (tmp_path / "page.html").exists()


def test_a_missing_package_is_named_before_the_work(basic: Store, tmp_path: Path) -> None:
    program = "import sys; sys.modules['jinja2'] = None; from mqindex.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "report", str(basic.root), "--out", str(tmp_path / "page.html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("mqindex: a page needs jinja2: pip install 'mqindex[html]'")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_a_report_of_a_store_loads_none_of_kafka_s_kernels(basic: Store, tmp_path: Path) -> None:
    program = "import sys; from mqindex.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", program, "report", str(basic.root), "--out", str(tmp_path / "page.html")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {one for one in loaded if one.startswith("mqindex.")} >= {"mqindex.html.render"}
    kafka = {one for one in loaded if one.startswith(("mqindex.kafka.", "mqindex._native.kafka"))}
    light = {"mqindex.kafka.kinds", "mqindex.kafka.layout"}  # by which a place is recognised
    assert kafka == {"mqindex.kafka.directories", "mqindex.kafka.directories.log_dir", *light}


def test_a_package_that_cannot_be_loaded_is_named_and_what_was_found_is_told(basic: Store, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "jinja2.py").write_text("raise ImportError('no jinja2 here', name='jinja2')")
    around = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path / "none"), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "mqindex", "report", str(basic.root), "--out", str(tmp_path / "page.html")]
    done = subprocess.run(command, env=around, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, f"{basic.root}: clean\n")
    assert done.stderr == "mqindex: jinja2 cannot be loaded: no jinja2 here\n"
    assert not (tmp_path / "page.html").exists()


def test_kafka_paths_have_pages_too(shell: Shell, tmp_path: Path) -> None:
    partition = PartitionCase("410-plain-mono").closed(tmp_path)
    for number, path in enumerate((partition.parent, partition, sorted(partition.glob("*.log"))[1])):
        (partition.parent / "meta.properties").touch()
        out = tmp_path / f"{number}.html"
        done = shell("report", path, "--out", out, "--index-interval-bytes", "1000")
        assert (done.status, done.err) == (0, "")
        assert ("Kafka log dir", "Kafka partition", "Kafka segment")[number] in out.read_text()
    next(partition.glob("*.timeindex")).unlink()
    done = shell("report", partition, "--json", "--index-interval-bytes", "1000")
    (line,) = done.json
    assert (done.status, line["ok"], line["partitions"][0]["time_indexes_lost"]) == (1, False, 1)


@pytest.mark.parametrize("command", [("report",), ("message", "0")], ids=lambda command: command[0])
def test_no_name_and_standard_output_are_no_files(
    shell: Shell, basic: Store, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *rest = command
    for out, words in (("", "a path, got an empty one"), ("-", "a file, got standard output")):
        done = shell(name, basic.root, *rest, "--out", out)
        assert (done.status, done.out, f"'--out': expected {words}" in done.err) == (2, "", True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["basic-493"]


def test_a_directory_that_takes_no_file_is_refused_before_the_work(
    shell: Shell, basic: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(directory: str) -> int:
        raise OSError(errno.EROFS, "Read-only file system", directory)

    monkeypatch.setattr("mqindex.files.results.whole_file.open_nameless", full)
    done = shell("report", basic.root, "--out", tmp_path / "page.html")
    assert (done.status, done.out, done.err) == (2, "", f"mqindex: {tmp_path}: Read-only file system\n")


@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["people", "json"])
def test_what_was_found_is_told_where_the_page_has_no_place(
    shell: Shell, basic: Store, tmp_path: Path, as_json: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, data: bytes, *, overwrite: bool) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", path)

    monkeypatch.setattr("mqindex.cli.commands.report.publish_content", full)
    out = tmp_path / "page.html"
    done = shell("report", basic.root, "--out", out, *as_json)
    assert (done.status, done.err) == (2, f"mqindex: {out}: No space left on device\n")
    assert done.json[0]["ok"] if as_json else done.lines == [f"{basic.root}: clean"]


def test_a_store_that_can_be_read_in_part_has_a_page_that_says_so(
    shell: Shell, basic: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")  # no press: the page is made here, where what it imports is already
    shell("report", basic.root, "--json")  # what is imported on first use is imported now
    with tempfile.TemporaryDirectory() as place:
        root, out = Path(place) / "store", Path(place) / "out" / "page.html"
        shutil.copytree(basic.root, root)
        out.parent.mkdir()
        for directory, mode in ((Path(place), 0o755), (out.parent, 0o777), (root / "consumequeue", 0)):
            directory.chmod(mode)
        shell("report", basic.root, "--out", out.with_name("warm.html"))
        with ordinary_user():
            done = shell("report", root, "--out", out)
        reason = f"{root / 'consumequeue'}: Permission denied"
        page = Html(out.read_text())
    assert (done.status, done.out) == (2, "")
    assert [line for line in done.err.splitlines() if "wrote" not in line] == [f"mqindex: {reason}"]
    assert page.all("h2")[0].text == "Not known: not all of it can be read"
    assert reason in page.all("dd")[0].text
    requires_accessible(page)


def test_what_is_nobodys_store_has_a_page_that_says_so(shell: Shell, tmp_path: Path) -> None:
    empty, foreign, out = tmp_path / "empty", tmp_path / "photos", tmp_path / "page.html"
    empty.mkdir()
    foreign.mkdir()
    (foreign / "sea.jpg").write_bytes(b"\xff\xd8\xff")
    for path in (empty, foreign, foreign / "sea.jpg"):
        done = shell("report", path, "--out", out, "--force")
        wrote, sentence = done.err.splitlines()
        assert (done.status, done.out, wrote.startswith(f"mqindex: wrote {out}: ")) == (2, "", True)
        page = Html(out.read_text())
        assert page.all("dd")[0].text in sentence
        requires_accessible(page)


# ---- the host, an earlier report, keys


def test_a_page_says_what_has_changed_since_an_earlier_report(shell: Shell, lost: Store, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier.json"
    earlier.write_text(shell("report", lost.root, "--json").out)
    assert shell("repair", lost.root).status == 0
    done = shell("report", lost.root, "--out", tmp_path / "page.html", "--compare", earlier)
    assert (done.status, done.err) == (0, "")
    page = (tmp_path / "page.html").read_text()
    assert "Findings that are gone: missing-entries (error)." in page
    cells = re.findall(r">([^<>]+)<", page[page.index("<bdi>index entries missing</bdi>") :])
    assert [cell for cell in cells if cell.strip()][1:4] == ["1,258", "0", "-1,258"]
    requires_accessible(Html(page))


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"read": {"made_at": "x"}}', "[" * 100_000, '{"read": 5}', "\xff" * 9]
)
def test_an_earlier_report_that_is_none_is_refused(shell: Shell, basic: Store, tmp_path: Path, content: str) -> None:
    (tmp_path / "earlier.json").write_text(content)
    done = shell("report", basic.root, "--out", tmp_path / "page.html", "--compare", tmp_path / "earlier.json")
    assert (done.status, done.out) == (2, "")
    assert "expected what `mqindex report --json` printed, got another file" in done.err
    assert not (tmp_path / "page.html").exists()


def test_an_earlier_report_may_hold_anything(shell: Shell, basic: Store, tmp_path: Path) -> None:
    strange = {"read": {"made_at": 2**80}, "coverage": {"end": "x", "messages": [1]}, "verify": {"findings": [1, {}]}}
    (tmp_path / "earlier.json").write_text(json.dumps(strange))
    done = shell("report", basic.root, "--out", tmp_path / "page.html", "--compare", tmp_path / "earlier.json")
    assert (done.status, done.err) == (0, "")


def test_a_report_of_the_other_broker_is_not_compared_with(shell: Shell, basic: Store, tmp_path: Path) -> None:
    (tmp_path / "earlier.json").write_text(json.dumps({"read": {"made_at": 1}, "totals": {}}))
    done = shell("report", basic.root, "--out", tmp_path / "page.html", "--compare", tmp_path / "earlier.json")
    assert done.status == 2
    assert "expected a report of the same broker's files" in done.err


def test_keys_of_messages_are_printed_only_where_they_are_asked_for(shell: Shell, lost: Store, tmp_path: Path) -> None:
    plain = shell("report", lost.root, "--json", "--out", tmp_path / "plain.html").json[0]
    shown = shell("report", lost.root, "--json", "--out", tmp_path / "shown.html", "--show-keys").json[0]
    keys = {one["key"]["text"] for one in shown["index"]["frequent"]}
    assert keys and {one["key"] for one in plain["index"]["frequent"]} == {None}
    pages = [(tmp_path / name).read_text() for name in ("plain.html", "shown.html")]
    assert [sum(f">{key}<" in page for key in keys) for page in pages] == [0, len(keys)]


def test_a_report_says_where_it_was_made_of_which_broker(shell: Shell, basic: Store, tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerName=broker-a\nmaxHashSlotNum=100\nmaxIndexNum=400\nmappedFileSizeCommitLog=65536\n")
    (seen,) = shell("report", basic.root, "--json", "--broker-conf", conf).json
    site = seen["site"]
    assert (site["host"], site["broker"]) == (platform.node(), "broker-a")
    assert site["newest"] == basic.case.truth["messages"][-1]["storeTimestamp"]
    assert site["newest_age"] == seen["read"]["made_at"] - site["newest"]
    assert 0 < site["disk_free"] <= shutil.disk_usage(basic.root).total
    assert (site["bytes_per_day"], site["days_left"]) == (None, None)  # of minutes nothing is told of days


@pytest.mark.parametrize(
    ("properties", "broker"),
    [
        ("version=1\nnode.id=7\ncluster.id=c1\n", "node.id 7 of cluster c1"),
        ("version=0\nbroker.id=3\n", "broker.id 3"),
        ("version=x\n", None),
        ("", None),
        ("\xff", None),
    ],
)
def test_a_report_of_a_log_dir_names_the_broker(
    shell: Shell, tmp_path: Path, properties: str, broker: str | None
) -> None:
    shutil.copytree(PartitionCase("410-plain-mono").closed(tmp_path), tmp_path / "logs" / "t-0")
    (tmp_path / "logs" / "meta.properties").write_text(properties, encoding="latin-1")
    assert shell("report", tmp_path / "logs", "--json").json[0]["site"]["broker"] == broker
