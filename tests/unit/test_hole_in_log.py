"""A power cut that left a hole in the log: a later file reached the disk, the end of the one before did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.rocketmq import ConsumeQueue, MessageStore, NewMessage, repair, verify
from mqindex.rocketmq.queue.queue_units import BLANK

CONFIG = {"maxHashSlotNum": 5, "maxIndexNum": 64, "mappedFileSizeCommitLog": 4096, "mappedFileSizeConsumeQueue": 400}
UNIT = 20  # bytes


def store_with_hole(root: Path, *, cut: int, dispatched: int) -> list[int]:
    """Its first log file ends at message `cut`; each queue has its first `dispatched` units. Returns phy offsets."""
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        at = [
            store.put_message(NewMessage("T", b"x" * 200, queue_id=n % 2, keys=f"k{n}")).phy_offset for n in range(24)
        ]
    (root / "abort").touch()
    log = root / "commitlog" / f"{0:020d}"
    log.write_bytes(log.read_bytes()[: at[cut]].ljust(4096, b"\0"))
    for queue in root.glob("consumequeue/T/*/*"):
        data = queue.read_bytes()
        queue.write_bytes(data[: dispatched * UNIT].ljust(len(data), b"\0"))
    return at


@pytest.mark.parametrize("cut", [1, 2, 7, 10, 12])
@pytest.mark.parametrize("dispatched", [0, 1, 5, 12])
def test_the_log_is_cut_at_the_hole_before_queues_and_index_are_mended(
    cut: int, dispatched: int, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    at = store_with_hole(root, cut=cut, dispatched=dispatched)
    before = verify(root, config=CONFIG)
    assert not before.ok, "an opening for writing deletes messages, and a verify before says so"
    assert "log-cut-at-next-start" in {one.kind for one in before.findings}
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        assert store.put_message(NewMessage("T", b"new", queue_id=0, keys="new")).phy_offset == at[cut]
    after = verify(root, deep=True, config=CONFIG)
    assert after.ok, after.findings
    assert after.messages == cut + 1


@pytest.mark.parametrize("dispatched", [0, 1, 3])
def test_a_repair_writes_no_units_of_messages_that_the_next_start_deletes(dispatched: int, tmp_path: Path) -> None:
    # Blanks would be before them, and last in the queue after the cut: 4.9.3 then gives no queue any message.
    root = tmp_path / "store"
    store_with_hole(root, cut=7, dispatched=dispatched)
    assert not repair(root, config=CONFIG).ok
    for queue_id, units in enumerate((4, 3)):
        with ConsumeQueue.open(root / f"consumequeue/T/{queue_id}") as queue:
            assert (queue.max_offset_in_queue, queue.max_phy_offset < 2**31 - 1) == (units, True)


def test_a_repair_writes_them_where_no_start_deletes_them(tmp_path: Path) -> None:
    store_with_hole(tmp_path / "store", cut=7, dispatched=1)
    config = {**CONFIG, "commitLogRecoverMaxNum": 1}
    repair(tmp_path / "store", config=config, broker_version="5.5.1")
    assert all(BLANK in file.read_bytes() for file in tmp_path.glob("store/consumequeue/T/*/*"))
