"""A power cut that left a hole in the log: a later file reached the disk, the end of the one before did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.rocketmq import MessageStore, NewMessage, verify

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
