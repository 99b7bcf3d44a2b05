"""Workers that share no file look up in index files on a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mqindex.rocketmq import IndexService
from tests.peer.places.conftest import of_s3
from tests.peer.places.servers import Server
from tests.support.spark_cluster import WORKERS, IsolatedCluster
from tests.unit.test_remote_index import ENTRIES, KEYS, SLOTS, make

GIVEN = {"hash_slot_num": SLOTS, "index_num": ENTRIES}


def answers(index: str | Path, **options: Any) -> list[list[int]]:
    with IndexService.open(index, **GIVEN, **options) as service:
        return service.query_offsets("T", KEYS).to_pylist()


def answers_there(url: str, options: dict[str, Any]) -> list[list[int]]:
    return answers(url, storage_options=options)


@of_s3
def test_each_worker_answers_as_the_files_here(
    server: Server, isolated_cluster: IsolatedCluster, tmp_path: Path
) -> None:
    index = make(tmp_path / "store")
    url = f"{server.upload(index.parent, 'isolated')}/index"
    expected = answers(index)
    assert isolated_cluster.on_each(answers_there, url, server.options) == dict.fromkeys(WORKERS, expected)
