"""Commands with the URL of Kafka's files print what they print of the same files here, but for the URL."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from mqindex.files.paths import status_of
from mqindex.files.places.place import place_of
from mqindex.kafka.directories.partition_files import list_segments
from tests.cli.conftest import Done, Shell
from tests.golden.test_kafka_elsewhere import narrow, written_now
from tests.golden.test_kafka_rebuild import every_case
from tests.support.elsewhere import Ways, memory
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_damage import INTERVAL, filled_log_dir
from tests.support.kafka_writer import FIRST_TIME

__all__ = ["memory"]  # a fixture

LOCK = re.compile("^ +lock +(.*)$", re.MULTILINE)
FILLED = ["--index-interval-bytes", str(INTERVAL)]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return written_now(filled_log_dir(tmp_path / "log-dir") / "topic-0").parent


def told(done: Done, root: str | Path) -> tuple[int, str, str]:
    """What is said, but for times of work and the lock."""
    assert {"not known: the files are not on this machine"} >= {*LOCK.findall(done.out)} or isinstance(root, Path)
    texts = (re.sub(r"; [0-9.]+ s\b", "", text).replace(str(root), "LOGS") for text in (done.out, done.err))
    return (done.status, *(LOCK.sub("", text) for text in texts))


def same(shell: Shell, roots: tuple[Path, str], command: str, name: str, *more: str) -> Done:
    """What both say of a file or directory below their root, which is the same; as it is said here."""
    here, there = (shell(command, f"{root}/{name}".rstrip("/"), *more) for root in roots)
    assert told(there, roots[1]) == told(here, roots[0])
    return here


def facts(shell: Shell, path: str | Path) -> dict[str, Any]:
    (found,) = shell("info", path, "--json").json
    return found


def without_lock(found: dict[str, Any], root: str | Path) -> Any:
    return json.loads(json.dumps({**found, "lock": None}).replace(str(root), "LOGS"))


def as_old(root: Path, url: str) -> None:
    """Of records without a time, that of the file's last change counts."""
    for path in root.rglob("*"):
        if path.is_file():
            time = status_of(place_of(f"{url}/{path.relative_to(root)}")).st_mtime_ns
            os.utime(path, ns=(time, time))


@every_case
def test_info_of_a_partition_and_of_each_file(
    shell: Shell, memory: Ways, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = PartitionCase(name).closed(tmp_path / "logs")
    roots = directory.parent, memory.upload(directory.parent)
    as_old(*roots)
    narrow(monkeypatch, 600)
    for path in sorted(directory.iterdir()):
        same(shell, roots, "info", f"{directory.name}/{path.name}")
    for more in ([], ["--all"]):
        same(shell, roots, "info", directory.name, *more)
    here, there = (facts(shell, f"{root}/{directory.name}") for root in roots)
    assert there["lock"] == "elsewhere"
    assert without_lock(there, roots[1]) == without_lock(here, roots[0])
    if segments := list_segments(directory).segments:
        here, there = (facts(shell, f"{root}/{directory.name}/{Path(segments[-1].log).name}") for root in roots)
        assert without_lock(there, roots[1]) == without_lock(here, roots[0])


def test_info_of_a_log_dir(shell: Shell, memory: Ways, log_dir: Path) -> None:
    (log_dir / "orders").mkdir()
    for name in ("notes", f"{7:020d}.index"):
        (log_dir / "orders" / name).touch()
    roots = log_dir, memory.upload(log_dir)
    for more in ([], ["--all"]):
        same(shell, roots, "info", "", *more)
    here, there = (facts(shell, root) for root in roots)
    assert (there["lock"], there["clean_shutdown"], there["strays"]) == ("elsewhere", True, ["orders"])
    assert without_lock(there, roots[1]) == without_lock(here, roots[0])


def test_info_says_which_file_does_not_answer(shell: Shell, memory: Ways, log_dir: Path) -> None:
    url = f"{memory.upload(log_dir)}/topic-0/{10:020d}"
    memory.forbidden = ".timeindex"
    done = shell("info", f"{url}.log")
    refused = "Permission denied; are key and secret right, and may they list and read there?"
    assert (done.status, done.err) == (2, f"mqindex: {url}.timeindex: {refused}\n")


@every_case
def test_dump_and_query(shell: Shell, memory: Ways, name: str, tmp_path: Path) -> None:
    directory = written_now(PartitionCase(name).closed(tmp_path / "logs"))
    roots = directory.parent, memory.upload(directory.parent)
    for path in sorted(directory.iterdir()):
        for more in ([], ["--json"]):
            same(shell, roots, "dump", f"{directory.name}/{path.name}", *more)
    for more in ([], ["--records"], ["--records", "--isolation-level", "read_committed", "--json"]):
        same(shell, roots, "dump", directory.name, *more)
    segments = list_segments(directory).segments
    for segment in ["", *(f"/{Path(one.log).name}" for one in segments)]:
        for asked in (["--offset", "0", "--offset", "7", "--offset", "1000000"], ["--timestamp", str(FIRST_TIME)]):
            same(shell, roots, "query", directory.name + segment, *asked)
            same(shell, roots, "query", directory.name + segment, *asked, "--json")
        same(shell, roots, "dump", directory.name + segment, "--records", "--isolation-level", "read_committed")


def test_an_end_is_asked_of_the_partition(shell: Shell, memory: Ways, log_dir: Path) -> None:
    roots = log_dir, memory.upload(log_dir)
    done = same(shell, roots, "query", f"topic-0/{10:020d}.log", "--timestamp=-1")
    assert done.status == 2


def test_verify_and_report(shell: Shell, memory: Ways, log_dir: Path, tmp_path: Path) -> None:
    (log_dir / "topic-0" / f"{27:020d}.timeindex").unlink()
    url = memory.upload(log_dir)
    here, there = (shell("verify", root, *FILLED) for root in (log_dir, url))
    assert (here.status, there.status) == (1, 1)
    for line in told(here, log_dir)[1].splitlines()[1:]:
        assert "repair" in line or line in told(there, url)[1].splitlines()
    assert "info: files-elsewhere" in there.out
    page = tmp_path / "page.html"
    assert shell("report", url, "--out", page, *FILLED).status == 1
    assert url in page.read_text()


@every_case
def test_a_rebuild_goes_elsewhere(shell: Shell, memory: Ways, name: str, tmp_path: Path) -> None:
    directory = PartitionCase(name).closed(tmp_path / "logs")
    url = f"{memory.upload(directory.parent)}/{directory.name}"
    out, given = "memory://results/one", ["--kafka-version", "0.11"] if "magic1" in name else []
    here = shell("rebuild", directory, "--out", tmp_path / "here", *given)
    there = shell("rebuild", url, "--out", out, *given)
    assert there.status == here.status
    assert there.err.endswith(f"in {out.rpartition('/')[0]}, where nobody counts what is free\n")
    found = memory.files(out)
    del found["mqindex.json"]
    assert found == {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()}
    again = shell("rebuild", url, "--out", out, *given)
    assert (again.status, again.err) == (
        2, f"mqindex: the output exists and is not empty: {out}; choose another place\n",
    )  # fmt: skip
    forced = shell("rebuild", url, "--out", out, "--force", *given)
    assert (forced.status, forced.err.count("\n")) == (2, 1)
    assert "nothing is overwritten in an object store" in forced.err
