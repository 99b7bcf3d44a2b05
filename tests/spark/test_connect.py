"""The same tests on Spark Connect, in a process of their own: classic sessions and Connect do not mix in one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.spark.conftest import CONNECT
from tests.support.nightly import NIGHTLY
from tests.support.spark_cluster import ROOT, spark_environment

# By what reaches a server differently: an engine's stages, functions, sources, streams, and frames that become files.
SAMPLE = ["test_engine.py", "test_functions.py", "test_sources.py", "test_stream.py", "test_build.py"]
SAMPLE += [f"test_chosen_{rows}.py::test_options_of_a_load_and_the_columns_of_it" for rows in ("messages", "records")]
OTHERS = [
    "test_pipeline.py",
    "test_queue_source.py",
    "test_partitions.py",
    "test_kafka_functions.py",
    "test_kafka_sources.py",
]
LONG_ONES = [
    "test_interrupt",
    "test_progress",
    "test_rebuilt_files",
    "test_dead_worker",
    "many_queries",
    "filters_become",
    "whatever_the_order",
    "files_that_come_later",
    "units_are_those",
    "two_limits",
    "as_large_as",
    "begins_where",
    "gap_of_any",
    "was_cut",
    "options_that_make",
    "running_query",
    "are_replaced",
    "batches_are_those",
    "limit_records",
    "one_log_is",
    "one_partition_and",
    "tail_of_zeros",
]
BUT_THESE = ["basic-493", "5000"]


@pytest.mark.skipif(CONNECT, reason="this is that process")
def test_everything_works_on_spark_connect() -> None:
    files = SAMPLE + (OTHERS if NIGHTLY else [])
    chosen = " and ".join(f"not {word}" for word in LONG_ONES) + " or " + " or ".join(BUT_THESE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", chosen, *(f"tests/spark/{name}" for name in files)],
        cwd=ROOT,
        env={**os.environ, **spark_environment(), "MQINDEX_TEST_CONNECT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-3000:]
    assert " passed" in done.stdout
