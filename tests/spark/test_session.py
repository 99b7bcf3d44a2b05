"""What goes wrong with a Spark set-up is told in one sentence."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqindex.errors import RebuildError
from mqindex.spark import session
from mqindex.spark.jobs import Job
from tests.support.small_store import make_small_store
from tests.support.spark_cluster import spark_environment


def java(directory: Path, script: str) -> Path:
    """A JAVA_HOME whose `java` is a script."""
    path = directory / "bin" / "java"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return directory


def test_java_is_found() -> None:
    assert os.access(session.find_java(), os.X_OK)


def test_missing_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RebuildError, match=r"no java in PATH; install a Java 17 or newer runtime"):
        session.find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RebuildError, match=r"JAVA_HOME without .*bin/java; install"):
        session.find_java()


def test_old_java_is_named_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, "echo 'openjdk version \"1.8.0_392\"' >&2")))
    with pytest.raises(RebuildError, match=r"Java is too old: .*/bin/java: expected 17\+, got 8; install"):
        session.find_java()


def test_java_that_does_not_run_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, "echo broken >&2; exit 1")))
    with pytest.raises(RebuildError, match=r"does not run: expected Java 17\+, got broken"):
        session.find_java()


def test_session_is_examined_once(spark: Any) -> None:
    workers = session.ensure_session(spark)
    assert (workers.parallelism, workers.python, workers.elastic) == (2, sys.executable, False)
    assert session.ensure_session(spark) is workers


@pytest.fixture
def worker_python(spark: Any) -> Iterator[Any]:
    yield lambda path: spark.conf.set(session.WORKER_PYTHON, str(path))
    spark.conf.unset(session.WORKER_PYTHON)


def test_workers_without_the_packages_are_told_in_one_sentence(spark: Any, worker_python: Any, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    worker_python(bare / "bin" / "python")
    with pytest.raises(RebuildError) as caught:
        session._examine(spark)
    said = str(caught.value)
    assert said.startswith(f"the Spark workers run {bare}/bin/python, this process runs {sys.executable}: ")
    assert "pyarrow" in said
    assert said.endswith(f"; {session.CHOOSE_PYTHON}")
    assert "\n" not in said


def test_workers_without_mqindex_are_told_in_one_sentence(spark: Any, worker_python: Any, tmp_path: Path) -> None:
    blind = tmp_path / "blind-python"
    hide = "import sys; sys.modules['mqindex'] = None"
    (tmp_path / "sitecustomize.py").write_text(hide)
    blind.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    blind.chmod(0o755)
    worker_python(blind)
    with pytest.raises(RebuildError, match=r"the Spark workers run .*, which cannot import .*mqindex") as caught:
        session._examine(spark)
    assert "\n" not in str(caught.value)


def test_interpreter_that_does_not_exist_is_named(spark: Any, worker_python: Any) -> None:
    worker_python("/no/such/python")
    with pytest.raises(RebuildError, match="the Spark workers cannot start /no/such/python") as caught:
        session._examine(spark)
    assert "\n" not in str(caught.value)


def test_another_version_of_the_package_in_the_workers_is_told(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "__version__", "99")
    with pytest.raises(RebuildError, match="with another mqindex: expected 99, got"):
        session._examine(spark)


def test_slow_compression_is_warned_of(spark: Any) -> None:
    codec = "spark.sql.execution.arrow.compression.codec"
    spark.conf.set(codec, "lz4")
    try:
        with pytest.warns(RuntimeWarning, match="lz4 is a hundred times slower"):
            session._warn_of_slow_compression(spark)
    finally:
        spark.conf.unset(codec)


def test_shell_takes_the_session_that_is_there(spark: Any) -> None:
    assert session.get_or_create("local[7]") is spark


def test_nobody_at_the_place_of_spark_connect_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "active_session", lambda: None)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))  # and nobody listens
        port = other.getsockname()[1]
        with pytest.raises(RebuildError, match=f"nobody answers at 127.0.0.1:{port} .*refused"):
            session.get_or_create(f"sc://127.0.0.1:{port}/;user_id=me")


def test_a_dead_master_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark tried for 74 s, and said nothing but a class's name."""
    monkeypatch.setattr(session, "active_session", lambda: None)
    with socket.socket() as one, socket.socket() as other:
        ports = []
        for place in (one, other):
            place.bind(("127.0.0.1", 0))  # and nobody listens
            ports.append(place.getsockname()[1])
        both = "127.0.0.1:{} .*refused.* or 127.0.0.1:{} .*refused.*; start a Spark master there".format(*ports)
        with pytest.raises(RebuildError, match=f"^nobody answers at {both}"):
            session.get_or_create("spark://127.0.0.1:{},127.0.0.1:{}".format(*ports))
        other.listen()
        session._require_server("spark://127.0.0.1:{},127.0.0.1:{}".format(*ports))


def test_a_master_that_spark_does_not_start_on_is_named() -> None:
    class Builder:
        def getOrCreate(self) -> None:
            raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited.\nmore")

    with pytest.raises(RebuildError, match=r"Spark does not start on nonsense: .*process exited\.; a master is local"):
        session._started(Builder, "nonsense")


@pytest.mark.parametrize(
    ("remote", "hint"),
    [("sc://server:15002", "unset SPARK_REMOTE, or give --master sc://server:15002"), ("local", "unset SPARK_REMOTE")],
)
def test_a_master_beside_spark_s_own_variable_is_told(remote: str, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was "a bug in mqindex"."""
    monkeypatch.setattr(session, "active_session", lambda: None)
    monkeypatch.setenv("SPARK_REMOTE", remote)
    for master in (None, "local[1]"):
        with pytest.raises(RebuildError) as caught:
            session.get_or_create(master)
        said = f"SPARK_REMOTE is set to {remote}: Spark takes no master {master or 'local[*]'} besides; {hint}"
        assert str(caught.value) == said


def test_what_spark_refuses_before_it_starts_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "active_session", lambda: None)
    monkeypatch.setattr(session, "_require_server", lambda master: None)
    monkeypatch.setenv("MASTER", "local")
    with pytest.raises(RebuildError, match=r"^Spark does not start on sc://server: .*cannot be configured together"):
        session.get_or_create("sc://server")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
            ": org.apache.spark.SparkException: Could not parse Master URL: 'local[x]'\n\tat org.apache.spark",
            "SparkException: Could not parse Master URL: 'local[x]'",
        ),
        (
            "An error occurred while calling o53.collectToPython.\n"
            ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 4 times\nDriver",
            "SparkException: Job aborted due to stage failure: Task 0 failed 4 times",
        ),
        ("nothing of the kind\nmore", "nothing of the kind"),
    ],
)
def test_the_cause_is_the_line_of_java_s_exception(said: str, expected: str) -> None:
    """It was "An error occurred while calling"."""
    assert session.cause(RuntimeError(said)) == expected


def test_what_goes_wrong_while_java_is_gone_hides_nothing() -> None:
    """It was "Connection refused", of the attempt to cancel the job."""

    class Gone(Job):
        def cancel(self) -> None:
            raise ConnectionRefusedError

        def settle(self) -> None:
            pass

    with pytest.raises(KeyboardInterrupt), Gone(None, lambda: None, "nothing"):  # type: ignore[arg-type]
        raise KeyboardInterrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_a_command_that_is_interrupted_while_java_starts_leaves_none_behind(
    tmp_path: Path, number: signal.Signals, seconds: float
) -> None:
    """Java stayed for ever, and with it the pipe that a caller reads."""
    make_small_store(tmp_path / "store")
    rest = ["--hash-slot-num", "5", "--index-num", "16", "--broker-version", "4.9.3", "--master", "local[1]"]
    command = [sys.executable, "-c", SHELL, "rebuild", tmp_path / "store", "--out", tmp_path / "out", *rest]
    running = subprocess.Popen(
        [*command, "--engine", "spark"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, **spark_environment()},
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not _java_of(running.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        (java,) = _java_of(running.pid)
        time.sleep(seconds)
        running.send_signal(number)
        said, _ = running.communicate(timeout=120)  # not before Java lets the pipe go
    finally:
        running.kill()
    assert running.returncode == -number, said
    assert said == "mqindex: interrupted; nothing was changed\n"
    while _is_there(java) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _is_there(java)
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob("**/.mqindex-*"))


SHELL = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from mqindex.cli import main
sys.exit(main())
"""


def _java_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if "pyspark-shell" in Path(f"/proc/{child}/cmdline").read_text()]


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("missing", ["pyspark", "pandas"])
def test_missing_extra_is_an_import_error_with_the_install_line(missing: str) -> None:
    program = f"""
import sys
sys.modules[{missing!r}] = None
from mqindex.spark.session import get_or_create, _require_driver_packages
try:
    get_or_create() if {missing!r} == "pyspark" else _require_driver_packages()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"the Spark engine needs {missing}: pip install 'mqindex[spark]'\n"


def test_an_older_pyspark_is_told_on_import(tmp_path: Path) -> None:
    """It was "'SparkSession' object is not callable"."""
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("__version__ = '3.5.1'\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import mqindex.spark"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    said = "ImportError: mqindex.spark needs PySpark 4.0 or newer, got 3.5.1: pip install 'mqindex[spark]'"
    assert done.stderr.splitlines()[-1] == said


PROGRAM = """
import os, signal, sys, threading, time
from pyspark.sql import SparkSession
from mqindex.errors import RebuildError
from mqindex.spark import SparkEngine, register
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
register(spark)
engine = SparkEngine(spark)
print(engine.map(abs, [-1, 2, -3], name="demo"), spark.sql("SELECT key_hash('Aa')").collect()[0][0])
java = spark.sparkContext._gateway.proc.pid
for delay in (1, 0):
    threading.Timer(delay, os.kill, (java, signal.SIGKILL)).start() if delay else None
    try:
        engine.map(time.sleep, [60 * delay] * 2, name="extract")
    except RebuildError as error:
        print(error)
sys.stdout.flush()
os._exit(0)
"""


@pytest.fixture(scope="module")
def own_session(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a process prints whose session is its own, where `python3` is a bare interpreter, and which loses Java."""
    other = tmp_path_factory.mktemp("python") / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(other)], check=True)
    environment = {**os.environ, **spark_environment(), "PATH": f"{other}/bin:{os.environ['PATH']}"}
    del environment["PYSPARK_PYTHON"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, env=environment, timeout=3600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_local_workers_run_this_interpreter_without_any_setting(own_session: list[str]) -> None:
    assert own_session[0] == "[1, 2, 3] 2112"


def test_death_of_the_driver_is_one_sentence(own_session: list[str]) -> None:
    assert own_session[1:] == ["Spark could not extract: its Java process is gone; nothing was published"] * 2


def test_what_is_no_session_is_told() -> None:
    with pytest.raises(TypeError, match=r"^spark: expected a SparkSession, got None$"):
        session.ensure_session(None)  # type: ignore[arg-type]


class _Stopped:
    """As much of a session as is left when it was stopped: a classic one, and one of Connect."""

    def __init__(self, *, classic: bool) -> None:
        self.is_stopped = not classic
        if classic:
            self._sc = type("Context", (), {"_jsc": None})()

    def createDataFrame(self) -> None:
        raise AssertionError


@pytest.mark.parametrize("classic", [True, False])
def test_a_stopped_session_is_told(classic: bool) -> None:
    """It was told as an `AssertionError`."""
    with pytest.raises(RebuildError, match=r"^the Spark session was stopped; get another one; nothing was published$"):
        session.ensure_session(_Stopped(classic=classic))  # type: ignore[arg-type]
