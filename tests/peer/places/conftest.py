"""Servers, one of each for a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peer.maven import PeerError
from tests.peer.places.servers import S3, Hdfs, Server
from tests.support.spark_cluster import isolated_cluster

__all__ = ["isolated_cluster"]  # a fixture


def started(kind: type[Server], home: Path) -> Iterator[Server]:
    try:
        server = kind(home)
    except PeerError as error:
        pytest.fail(str(error), pytrace=False)
    yield server
    server.close()


@pytest.fixture(scope="module", params=[S3, Hdfs], ids=["s3", "hdfs"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from started(request.param, tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from started(S3, tmp_path_factory.mktemp("server"))
