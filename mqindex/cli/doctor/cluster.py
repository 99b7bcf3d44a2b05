"""What Spark needs beside its package: Java, the workers' Python, and a C library that it recognises."""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Iterator

from mqindex import __version__
from mqindex.cli.doctor.line import Line
from mqindex.errors import RebuildError

MUSL = "/lib/ld-musl-x86_64.so.1"  # where Spark's snappy looks (snappy-java 1.1.10, OSInfo.isX64Musl)
ANSWERS_WITHIN = 30  # seconds


def spark() -> Iterator[Line]:
    """The lines about Spark; none if PySpark is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        return
    yield _java()
    yield _workers()
    if os.path.exists(MUSL) and platform.libc_ver()[0] == "glibc":
        yield Line(
            "limited",
            "Spark's snappy",
            f"{MUSL} is on a system of glibc",
            "Spark takes the system for Alpine and loads the wrong library: Parquet files with snappy, its default, "
            "will not work; remove the package musl, or set spark.sql.parquet.compression.codec=zstd",
        )


def _java() -> Line:
    from mqindex.spark.session import find_java

    try:
        java = find_java()
    except RebuildError as error:
        return Line("limited", "Java", f"{error.got or 'none'}", f"`--engine spark` will not work: {error.hint}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=ANSWERS_WITHIN)
    return Line("works", "Java", f"{(said.stderr or said.stdout).partition(chr(10))[0]}, {java}")


def _workers() -> Line:
    """PYSPARK_PYTHON, where it is set, is what the workers of this machine run."""
    named = os.environ.get("PYSPARK_PYTHON")
    if not named:
        return Line("works", "Spark's workers", f"this Python, {sys.executable}")
    program = "import sys, mqindex; print('%d.%d' % sys.version_info[:2], mqindex.__version__)"
    expected = "{}.{}".format(*sys.version_info[:2]) + f" {__version__}"
    advice = "tasks will fail: set PYSPARK_PYTHON to a Python of the same version that has the same mqindex"
    try:
        done = subprocess.run(
            [named, "-c", program], capture_output=True, text=True, check=False, timeout=ANSWERS_WITHIN
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Line("limited", "Spark's workers", f"PYSPARK_PYTHON={named}: {error}", advice)
    if done.stdout.strip() != expected:
        got = done.stdout.strip() or (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        found = f"PYSPARK_PYTHON={named}: expected Python and mqindex {expected}, got {got}"
        return Line("limited", "Spark's workers", found, advice)
    return Line("works", "Spark's workers", f"PYSPARK_PYTHON={named}")
