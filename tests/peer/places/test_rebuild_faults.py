"""Results from an object store to it where any one request fails: the right answer, or one clear sentence and nothing.

In the nightly run each request is made to fail, in each way; else a part of them.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Container
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from mqindex import kafka
from mqindex.errors import FileStateError, MQIndexError
from mqindex.files.results import elsewhere
from mqindex.report import RebuildReport
from mqindex.rocketmq import IndexService, optimize, rebuild
from tests.peer.places.servers import BUCKET, S3
from tests.peer.places.test_faults import ALL, AT_ONCE, RETRIED, clear, options_at
from tests.peer.places.test_rebuild import files_below
from tests.support.fault_proxy import FAULTS, FaultProxy
from tests.support.kafka_damage import INTERVAL, filled_log_dir
from tests.support.kafka_log_dir import ONE
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.nightly import NIGHTLY

STEP = 1 if NIGHTLY else 48  # from one request that fails to the next
GIVEN: dict[str, Any] = {"hash_slot_num": 20, "index_num": 12, "config": {"mappedFileSizeConsumeQueue": 400}}
OF_KAFKA: dict[str, Any] = {"index_interval_bytes": INTERVAL, "engine": ONE}
MANIFEST = "mqindex.json"


GONE = ("log-file-missing", "segments-gone", "no-segment-left", "partition-gone")


@dataclass
class Rebuilt:
    """Files on a server, what is made of them, and by what."""

    server: S3
    url: str
    expected: dict[str, bytes]
    make: Callable[..., RebuildReport]

    def said(self, name: str, fault: str | None = None, failing: Container[int] = ()) -> tuple[str | None, FaultProxy]:
        """What a rebuild to `name` says where requests fail; None: it is there.

        A file of the log of which the server says once that it is not there counts as deleted: a finding.
        """
        with FaultProxy(self.server.port, fault, failing) as proxy:
            try:
                options = options_at(self.server, proxy.url)
                report = self.make(self.url, f"s3://{BUCKET}/{name}", storage_options=options)
            except (MQIndexError, OSError) as error:
                return clear(error), proxy
        gone = [one for one in report.findings if one.severity == "error" or one.kind in GONE]
        assert {one.kind for one in gone} <= {*GONE}
        return (clear(gone[0].path) if gone else None), proxy

    def left(self, name: str) -> tuple[dict[str, bytes], list[str]]:
        """The files of a result, and those of its scratch."""
        found = self.server.files(name)
        scratch = [one for one in found if one.startswith("_mqindex-")]
        return {one: data for one, data in found.items() if one not in scratch}, scratch


@pytest.fixture(scope="module")
def rebuilt(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Rebuilt:
    root = tmp_path_factory.mktemp("files")
    writer = LogWriter(root / "store" / "commitlog", mapped_file_size=4096)
    for n in range(20):
        writer.write(LogMessage(keys=f"k{n}", body=bytes(300)))
    rebuild(root / "store", root / "here", **GIVEN)
    return Rebuilt(s3, s3.upload(root / "store", "store"), files_below(root / "here"), partial(rebuild, **GIVEN))


@pytest.fixture(scope="module", params=["kafka", "optimize"])
def other(request: pytest.FixtureRequest, rebuilt: Rebuilt, tmp_path_factory: pytest.TempPathFactory) -> Rebuilt:
    """What else is made of files there."""
    root = tmp_path_factory.mktemp("files")
    if request.param == "kafka":
        log_dir = filled_log_dir(root / "logs")
        kafka.rebuild(log_dir, root / "here", **OF_KAFKA)
        url, make = rebuilt.server.upload(log_dir, "logs"), partial(kafka.rebuild, **OF_KAFKA)
        return Rebuilt(rebuilt.server, url, files_below(root / "here"), make)
    store = {name: data for name, data in rebuilt.expected.items() if name.startswith("index/")}
    for name, data in store.items():
        (root / "store" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "store" / name).write_bytes(data)
    given = {name: GIVEN[name] for name in ("hash_slot_num", "index_num")}
    optimize(root / "store", root / "here", **given)
    url = rebuilt.server.upload(root / "store", "to-optimize")
    return Rebuilt(rebuilt.server, url, files_below(root / "here"), partial(optimize, **given))


def is_complete(files: dict[str, bytes], expected: dict[str, bytes]) -> bool:
    return MANIFEST in files and {name: data for name, data in files.items() if name != MANIFEST} == expected


def is_finding(said: str | None) -> bool:
    return said is not None and said.startswith("s3://")


@pytest.mark.parametrize("fault", FAULTS)
def test_any_request_fails_once(rebuilt: Rebuilt, fault: str) -> None:
    each_fails_once(rebuilt, fault, fault)


@pytest.mark.parametrize("fault", FAULTS)
def test_any_request_of_other_work_fails_once(other: Rebuilt, fault: str, request: pytest.FixtureRequest) -> None:
    each_fails_once(other, fault, request.node.name)


def each_fails_once(rebuilt: Rebuilt, fault: str, home: str) -> None:
    none, proxy = rebuilt.said(f"{home}/none")
    assert none is None

    def once(n: int) -> tuple[int, str | None]:
        said, _ = rebuilt.said(f"{home}/{n}", fault, [n])
        return n, said

    numbers = range(1 + FAULTS.index(fault), proxy.requests.total() + 1, STEP)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(once, numbers))
    for n, said in answers:
        files, scratch = rebuilt.left(f"{home}/{n}")
        assert not scratch, (n, said)
        assert is_complete(files, rebuilt.expected) if said is None else not files or is_finding(said), (n, said)
    assert fault not in RETRIED or not [said for _, said in answers if said]


@pytest.mark.filterwarnings("default:scratch could not be removed:UserWarning")  # as it is said; it is looked for
@pytest.mark.parametrize("fault", FAULTS)
def test_all_requests_fail_from_one_on(rebuilt: Rebuilt, fault: str) -> None:
    all_fail(rebuilt, fault, f"{fault}/all")


@pytest.mark.filterwarnings("default:scratch could not be removed:UserWarning")
@pytest.mark.parametrize("fault", FAULTS)
def test_all_requests_of_other_work_fail_from_one_on(
    other: Rebuilt, fault: str, request: pytest.FixtureRequest
) -> None:
    all_fail(other, fault, request.node.name)


def all_fail(rebuilt: Rebuilt, fault: str, home: str) -> None:
    """What is there then and is not complete has a scratch beside it, by which readers know."""
    _, proxy = rebuilt.said(f"{home}/none")
    number = proxy.requests.total()
    firsts = sorted({max(n, 1) for n in (1, number // 3, *(number - back for back in (25, 16, 15, 13, 12, 11, 10, 9)))})

    def on(n: int) -> str | None:
        return rebuilt.said(f"{home}/{n}", fault, range(n, ALL))[0]

    firsts = firsts if NIGHTLY else firsts[FAULTS.index(fault) % 3 :: 3]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(on, firsts))
    for n, said in zip(firsts, answers, strict=True):
        files, scratch = rebuilt.left(f"{home}/{n}")
        if said is None or (MANIFEST in files and not is_finding(said)):
            assert is_complete(files, rebuilt.expected), (n, said)
        assert MANIFEST in files or scratch or not files, (n, said)


STORES = ("broker-a", "broker-b")


@pytest.fixture(scope="module")
def several(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Rebuilt:
    """Stores, each of which has its own result."""
    root = tmp_path_factory.mktemp("stores")
    for name in STORES:
        writer = LogWriter(root / "there" / name / "commitlog", mapped_file_size=4096)
        for n in range(8):
            writer.write(LogMessage(keys=f"{name}{n}", body=bytes(300)))
    rebuild([root / "there" / name for name in STORES], root / "here", **GIVEN)

    def make(url: str, out: str, **given: Any) -> RebuildReport:
        return rebuild([f"{url}/{name}" for name in STORES], out, **GIVEN, **given)

    return Rebuilt(s3, s3.upload(root / "there", "stores"), files_below(root / "here"), make)


@pytest.mark.filterwarnings("default:scratch could not be removed:UserWarning")
@pytest.mark.parametrize("on", [False, True], ids=["once", "all from there on"])
@pytest.mark.parametrize("fault", FAULTS)
def test_of_several_stores_each_has_its_result_or_nothing(several: Rebuilt, fault: str, on: bool) -> None:
    home = f"{fault}/several/{on}"
    _, proxy = several.said(f"{home}/none")
    numbers = range(1 + FAULTS.index(fault), proxy.requests.total() + 1, STEP * (2 if on else 1))

    def made(n: int) -> RebuildReport | None:
        with FaultProxy(several.server.port, fault, range(n, ALL) if on else [n]) as proxy:
            try:
                options = options_at(several.server, proxy.url)
                return several.make(several.url, f"s3://{BUCKET}/{home}/{n}", storage_options=options)
            except (MQIndexError, OSError) as error:
                clear(error)
                return None

    with ThreadPoolExecutor(AT_ONCE) as threads:
        reports = dict(zip(numbers, threads.map(made, numbers), strict=True))
    for n, report in reports.items():
        for name in STORES:
            files, scratch = several.left(f"{home}/{n}/{name}")
            expected = {
                one.removeprefix(f"{name}/"): data for one, data in several.expected.items() if one.startswith(name)
            }
            said = report is None or [one for one in report.stores[name].findings if one.severity == "error"]
            if is_complete(files, expected):
                assert on or not scratch, (n, name)
            elif on:
                assert said and (scratch or not files), (n, name)
            else:
                assert said and not scratch and (not files or MANIFEST in files), (n, name)


def test_a_server_that_asks_to_slow_down_is_waited_for(rebuilt: Rebuilt) -> None:
    with FaultProxy(rebuilt.server.port, "503", range(10, 16)) as proxy:
        options = {**rebuilt.server.options, "endpoint": proxy.url}  # the client's own patience
        rebuild(rebuilt.url, f"s3://{BUCKET}/slow", storage_options=options, **GIVEN)
    assert is_complete(rebuilt.left("slow")[0], rebuilt.expected)


def test_of_a_killed_run_is_told_until_it_may_be_cleared(rebuilt: Rebuilt, monkeypatch: pytest.MonkeyPatch) -> None:
    out, options = f"s3://{BUCKET}/killed", rebuilt.server.options
    script = (
        "import os, signal; from mqindex.files.results import elsewhere; from mqindex.rocketmq import rebuild;"
        "elsewhere._put_list = lambda *_: os.kill(os.getpid(), signal.SIGKILL);"
        f"rebuild({rebuilt.url!r}, {out!r}, storage_options={options!r}, **{GIVEN!r})"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    files, scratch = rebuilt.left("killed")
    assert files == rebuilt.expected and scratch
    with pytest.raises(FileStateError, match="its run has not finished"):
        IndexService.open(f"{out}/index", storage_options=options)
    with pytest.raises(FileStateError, match="another run may be writing there"):
        rebuild(rebuilt.url, out, storage_options=options, **GIVEN)
    monkeypatch.setattr(elsewhere, "_QUIET", -10)
    rebuild(rebuilt.url, out, storage_options=options, **GIVEN)
    files, scratch = rebuilt.left("killed")
    assert is_complete(files, rebuilt.expected) and not scratch


def test_what_may_not_be_done_is_said_at_once(rebuilt: Rebuilt) -> None:
    wrong = {**rebuilt.server.options, "secret_access_key": "guessed"}
    with pytest.raises(PermissionError) as refused:
        rebuild(rebuilt.url, f"s3://{BUCKET}/refused", storage_options=wrong, **GIVEN)
    assert "guessed" not in clear(refused.value)
    with pytest.raises(FileNotFoundError, match="no such bucket or container: 's3://nobodys/out/"):
        rebuild(rebuilt.url, "s3://nobodys/out", storage_options=rebuilt.server.options, **GIVEN)
    with pytest.raises(FileNotFoundError, match="no such store directory: 's3://nobodys/store'"):
        rebuild("s3://nobodys/store", f"s3://{BUCKET}/none", storage_options=rebuilt.server.options, **GIVEN)
