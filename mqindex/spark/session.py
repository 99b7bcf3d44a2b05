"""The Spark session: made for the shell, and examined once before the first job.

The usual set-up faults surface in Spark as a page of Java. Here each is one sentence: a probe task on every core
imports what the stages need and reports what it runs on.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mqindex import __version__
from mqindex._needs import needing
from mqindex.errors import RebuildError
from mqindex.files.paths import join
from mqindex.spark.jobs import is_connect, start_job
from mqindex.spark.noise import quiet_start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINIMUM_JAVA = 17
PORTS = {"sc": 15002, "spark": 7077}  # Spark's defaults
ANSWERS_WITHIN = 10  # seconds
INSTALL = "pip install 'mqindex[spark]'"
PROBE_SCHEMA = "python string, version string, problem string"
WORKER_PYTHON = "spark.sql.execution.pyspark.python"
CHOOSE_PYTHON = f"{INSTALL} there, or set PYSPARK_PYTHON to an interpreter that has it before Spark starts"
DEFAULTS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.python.unix.domain.socket.enabled": "true",  # 4.1+; older versions ignore it
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


@dataclass(frozen=True, slots=True)
class Workers:
    """What the probe found. `parallelism`: tasks that run at once. `elastic`: executors may still be added."""

    parallelism: int
    python: str
    elastic: bool = False


_examined: weakref.WeakKeyDictionary[Any, Workers] = weakref.WeakKeyDictionary()


def is_local(spark: SparkSession) -> bool:
    """True where the workers are on this machine, as far as the session shows."""
    require_session(spark)
    if is_connect(spark):
        return bool(os.environ.get("SPARK_LOCAL_REMOTE"))  # this process started the server itself
    return str(spark.sparkContext.master).startswith("local")


def find_java() -> str:
    """Path of a Java of version 17 or newer, from JAVA_HOME or PATH; else a `RebuildError` that says what to do."""
    home = os.environ.get("JAVA_HOME")
    java = join(home, "bin", "java") if home else shutil.which("java")
    hint = f"install a Java {MINIMUM_JAVA} or newer runtime, headless is enough, or set JAVA_HOME to one"
    if java is None or not os.access(java, os.X_OK):
        got = "no java in PATH" if java is None else f"JAVA_HOME without {java}"
        raise RebuildError("Spark needs Java", expected=f"Java {MINIMUM_JAVA}+", got=got, hint=hint)
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if done.returncode or version is None:
        raise RebuildError(f"{java} does not run", expected=f"Java {MINIMUM_JAVA}+", got=done.stderr.strip(), hint=hint)
    if int(version[1]) < MINIMUM_JAVA:
        raise RebuildError("Java is too old", path=java, expected=f"{MINIMUM_JAVA}+", got=version[1], hint=hint)
    return java


def get_or_create(master: str | None = None) -> SparkSession:
    """The active session, or a new one on `master` (`local[*]`, `spark://...`, `sc://...`) with settings that suit us.

    Workers run this interpreter unless PYSPARK_PYTHON names another.
    """
    active = active_session()
    if active is not None:
        return active
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("mqindex")
    with quiet_pandas_warning():
        _require_server(master or "")
        if master is not None and master.startswith("sc://"):
            return _started(partial(builder.remote, master), master)
        find_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        for name, value in DEFAULTS.items():
            builder = builder.config(name, value)
        master = "local[*]" if master is None else master
        _require_no_remote(master)
        return _started(partial(builder.master, master), master)


def _require_server(master: str) -> None:
    """Check that a Connect server or a master listens at its address: Spark itself would retry for minutes."""
    scheme, _, rest = master.partition("://")
    if scheme not in PORTS:
        return
    said = []
    for place in rest.partition("/")[0].split(","):  # a master may have standby masters
        try:
            at = urlsplit(f"//{place}")
            host, port = at.hostname or "", at.port or PORTS[scheme]
        except ValueError:
            return  # Spark reports what is wrong with the name
        try:
            socket.create_connection((host, port), timeout=ANSWERS_WITHIN).close()
        except OSError as error:
            said.append(f"{host}:{port} ({error.strerror or error})")
        else:
            return
    server = "Spark Connect server" if scheme == "sc" else "Spark master"
    hint = f"start a {server} there, or name another --master"
    raise RebuildError(f"nobody answers at {' or '.join(said)}", hint=hint)


def _require_no_remote(master: str) -> None:
    """Spark refuses a master where its own variable names a Connect server."""
    remote = os.environ.get("SPARK_REMOTE")
    if remote is not None:
        hint = f"unset SPARK_REMOTE, or give --master {remote}" if remote.startswith("sc://") else "unset SPARK_REMOTE"
        raise RebuildError(f"SPARK_REMOTE is set to {remote}: Spark takes no master {master} besides", hint=hint)


@contextmanager
def opened(master: str, *, verbose: bool = False) -> Iterator[SparkSession]:
    """The active session, which stays open; or a new one, stopped at the end. `verbose`: with all of Spark's output."""
    active, on_interrupt = active_session(), signal.getsignal(signal.SIGINT)
    if active is None and not verbose:
        logging.getLogger().addHandler(logging.NullHandler())  # Py4J logs a traceback where it is interrupted
    with nullcontext() if verbose or active is not None else quiet_start():
        spark = active or get_or_create(master)
    if active is None and on_interrupt is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, on_interrupt)  # Spark's asks Java, perhaps in the midst of another question
    if verbose and not is_connect(spark):
        spark.sparkContext.setLogLevel("WARN")
    try:
        yield spark
    finally:
        if active is None:
            with suppress(Exception):  # Java is gone
                spark.stop()


def active_session() -> SparkSession | None:
    """The session of this thread or process; None: there is none."""
    with needing(f"the Spark engine needs pyspark: {INSTALL}", "pyspark"):
        from pyspark.sql import SparkSession
    return SparkSession.getActiveSession()


def _started(on: Callable[[], SparkSession.Builder], master: str) -> SparkSession:
    try:
        with _interrupts_later():
            return on().getOrCreate()
    except Exception as error:  # of Java, of a gateway, of Connect
        hint = "a master is local[*], spark://HOST:PORT, yarn, k8s://... or sc://HOST:PORT"
        raise RebuildError(f"Spark does not start on {master}: {cause(error)}", hint=hint) from error


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Take the first signal that interrupts when Java has started: before, it would be left behind for ever.

    Another signal, and one after Spark has put its own handler there, is taken at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Callable[[int, Any], Any]] = {}
    waiting: list[int] = []

    def later(number: int, frame: Any) -> None:
        waiting.append(number)
        if len(waiting) > 1:
            handlers[number](number, frame)

    for known in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if callable(handler := signal.getsignal(known)):
            handlers[int(known)] = handler
    for number in handlers:
        signal.signal(number, later)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if signal.getsignal(number) is later:
                signal.signal(number, handler)
        if len(waiting) == 1:
            handlers[waiting[0]](waiting[0], None)


def ensure_session(spark: SparkSession) -> Workers:
    """Check the session once: parallelism and interpreter of its workers, or a `RebuildError` of one sentence."""
    require_session(spark)
    known = _examined.get(spark)
    if known is None:
        _require_driver_packages()
        _repair_local_python(spark)
        _warn_of_slow_compression(spark)
        known = _examined[spark] = _examine(spark)
    return known


def require_session(spark: SparkSession) -> None:
    """Raise unless `spark` is a session that runs."""
    if not callable(getattr(spark, "createDataFrame", None)):
        raise TypeError(f"spark: expected a SparkSession, got {spark!r:.80}")
    context = getattr(spark, "_sc", None)  # a classic session's
    if getattr(spark, "is_stopped", False) or (context is not None and context._jsc is None):
        raise RebuildError("the Spark session was stopped", hint="get another one; nothing was published")


@contextmanager
def quiet_pandas_warning() -> Iterator[None]:
    """Spark warns of pandas 3 at each call site; nothing here goes through pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not yet fully support pandas >= 3", category=FutureWarning)
        yield


@contextmanager
def explained(spark: SparkSession) -> Iterator[None]:
    """Turns Spark's errors about Python processes that cannot start or import into one sentence."""
    try:
        yield
    except Exception as error:
        raise _explained(spark, error) from error


def cause(error: BaseException) -> str:
    """The one line of a Spark error that helps a person."""
    text = str(error)
    if isinstance(error, ConnectionError) or "Answer from Java side is empty" in text or "JVM" in type(error).__name__:
        return "its Java process is gone"
    for pattern in (
        r"(?m)^\s*(?:\w+\.)*((?:ModuleNotFound|Import|PySparkRuntime|PySparkImport)Error: .+)$",
        r"\[PYTHON_VERSION_MISMATCH\][^\n]*",
        r'Cannot run program "[^\n]*',
        r"Python worker exited unexpectedly \(crashed\)",
        r"ExecutorLostFailure \([^\n]*",
        r"(?m)^[\s:]*(?:\w+\.)*(\w+(?:Error|Exception): .+)$",
    ):
        found = re.search(pattern, text)
        if found:
            return found[found.lastindex or 0].strip()
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__


def _require_driver_packages() -> None:
    for package in ("pandas", "pyarrow"):  # mapInArrow needs both
        with needing(f"the Spark engine needs {package}: {INSTALL}", package):
            __import__(package)


def _repair_local_python(spark: SparkSession) -> None:
    """Let workers on this machine run this interpreter, not another `python3`, unless the user chose one."""
    if "PYSPARK_PYTHON" in os.environ or spark.conf.get(WORKER_PYTHON, None):
        return
    if is_connect(spark):
        if is_local(spark) and shutil.which("python3") != sys.executable:
            spark.conf.set(WORKER_PYTHON, sys.executable)
        return
    context = spark.sparkContext
    if is_local(spark) and shutil.which(context.pythonExec) != sys.executable:
        spark.conf.set(WORKER_PYTHON, sys.executable)
        context.pythonExec = sys.executable


def _warn_of_slow_compression(spark: SparkSession) -> None:
    if str(spark.conf.get("spark.sql.execution.arrow.compression.codec", "none")).lower() == "lz4":
        warnings.warn(
            "spark.sql.execution.arrow.compression.codec=lz4 is a hundred times slower than none: use none or zstd",
            RuntimeWarning,
            stacklevel=4,
        )


def _examine(spark: SparkSession) -> Workers:
    def look() -> list[Any]:
        with quiet_pandas_warning():
            # Without a number of partitions Spark takes its default parallelism, which Connect shows in no other way.
            return spark.range(1 << 16).mapInArrow(_probe(), PROBE_SCHEMA).collect()

    with explained(spark), start_job(spark, look, "mqindex: look at the workers") as job:
        job.wait(None)
        probed = job.result()
    for python, version, problem in probed:
        if problem:
            raise RebuildError(
                f"the Spark workers run {python}, which cannot import what mqindex needs: {problem}",
                hint=CHOOSE_PYTHON,
            )
        if version != __version__:
            raise RebuildError(
                f"the Spark workers run {python} with another mqindex", expected=__version__, got=version
            )
    elastic = str(spark.conf.get("spark.dynamicAllocation.enabled", "false")).lower() == "true"
    return Workers(len(probed), probed[0][0], elastic)


def _probe() -> Callable[[Iterator[Any]], Iterator[Any]]:
    # A local function travels by value: it must run where mqindex is missing.
    def probe(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib
        import sys

        import pyarrow as pa

        for _ in batches:
            pass
        version = problem = ""
        try:
            for name in ("numpy", "mqindex", "mqindex._native.keys"):
                module = importlib.import_module(name)
                version = module.__version__ if name == "mqindex" else version
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        values = [sys.executable or "python", version, problem]
        yield pa.record_batch([pa.array([value], pa.string()) for value in values], ["python", "version", "problem"])

    return probe


def _explained(spark: SparkSession, error: BaseException) -> RebuildError:
    text, reason = str(error), cause(error)
    python = _worker_python(spark)
    workers = f"the Spark workers run {python}" if python else "the workers of the Spark server run their own Python"
    ours = "as this process does" if python == sys.executable else f"this process runs {sys.executable}"
    if "PYTHON_VERSION_MISMATCH" in text:
        what = f"{workers}, {ours}: their minor versions differ"
    elif "Cannot run program" in text:
        what = f"the Spark workers cannot start {python or 'their Python'}: {reason}"
    elif "ModuleNotFoundError" in text or "ImportError" in text or "PACKAGE_NOT_INSTALLED" in text:
        what = f"{workers}, {ours}: {reason}"
    else:
        return RebuildError(f"Spark cannot run a task: {reason}")
    return RebuildError(what, hint=CHOOSE_PYTHON)


def _worker_python(spark: SparkSession) -> str | None:
    """What the workers run; None: a server elsewhere decides, by the PYSPARK_PYTHON of its own environment."""
    chosen: str | None = spark.conf.get(WORKER_PYTHON, None)
    if chosen or (is_connect(spark) and not is_local(spark)):
        return chosen
    return os.environ.get("PYSPARK_PYTHON") or ("python3" if is_connect(spark) else spark.sparkContext.pythonExec)
