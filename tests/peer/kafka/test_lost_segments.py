"""Files of a log that are gone: where a broker that starts goes on, and what it deletes, is as `verify` says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mqindex.kafka import PartitionLog, verify
from tests.peer.kafka.broker import Broker
from tests.peer.kafka.conftest import on_the_newer
from tests.peer.kafka.test_damaged_log import HOW, fill
from tests.peer.maven import PeerError, class_path

pytestmark = on_the_newer

FILLED, FRESH = "filled", "fresh"


@pytest.fixture
def stopped(version: str, tmp_path: Path) -> Iterator[Broker]:
    """A broker that was stopped, with a topic of 200 records and one of none."""
    broker = None
    try:
        class_path("kafka", version)
        broker = Broker(version, tmp_path / "broker")
        broker.launch()
        broker.client.wait_until_ready()
        broker.wait_until_ready()
        fill(broker, FILLED)
        broker.client.create_topic(FRESH, HOW.settings(version))
        broker.stop()
        yield broker
    except PeerError as error:
        pytest.fail(str(error), pytrace=False)
    finally:
        if broker is not None:
            broker.close()


def test_a_broker_goes_on_where_verify_says(stopped: Broker, proven: Callable[[str], None]) -> None:
    filled, fresh = map(stopped.partition, (FILLED, FRESH))
    lost = max(filled.glob("*.log"))
    lost.write_bytes(b"")
    for path in fresh.iterdir():
        path.unlink()
    report = verify(stopped.log_dir, index_interval_bytes=500, kafka_version=stopped.version)
    hints = {one.kind: str(one.hint) for one in report.findings}
    assert f"goes on at offset {int(lost.stem)}" in hints["log-lost"]
    assert "makes an empty segment of offset 0" in hints["no-segment"]
    assert report.start is not None
    (snapshot,) = report.start.deletes
    assert (report.start.starts, Path(snapshot).exists()) == (True, True)
    stopped.launch()
    stopped.wait_until_ready((FILLED, FRESH))
    stopped.stop()
    assert not Path(snapshot).exists()
    for partition, expected in ((filled, int(lost.stem)), (fresh, 0)):
        with PartitionLog.open(partition) as log:
            assert log.log_end_offset == expected
    assert [path.name for path in fresh.glob("*.log")] == [f"{0:020d}.log"]
    proven(
        "a log without its last records, or without a segment, goes on where verify says; a later snapshot is deleted"
    )
