"""Kafka's partitions on real servers: rebuilt from there byte for byte, verified and read as here."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.errors import OutputExistsError
from mqindex.kafka import PartitionLog, rebuild, verify
from tests.golden.test_kafka_elsewhere import answers, said, written_now
from tests.golden.test_kafka_rebuild import index_files, options
from tests.peer.places.servers import Server
from tests.support.golden_kafka import PartitionCase
from tests.support.nightly import some


@pytest.mark.parametrize("name", some(["282-magic1-codecs", "410-txn"], lambda name: name == "410-txn"))
def test_a_partition_is_rebuilt_verified_and_read(server: Server, name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = written_now(case.closed(tmp_path))
    url = server.upload(directory.parent, f"kafka/{name}")
    partition, there = f"{url}/{directory.name}", {**options(case), "storage_options": server.options}
    rebuild(directory, tmp_path / "here", **options(case))
    rebuild(partition, tmp_path / "there", **there)
    assert index_files(tmp_path / "there") == index_files(tmp_path / "here")
    out = f"results/kafka/{name}"
    rebuild(partition, f"{server.url}/{out}", **there)
    made = server.files(out)
    assert ("mqindex.json" in made) == url.startswith("s3")
    made.pop("mqindex.json", None)
    assert made == index_files(tmp_path / "here")
    if url.startswith("s3"):
        with pytest.raises(OutputExistsError, match="nothing is overwritten in an object store"):
            rebuild(partition, f"{server.url}/{out}", overwrite=True, **there)
    else:
        report = rebuild(directory, f"{server.url}/{out}", overwrite=True, **there)
        assert report.backup is not None and report.backup.startswith(f"{server.url}/{out}.backup-")
        assert server.files(out) == made
    found = verify(partition, deep=True, **there)
    assert said(found, url) == said(verify(directory, deep=True, **options(case)), directory.parent)
    with (
        PartitionLog.open(directory) as here,
        PartitionLog.open(partition, storage_options=server.options) as elsewhere,
    ):
        assert answers(elsewhere) == answers(here)
