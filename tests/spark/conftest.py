"""One Spark session for all tests of this directory: classic, or Connect where MQINDEX_TEST_CONNECT is set."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import spark_daemon
from tests.support.golden import case
from tests.support.spark_cluster import isolated_cluster, spark_environment

__all__ = ["isolated_cluster"]  # a fixture
CONNECT = bool(os.environ.get("MQINDEX_TEST_CONNECT"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    from mqindex.spark.session import get_or_create

    os.environ.update(spark_environment())
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("SPARK_SUBMIT_OPTS", spark_daemon.OPTION, prepend=" ")
        session = SparkSession.builder.remote("local[2]").getOrCreate() if CONNECT else get_or_create("local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def registered(spark: Any) -> Any:
    """The session, with the data sources and functions of the package."""
    from mqindex.spark import register

    register(spark)
    return spark


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store `basic-493`, to be read only: repeated and colliding keys, keys outside ASCII, four index files."""
    return case("basic-493").unpack(tmp_path_factory.mktemp("golden"))
