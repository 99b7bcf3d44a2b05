"""What a broker.conf says is what a writer's repair after a kill goes by: it is read once, and travels as options."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqindex.rocketmq import MessageStore, NewMessage, rebuild
from tests.support.small_store import OPTIONS, make_small_store
from tests.unit import test_batch_queues as batches


@pytest.mark.parametrize("line", ["", "storeType=default \n", "mappedFileSizeTimerLog=0x10\n"])
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.filterwarnings("ignore:mappedFileSizeTimerLog")
def test_a_store_opens_after_a_kill_with_the_configuration_that_it_had(tmp_path: Path, line: str, killed: bool) -> None:
    """A text with a blank behind it, which a broker before 5.2 keeps, was refused: "give what the broker has"."""
    store, conf = make_small_store(tmp_path / "store"), tmp_path / "broker.conf"
    length = next((store / "commitlog").iterdir()).stat().st_size
    conf.write_text(
        f"brokerName=a\nmaxHashSlotNum=5\nmaxIndexNum=16\nmappedFileSizeConsumeQueue=240\n"
        f"mappedFileSizeCommitLog={length}\n{line}"
    )
    if killed:
        (store / "abort").touch()
    with MessageStore.open(store, writable=True, config=conf, broker_version="4.9.3") as writer:
        assert writer.put_message(NewMessage("T", b"new", queue_id=0, keys="new")).phy_offset > 0


def test_a_broker_conf_without_the_length_of_batch_queues_is_complete_after_a_kill(tmp_path: Path) -> None:
    """It was asked for: "give --broker-conf", which was given."""
    store, conf = tmp_path / "store", tmp_path / "broker.conf"
    batches.make_store(store, batches.mixed())
    length = next((store / "commitlog").iterdir()).stat().st_size
    conf.write_text(
        "brokerName=a\nmaxHashSlotNum=5\nmaxIndexNum=64\nmappedFileSizeConsumeQueue=400\n"
        f"mappedFileSizeCommitLog={length}\n"
    )
    rebuild(store, tmp_path / "out", config=conf, broker_version="5.3.0")
    for part in ("index", "consumequeue", "batchconsumequeue"):
        shutil.rmtree(store / part, ignore_errors=True)
        if part != "batchconsumequeue":
            shutil.copytree(tmp_path / "out" / part, store / part)
    (store / "abort").touch()
    MessageStore.open(store, writable=True, config=conf, broker_version="5.3.0").close()
    assert sorted(path.name for path in (store / "batchconsumequeue").iterdir()) == ["Batched"]


@pytest.mark.parametrize("before", ["4.9.3", "5.5.0"])
@pytest.mark.parametrize("now", ["5.3.0", "5.5.0"])
def test_a_store_opens_after_its_broker_was_exchanged(before: str, now: str, tmp_path: Path) -> None:
    """The last message had to have an entry of its TAGS where the new broker makes one, and none where it does not."""
    store = make_small_store(tmp_path / "store")
    shutil.rmtree(store / "index")
    rebuild(store, tmp_path / "out", parts=["index"], **{**OPTIONS, "broker_version": before})
    shutil.copytree(tmp_path / "out" / "index", store / "index")
    config = {"mappedFileSizeConsumeQueue": 240}
    with MessageStore.open(store, writable=True, config=config, **{**OPTIONS, "broker_version": now}) as writer:
        writer.put_message(NewMessage("Topic0", b"new", keys="new"))
        assert len(writer.query_message("Topic0", "new").messages) == 1
