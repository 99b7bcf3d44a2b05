"""A store in trouble: what verify says and repair does, and at the end a broker that starts and answers everything."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mqindex.errors import MQIndexError
from mqindex.report import Start
from mqindex.rocketmq import Checkpoint, IndexService, repair, verify
from tests.peer.maven import PeerError
from tests.peer.rocketmq.conftest import Written, on_the_newer, on_the_older
from tests.peer.rocketmq.workload import TOPICS, Answers, ask_everything
from tests.support.tree import contents


def found(answers: Answers) -> dict[tuple[str, str], set[int]]:
    """By key and unique key. After an unclean end a broker has the last message twice in its index."""
    return {key: set(offsets) for key, offsets in (answers.by_key | answers.by_unique_key).items()}


class Trouble:
    """A store in trouble, of a broker that was stopped before, and what is asked of it."""

    def __init__(self, stopped: Written) -> None:
        self.stopped = stopped
        self.broker = stopped.broker

    def require_all_answers(self) -> None:
        """It starts, and answers as it did."""
        self.broker.launch()
        try:
            self.broker.wait_until_ready(TOPICS)
            after = ask_everything(self.broker, self.stopped.sent, [0])
            self.broker.stop()
        finally:
            self.broker.kill()
        before = self.stopped.answers
        after = after.until(max(message.phy_offset + message.size for message in before.messages))
        assert (after.queues, after.by_tag) == (before.queues, before.by_tag)
        assert found(after) == found(before)

    def start(self) -> Start:
        """What verify says of the next start."""
        report = verify(self.broker.store, config=self.broker.conf, broker_version=self.broker.version)
        assert report.start is not None
        return report.start

    def is_clean(self) -> bool:
        return verify(self.broker.store, config=self.broker.conf, broker_version=self.broker.version).ok

    def entries(self) -> int:
        with IndexService.open(self.broker.store / "index") as index:
            return sum(len(file.entries()["phy_offset"]) for file in index)


@pytest.fixture
def trouble(stopped: Written) -> Trouble:
    return Trouble(stopped)


@on_the_older
def test_the_volume_of_the_log_was_not_mounted(trouble: Trouble, proven: Callable[[str], None]) -> None:
    store = trouble.broker.store
    log, elsewhere = store / "commitlog", store.parent / "volume"
    log.rename(elsewhere)
    log.mkdir()
    before = contents(store)
    assert not trouble.is_clean()
    with pytest.raises(MQIndexError, match="mounted"):
        repair(store, config=trouble.broker.conf, broker_version=trouble.broker.version)
    assert contents(store) == before
    log.rmdir()
    elsewhere.rename(log)
    assert trouble.is_clean()
    trouble.require_all_answers()
    proven("commit log not mounted: repair refuses and changes nothing; mounted again, every answer as before")


@on_the_newer
def test_an_unclean_end_and_an_old_checkpoint(trouble: Trouble, proven: Callable[[str], None]) -> None:
    store, entries = trouble.broker.store, trouble.entries()
    checkpoint = Checkpoint.read(store / "checkpoint")
    assert checkpoint is not None
    last = max(message.store_timestamp for message in trouble.stopped.answers.messages)
    late = last + 10_000  # as after a life without new messages: the log is read again from its last file on
    old = checkpoint._replace(
        physic_msg_timestamp=late, logics_msg_timestamp=late, index_msg_timestamp=1, logics_physical_offset=0
    )
    (store / "checkpoint").write_bytes(old.to_bytes())
    (store / "abort").touch()
    start = trouble.start()
    assert start.entries_deleted == entries
    assert 0 < (start.entries_lost or 0) <= entries
    assert not trouble.is_clean()
    assert repair(store, config=trouble.broker.conf, broker_version=trouble.broker.version).ok
    assert trouble.is_clean()
    assert trouble.start().entries_deleted == 0
    trouble.require_all_answers()
    assert trouble.entries() >= entries
    proven(
        f"abort and an old checkpoint: verify tells that {start.entries_deleted} entries go and {start.entries_lost} "
        "do not come back; repaired, a broker keeps them all"
    )


def test_a_lost_and_found_among_the_files_of_the_log(trouble: Trouble, proven: Callable[[str], None]) -> None:
    stray = trouble.broker.store / "commitlog" / "lost+found"
    stray.mkdir()
    starts = trouble.start().starts
    assert starts is (trouble.broker.version > "5")
    if not starts:
        assert not trouble.is_clean()
        trouble.broker.launch()
        with pytest.raises(PeerError, match="did not start"):
            trouble.broker.wait_until_ready()
        trouble.broker.kill()
        stray.rmdir()
        assert trouble.start().starts
    trouble.require_all_answers()
    proven("lost+found in commitlog/: " + ("it starts" if starts else "it does not start; after moving it, it does"))
