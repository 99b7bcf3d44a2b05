"""Commands with a URL print what they print of the same files here, but for the URL in place of the path."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from mqindex.cli.printing.findings import EXPLAINED
from mqindex.files.places import place
from mqindex.files.places.storage import OfClient
from tests.cli.conftest import Done, Shell, Store
from tests.support.elsewhere import WAYS, Ways, memory
from tests.support.golden import KILLED_CASES, STORE_CASES, StoreCase, case
from tests.support.nightly import some
from tests.support.tree import contents

__all__ = ["memory"]  # a fixture

MARK = "MARKED-SECRET"
LOCK = re.compile("^ +lock +(.*)$", re.MULTILINE)


@pytest.fixture(params=some(STORE_CASES, lambda name: STORE_CASES.index(name) % 3 == 0))
def both(request: pytest.FixtureRequest, memory: Ways, tmp_path: Path) -> tuple[StoreCase, Path, str]:
    """A store here, without directories that are empty, and its copy elsewhere."""
    chosen = case(request.param)
    root = chosen.unpack(tmp_path)
    return chosen, root, uploaded(root)


def uploaded(root: Path) -> str:
    for directory, _, _ in os.walk(root, topdown=False):
        with suppress(OSError):
            Path(directory).rmdir()
    return WAYS.upload(root)


def told(done: Done, root: str | Path) -> tuple[int, str, str]:
    """What is said, but for times of work and the lock."""
    assert {"not known: the files are not on this machine"} >= {*LOCK.findall(done.out)} or isinstance(root, Path)
    texts = (re.sub(r"; [0-9.]+ s\b", "", text).replace(str(root), "STORE") for text in (done.out, done.err))
    return (done.status, *(LOCK.sub("", text) for text in texts))


def below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def geometry(chosen: StoreCase) -> list[str]:
    slots, entries = chosen.geometry
    return ["--hash-slot-num", str(slots), "--index-num", str(entries)]


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["people", "json"])
def test_info_and_dump(shell: Shell, both: tuple[StoreCase, Path, str], form: list[str]) -> None:
    _, root, url = both
    for name in below(root):
        for command in ("info", "dump"):
            here = told(shell(command, root / name, *form), root)
            assert told(shell(command, f"{url}/{name}", *form), url) == here


def test_info_of_a_store(shell: Shell, both: tuple[StoreCase, Path, str]) -> None:
    _, root, url = both
    for more in ([], ["--all"]):
        assert told(shell("info", url, *more), url) == told(shell("info", root, *more), root)
    (here,), (there,) = (shell("info", at, "--json").json for at in (root, url))
    assert there.pop("lock") == "elsewhere"
    here.pop("lock")
    for one in (here, there):
        one["glance"]["start"]["words"].pop("lock")
    assert json.loads(json.dumps(there).replace(url, str(root))) == here


def test_query_and_message(shell: Shell, both: tuple[StoreCase, Path, str]) -> None:
    chosen, root, url = both
    places = shell("dump", root / "commitlog", "--json").json
    with_keys = [one for one in places if one["keys"]][:3]
    for one in with_keys:
        asked = ["--topic", one["topic"], *one["keys"].split(), *geometry(chosen)]
        for more in ([], ["--json"], ["--messages"], ["--exact"], ["--messages", "--json", "--max-num", "1"]):
            here = told(shell("query", root, *asked, *more), root)
            assert told(shell("query", url, *asked, *more), url) == here
        here = told(shell("query", root / "index", *asked), root)
        assert told(shell("query", f"{url}/index", *asked), url) == here
    offsets = [str(one["phy_offset"]) for one in places[:: max(len(places) // 5, 1)]]
    ids = [one["uniq_key"] for one in with_keys if one["uniq_key"]]
    for more in ([], ["--json"], ["--body", "hex"]):
        asked = [*offsets, "3", str(1 << 40), *ids, *geometry(chosen), *more]
        assert told(shell("message", url, *asked), url) == told(shell("message", root, *asked), root)


def test_verify_and_report(shell: Shell, both: tuple[StoreCase, Path, str], tmp_path: Path) -> None:
    _, root, url = both
    status, out, _ = told(shell("verify", root), root)
    done = told(shell("verify", url), url)
    assert (done[0], done[2]) == (status, "")
    kept = [line for line in out.splitlines()[1:] if line]
    kept = [line.replace("`mqindex repair STORE`", "`mqindex repair COPY` (COPY: on this machine)") for line in kept]
    got = [line for line in done[1].splitlines()[1:] if line and line != EXPLAINED]
    kept = [line for line in kept if line != EXPLAINED]
    assert [line for line in got if line not in kept] == [
        "info: files-elsewhere. The files are not on this machine: locks, owners, links and holes are not known there.",
        "  STORE",
        "  -> no lock, owner, link or hole was looked at; copy the store here, or mount its place, to have them looked "
        "at too",
    ]
    assert [line for line in kept if line not in got] == []
    for path in (root / "index", *sorted((root / "index").iterdir())[:1]):
        at = path.relative_to(root)
        assert told(shell("verify", f"{url}/{at}"), url) == told(shell("verify", path), root)
    page = tmp_path / "page.html"
    assert shell("report", url, "--out", page).status == status
    assert url in page.read_text()


@pytest.mark.parametrize("name", KILLED_CASES)
def test_what_a_repair_would_do_is_said_of_a_copy(shell: Shell, memory: Ways, name: str, tmp_path: Path) -> None:
    root = StoreCase(name).unpack_after(tmp_path)
    here = shell("verify", root)
    if here.status:
        there = shell("verify", uploaded(root))
        assert f"`mqindex repair {root}` would:" in here.lines
        assert "`mqindex repair COPY` (COPY: on this machine) would:" in there.lines
        assert (
            there.lines[there.lines.index("`mqindex repair COPY` (COPY: on this machine) would:") + 1 :]
            == (here.lines[here.lines.index(f"`mqindex repair {root}` would:") + 1 :])
        )
        assert there.status == here.status


def test_rebuild(shell: Shell, both: tuple[StoreCase, Path, str], tmp_path: Path) -> None:
    chosen, root, url = both
    given = [*geometry(chosen), "--broker-version", chosen.version]
    for at, out in ((root, "here"), (url, "there")):
        assert shell("rebuild", at, "--out", tmp_path / out, *given).status == 0
    here, there = (sorted(contents(tmp_path / out).items(), key=lambda one: one[0]) for out in ("here", "there"))
    assert [data for _, data in here] == [data for _, data in there]
    assert [name for name, _ in here if "index" not in name] == [name for name, _ in there if "index" not in name]


def test_a_rebuild_goes_elsewhere(shell: Shell, basic: Store, memory: Ways, tmp_path: Path) -> None:
    url = uploaded(basic.root)
    done = shell("rebuild", url, "--out", f"{url}-out", "--json")
    assert done.status == 0
    assert shell("rebuild", basic.root, "--out", tmp_path / "here").status == 0
    found = [line["out_files"] for line in done.json]
    made = [path for path in (tmp_path / "here").rglob("*") if path.is_file()]
    assert len(found[0]) == len(made)
    again = shell("rebuild", url, "--out", f"{url}-out")
    assert (again.status, "exists" in again.err) == (2, True)


def test_optimize(shell: Shell, basic: Store, memory: Ways, tmp_path: Path) -> None:
    url = uploaded(basic.root)
    assert shell("optimize", basic.root, "--out", tmp_path / "here").status == 0
    expected = contents(tmp_path / "here")
    for index, out in ((url, tmp_path / "there"), (basic.root, f"{url}-1"), (f"{url}/index", f"{url}-2")):
        done = shell("optimize", index, "--out", out)
        assert (done.status, done.lines[0].split(";")[0]) == (
            0, f"optimized {out}: wrote 4 files, 1237 index entries",
        )  # fmt: skip
        assert isinstance(out, str) or contents(out) == expected
    assert memory.files(f"{url}-1").keys() == memory.files(f"{url}-2").keys()
    for out, more, said in (
        (f"{url}-1", [], f"the output exists and is not empty: {url}-1; choose another place"),
        (f"{url}-1", ["--force"], f"nothing is overwritten in an object store: {url}-1; choose another prefix"),
        (f"{url}/index/new", [], "expected a place of its own"),
        (url, ["--force"], "nothing is overwritten in an object store"),
    ):
        assert said in sentence(shell("optimize", url, "--out", out, *more))


def test_a_log_in_several_places(shell: Shell, basic: Store, memory: Ways, tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    expected = told(shell("verify", basic.root), basic.root)
    for path in basic.log_files[1::2]:
        path.rename(tmp_path / "odd" / path.name)
    url = uploaded(basic.root / "commitlog")
    done = shell("verify", basic.root, "--commitlog", tmp_path / "odd", "--commitlog", url)
    assert (done.status, expected[0]) == (0, 0)
    assert "info: files-elsewhere" in done.out


# ---- what is wrong, in one sentence


def sentence(done: Done) -> str:
    assert (done.status, done.out, done.err.count("\n"), done.err[:9]) == (2, "", 1, "mqindex: ")
    return done.err.removeprefix("mqindex: ").rstrip()


def test_a_wrong_url_is_said(shell: Shell, basic: Store, memory: Ways) -> None:
    url = uploaded(basic.root)
    for command, *more in (
        ["info"],
        ["verify"],
        ["dump"],
        ["report", "--json"],
        ["query", "--topic", "T", "k"],
        ["message", "0"],
        ["rebuild", "--out", "out"],
        ["optimize", "--out", "out"],
    ):
        assert sentence(shell(command, f"{url}/nothing", *more)) == f"{url}/nothing: No such file or directory"
        said = sentence(shell(command, "nosuch://bucket/store", *more))
        assert said.startswith("nosuch://bucket/store: expected a URL of abfs, abfss, az")
        assert said.endswith("got nosuch://")


def test_a_missing_extra_is_said(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, url in (("obstore", "s3://bucket"), ("hdfs_native", "hdfs://host:9000")):
        monkeypatch.setitem(sys.modules, module, None)
        said = sentence(shell("info", f"{url}/store"))
        assert said == f"{url} needs {module.replace('_', '-')}: pip install 'mqindex[remote]'"


def test_a_part_that_is_another_thing_is_said(shell: Shell, basic: Store, memory: Ways) -> None:
    url = uploaded(basic.root)
    assert f"{url}/index is a directory of index files: expected " in sentence(
        shell("rebuild", f"{url}/index", "--out", "o")
    )
    assert f"did you mean {url}?" in sentence(shell("message", f"{url}/commitlog", "0"))
    WAYS.put(f"{url}-text/store/readme", b"hello")
    assert f"{url}-text/store is nothing that mqindex knows" in sentence(shell("info", f"{url}-text/store"))


# ---- options of the storage


@pytest.fixture
def given(memory: Ways, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The options of each storage that is made."""
    found: list[dict[str, object]] = []
    real, begin = place.place_of, OfClient.__init__

    def made(self: OfClient, scheme: str, host: str, query: str, options: dict[str, object]) -> None:
        found.extend([] if options else [{"lost on the way": True}])
        begin(self, scheme, host, query, options)

    def spy(path: str, storage_options: dict[str, object] | None = None) -> str:
        one = real(path, storage_options)
        if isinstance(one, place.Place):
            found.append(dict(storage_options or {}))
        return one

    monkeypatch.setattr("mqindex.cli.options.place_of", spy)
    monkeypatch.setattr(OfClient, "__init__", made)
    return found


def test_options_reach_the_storage_and_are_shown_nowhere(
    shell: Shell, basic: Store, given: list[dict[str, object]], tmp_path: Path
) -> None:
    url = uploaded(basic.root)
    options = ["--storage-option", f"endpoint=http://{MARK}", "--storage-option", "region=a=b"]
    slots = ["--hash-slot-num", "100", "--index-num", "400"]
    for line in (
        ["info", url],
        ["verify", url],
        ["verify", url, "--json"],
        ["verify", f"{url}/nothing"],
        ["dump", f"{url}/checkpoint"],
        ["report", url, "--out", str(tmp_path / "page.html")],
        ["query", url, "--topic", "T", "k", *slots],
        ["message", url, "0", *slots],
        ["rebuild", url, "--out", str(tmp_path / "out")],
        ["rebuild", url, "--out", f"{url}-out", "--commitlog", f"{url}/commitlog"],
        ["optimize", url, "--out", f"{url}-cold"],
        ["messages", url, "--limit", "1"],
        ["sql", "SELECT count(*) FROM s", f"s={url}"],
    ):
        given.clear()
        done = shell(*line, *options)
        assert given == [{"endpoint": f"http://{MARK}", "region": "a=b"}] * (
            3 if "--commitlog" in line else 1 + line[-1].startswith(f"{url}-cold")
        )
        assert MARK not in done.out + done.err
    assert MARK not in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    "name",
    ["secret_access_key", "aws_session_token", "AWS_SECRET_ACCESS_KEY", "sas_token", "account_key", "password"],
)
def test_secrets_do_not_belong_on_a_command_line(shell: Shell, memory: Ways, name: str) -> None:
    said = sentence(shell("info", "memory://a/store", "--storage-option", f"{name}={MARK}"))
    assert f"{name} is a secret, and everybody sees a command line: expected it in the environment" in said
    assert MARK not in said


@pytest.mark.parametrize("name", ["access_key_id", "web_identity_token_file", "endpoint", "skip_signature"])
def test_what_is_no_secret_is_taken(shell: Shell, basic: Store, given: list[dict[str, object]], name: str) -> None:
    assert shell("info", uploaded(basic.root), "--storage-option", f"{name}=x").status == 0
    assert given == [{name: "x"}]


def test_an_option_without_a_value_is_said_without_its_text(shell: Shell) -> None:
    said = sentence(shell("info", "memory://a/store", "--storage-option", MARK))
    assert "expected NAME=VALUE, as region=eu-central-1" in said
    assert MARK not in said


def test_what_the_storage_does_not_know_is_said_without_values(shell: Shell) -> None:
    said = sentence(shell("info", "s3://bucket/store", "--storage-option", f"nosuch={MARK}"))
    assert said.startswith("storage_options of s3://bucket: ")
    assert "nosuch" in said
    assert MARK not in said


def test_options_of_the_client_are_taken(shell: Shell) -> None:
    options = [f"--storage-option={one}" for one in ("allow_http=true", "timeout=1s", "endpoint=http://127.0.0.1:1")]
    keys = ["--storage-option=skip_signature=true", "--storage-option=region=r"]
    done = shell("info", "s3://bucket/store", *options, *keys)
    assert (done.status, "Traceback" in done.err, "s3://bucket/store" in done.err) == (2, False, True)


def test_a_command_that_needs_a_disk_has_no_such_option(shell: Shell) -> None:
    for command in ("repair", "follow", "sample"):
        assert "--storage-option" not in shell(command, "--help").out
    for command in ("info", "verify", "query", "message", "dump", "report", "rebuild", "optimize", "messages", "sql"):
        assert "--storage-option" in shell(command, "--help").out


@pytest.mark.parametrize("forbidden", ["", "commitlog", "consumequeue"])
def test_only_of_what_can_be_reached_there_is_a_page(
    shell: Shell, basic: Store, memory: Ways, tmp_path: Path, forbidden: str
) -> None:
    """As of a directory here: where a part of a store may not be read, its page says so."""
    root, out = uploaded(basic.root), tmp_path / "page.html"
    memory.forbidden = forbidden or root.removeprefix("memory://")
    done = shell("report", root if forbidden else f"memory://{memory.forbidden}/{memory.forbidden}", "--out", out)
    sentence = done.err.splitlines()[-1]
    assert (done.status, done.out, "Permission denied" in sentence) == (2, "", True)
    assert out.exists() == (forbidden != "")
    if forbidden:
        assert sentence.removeprefix("mqindex: ") in out.read_text()


def test_a_log_that_cannot_be_reached_is_said_on_the_page_of_its_store(
    shell: Shell, basic: Store, memory: Ways, tmp_path: Path
) -> None:
    memory.forbidden, out = "elsewhere", tmp_path / "page.html"
    done = shell("report", basic.root, "--commitlog", "memory://host/elsewhere", "--out", out)
    assert (done.status, done.out) == (2, "")
    assert done.err.splitlines()[-1].removeprefix("mqindex: ") in out.read_text()
