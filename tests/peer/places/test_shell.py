"""The shell on a real S3 server: what it prints of a store and of a partition there, and that it shows no secret."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Done, process
from tests.golden.test_kafka_rebuild import index_files
from tests.peer.places.servers import CREDENTIAL, IDENTITY, Server
from tests.peer.places.test_rebuild import files_below
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase
from tests.support.tree import index_paths

LOCK = re.compile("^ +lock +.*$", re.MULTILINE)
WHO = "are key and secret right, and may they list and read there?"
Run = Callable[..., Done]


@pytest.fixture
def run(s3: Server) -> Run:
    """Run `mqindex ARGUMENTS...` in a process of its own; the secret is in its environment, as the shell asks for."""
    options = ["endpoint=" + s3.options["endpoint"], f"access_key_id={IDENTITY}", "region=us-east-1", "allow_http=true"]
    words = [word for one in options for word in ("--storage-option", one)]

    def of(*arguments: str | Path, secret: str = CREDENTIAL) -> Done:
        more = words if any(str(one).startswith(s3.url) for one in arguments) else []
        done = process(*arguments, *more, env={**os.environ, "AWS_SECRET_ACCESS_KEY": secret})
        made = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert secret not in made.out + made.err
        assert "Traceback" not in made.err
        return made

    return of


def told(done: Done, root: str | Path) -> tuple[int, str, str]:
    """What is said, but for times of work, the lock and the free space."""
    texts = (re.sub(r"; [0-9.]+ s\b", "", text).replace(str(root), "ROOT") for text in (done.out, done.err))
    return (done.status, *(LOCK.sub("", re.sub("where .* free", "", text)) for text in texts))


def same(run: Run, roots: tuple[Path, str], command: str, part: str, *more: str) -> Done:
    here, there = (run(command, f"{root}{part}", *more) for root in roots)
    assert told(there, roots[1]) == told(here, roots[0])
    return here


def test_a_store(run: Run, s3: Server, tmp_path: Path) -> None:
    chosen = case("medium-493")
    root = chosen.unpack(tmp_path)
    roots = root, s3.upload(root, "shell/store")
    slots = ["--hash-slot-num", str(chosen.geometry[0]), "--index-num", str(chosen.geometry[1])]
    same(run, roots, "info", "", "--all")
    same(run, roots, "info", f"/index/{index_paths(root)[0].name}")
    same(run, roots, "verify", f"/index/{index_paths(root)[0].name}")
    found = run("verify", roots[1])
    assert (found.status, "info: files-elsewhere" in found.out) == (run("verify", root).status, True)
    messages = [json.loads(line) for line in same(run, roots, "dump", "/commitlog", "--json").lines]
    one = next(message for message in messages if message["keys"])
    keys = same(run, roots, "query", "", "--topic", one["topic"], *one["keys"].split(), "--messages", *slots)
    assert (keys.status, keys.out != "") == (0, True)
    assert same(run, roots, "message", "", str(one["phy_offset"]), "--body", "hex", *slots).status == 0
    assert run("report", roots[1], "--out", tmp_path / "page.html").status == found.status
    page = (tmp_path / "page.html").read_text()
    assert roots[1] in page
    assert CREDENTIAL not in page
    for command, name in (("rebuild", "rebuilt"), ("optimize", "cold")):
        out = f"shell/{name}"
        here, there = (
            run(command, at, "--out", to) for at, to in ((root, tmp_path / name), (roots[1], f"{s3.url}/{out}"))
        )
        assert (here.status, there.status) == (0, 0), there.err
        made = s3.files(out)
        assert CREDENTIAL.encode() not in made.pop("mqindex.json")
        assert made == files_below(tmp_path / name)
        again = run(command, roots[1], "--out", f"{s3.url}/{out}", "--force")
        assert (again.status, again.err.count("\n")) == (2, 1)
        assert "nothing is overwritten in an object store" in again.err


def test_a_partition(run: Run, s3: Server, tmp_path: Path) -> None:
    directory = PartitionCase("410-txn").closed(tmp_path / "logs")
    roots = directory, f"{s3.upload(directory.parent, 'shell/logs')}/{directory.name}"
    log = min(path.name for path in directory.glob("*.log"))
    interval = ["--index-interval-bytes", str(PartitionCase("410-txn").truth["config"]["index.interval.bytes"])]
    same(run, roots, "info", "", "--all")
    same(run, roots, "dump", "", "--records", "--isolation-level", "read_committed", "--json")
    same(run, roots, "query", "", "--offset", "7", "--json")
    same(run, roots, "query", f"/{log}", "--offset", "7")
    found = run("verify", roots[1], *interval)
    assert (found.status, "info: files-elsewhere" in found.out) == (run("verify", directory, *interval).status, True)
    assert run("report", roots[1], "--out", tmp_path / "page.html", *interval).status == found.status
    assert CREDENTIAL not in (tmp_path / "page.html").read_text()
    assert run("rebuild", directory, "--out", tmp_path / "here", *interval).status == 0
    assert run("rebuild", roots[1], "--out", f"{s3.url}/shell/indexes", *interval).status == 0
    made = s3.files("shell/indexes")
    del made["mqindex.json"]
    assert made == index_files(tmp_path / "here")


@pytest.mark.parametrize("command", ["info", "verify", "report", "rebuild", "optimize"])
def test_what_cannot_be_reached_is_one_sentence(run: Run, s3: Server, tmp_path: Path, command: str) -> None:
    """`report` wrote a page that said no more than that."""
    url, out = s3.upload(case("basic-493").unpack(tmp_path), "shell/forbidden"), tmp_path / "out"
    more = [] if command in ("info", "verify") else ["--out", out]
    done: Any = run(command, url, *more, secret="MARKED-SECRET")
    assert (done.status, done.out, done.err) == (2, "", f"mqindex: {url}: Permission denied; {WHO}\n")
    url = "s3://no-such-bucket/store"
    nowhere = ["--storage-option", "endpoint=" + s3.options["endpoint"]]
    given = ["--storage-option", f"access_key_id={IDENTITY}", "--storage-option", "allow_http=true"]
    done = run(command, url, *more, *nowhere, *given)
    assert (done.status, done.out, done.err) == (2, "", f"mqindex: {url}: no such bucket or container\n")
    region = ["--storage-option", "region=us-east-1"]
    done = run(command, url, *more, *nowhere, *region, *given[:2])
    assert (done.status, done.out) == (2, "")
    assert "endpoint begins with http://, which is not encrypted: where this is meant, set AWS_ALLOW_HTTP" in done.err
    done = run(command, url, *more, "--storage-option", "endpoint=http://127.0.0.1:1", *given)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"mqindex: {url}: the server cannot be reached; ")
    assert not out.exists()
