"""Servers, one of each for all tests of this directory; where both are asked, each module has a room there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.peer.maven import PeerError
from tests.peer.places.servers import S3, Hdfs, Server
from tests.support.nightly import some
from tests.support.spark_cluster import isolated_cluster

__all__ = ["isolated_cluster"]  # a fixture

KINDS = [S3, Hdfs]

# For a test that asks no more of HDFS than others do.
of_s3 = pytest.mark.parametrize("server", some(KINDS, lambda kind: kind is S3), ids=["s3", "hdfs"], indirect=True)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[type[Server]], Server]]:
    """The server of a kind, which starts when it is asked for first."""
    started: dict[type[Server], Server] = {}

    def one(kind: type[Server]) -> Server:
        if kind not in started:
            try:
                started[kind] = kind(tmp_path_factory.mktemp("server"))
            except PeerError as error:
                pytest.fail(str(error), pytrace=False)
        return started[kind]

    yield one
    for server in started.values():
        server.close()


@pytest.fixture(scope="module", params=KINDS, ids=["s3", "hdfs"])
def server(request: pytest.FixtureRequest, running: Callable[[type[Server]], Server]) -> Server:
    return running(request.param).room(request.module.__name__.rpartition(".")[2])


@pytest.fixture(scope="module")
def s3(running: Callable[[type[Server]], Server]) -> Server:
    return running(S3)
