"""`MessageStore` for writing: queue offsets, delays, further queues, transactions; its lock, its marks, its threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mqindex.errors import CapacityError, StoreInUseError
from mqindex.rocketmq import Checkpoint, Message, MessageStore, NewMessage, verify
from mqindex.rocketmq.settings import MESSAGE_DELAY_LEVEL
from tests.support.queued_store import make_queued_store, tagged

CONFIG: dict[str, Any] = {
    "maxHashSlotNum": 50,
    "maxIndexNum": 200,
    "mappedFileSizeCommitLog": 16384,
    "mappedFileSizeConsumeQueue": 1000,
    "enableMultiDispatch": True,
    "enableLmq": True,
}
PREPARED, COMMIT, ROLLBACK = 0x4, 0x8, 0xC


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def writing(root: Path, **more: Any) -> MessageStore:
    return MessageStore.open(root, config={**CONFIG, **more}, writable=True)


def whole(opened: MessageStore, topic: str, queue_id: int) -> list[Message]:
    found, offset = [], 0
    while (answer := opened.get_message(topic, queue_id, offset)).status == "FOUND":
        found += answer.messages
        offset = answer.next_begin_offset
    return found


def test_each_queue_counts_its_messages_and_goes_on_after_a_restart(root: Path) -> None:
    for run in range(3):
        with writing(root) as opened:
            for n in range(20):
                result = opened.put_message(NewMessage("T", b"%d" % n, queue_id=n % 3, keys=f"r{run}-{n}"))
                assert result.queue_offset == run * len(range(n % 3, 20, 3)) + n // 3
                assert opened.view_message(result.msg_id) == opened.look_message_by_offset(result.phy_offset)
        with MessageStore.open(root) as opened:
            assert [len(whole(opened, "T", q)) for q in range(3)] == [7 * run + 7, 7 * run + 7, 6 * run + 6]
            (found,) = opened.query_message("T", f"r{run}-13", exact=True).messages
            assert found.body == b"13"
        assert verify(root, config=CONFIG, deep=True).ok


def test_what_was_put_is_read_at_once(root: Path) -> None:
    with writing(root) as opened:
        result = opened.put_message(NewMessage("T", b"hello", tags="TagA", keys="k1 k2", uniq_key="U"))
        for key in ("k1", "k2", "U"):
            assert [m.phy_offset for m in opened.query_message("T", key).messages] == [result.phy_offset]
        assert opened.get_message("T", 0, 0, tags="TagA").messages[0].body == b"hello"
        assert opened.get_messages("T", 0, 0, max_msg_nums=9, tags="TagB").status == "NO_MATCHED_MESSAGE"
        assert opened.queues == [("T", 0)]


def test_many_messages_are_those_put_one_by_one(root: Path, tmp_path: Path) -> None:
    messages = [
        NewMessage(f"T{n % 2}", bytes(n), queue_id=n % 3, tags="TagA" if n % 2 else None, keys=f"k{n}",
                   born_timestamp=5, store_timestamp=1_700_000_000_000 + n) for n in range(90)
    ]  # fmt: skip
    with writing(root) as opened:
        one = [opened.put_message(message) for message in messages]
    with writing(tmp_path / "many") as opened:
        many = opened.put_messages(messages)
    columns: dict[str, Any] = {
        name: [getattr(message, name) for message in messages]
        for name in ("topic", "body", "queue_id", "tags", "keys", "born_timestamp", "store_timestamp")
    }
    with writing(tmp_path / "columns") as opened:
        in_columns = opened.put_messages(columns)
    for result in (many, in_columns):
        assert result.phy_offsets.tolist() == [each.phy_offset for each in one]
        assert result.sizes.tolist() == [each.size for each in one]
        assert result.queue_offsets.tolist() == [each.queue_offset for each in one]
    assert files(root) == files(tmp_path / "many") == files(tmp_path / "columns")


def test_a_batch_of_one_producer_stays_in_one_file(root: Path) -> None:
    with writing(root) as opened:
        opened.put_message(NewMessage("T", bytes(16000)))
        batch = opened.put_messages({"topic": "T", "body": [bytes(100)] * 5}, whole=True)
        assert batch.phy_offsets[0] == 16384
        assert batch.queue_offsets.tolist() == [1, 2, 3, 4, 5]


def test_a_delayed_message_waits_where_its_level_does(root: Path) -> None:
    levels = MESSAGE_DELAY_LEVEL.parsed("1s 5s 10s")
    with writing(root, messageDelayLevel="1s 5s 10s") as opened:
        for level, given in ((2, "2"), (3, "9")):
            block = f"A\x01b\x02DELAY\x01{given}".encode()
            for properties in ({"A": "b", "DELAY": given}, block):
                opened.put_message(NewMessage("T", queue_id=4, tags="x", properties=properties))
            opened.put_messages({"topic": "T", "body": [b"1"], "queue_id": 4, "properties": [block]})
            messages = whole(opened, "SCHEDULE_TOPIC_XXXX", level - 1)
            assert [m.queue_offset for m in messages] == [0, 1, 2]
            assert [m.properties for m in messages][:2] == [
                {"A": "b", "DELAY": str(level), "REAL_TOPIC": "T", "REAL_QID": "4", "TAGS": "x"}
            ] * 2
            queue = opened.consume_queue("SCHEDULE_TOPIC_XXXX", level - 1)
            assert queue is not None
            due = [m.store_timestamp + levels[level - 1] for m in messages]
            assert queue.units()["tags_code"].tolist() == due
        assert opened.get_message("T", 4, 0).status == "NO_MESSAGE_IN_QUEUE"
        assert opened.put_message(NewMessage("T", properties={"DELAY": "0"})).queue_offset == 0
        with pytest.raises(ValueError, match="DELAY: expected a whole number, got 'soon'"):
            opened.put_message(NewMessage("T", properties={"DELAY": "soon"}))


def test_prepared_and_rolled_back_messages_are_in_no_queue(root: Path) -> None:
    with writing(root) as opened:
        results = [opened.put_message(NewMessage("T", sys_flag=flag, keys=f"f{flag}")) for flag in (0, 4, 8, 12, 0)]
        assert [result.queue_offset for result in results] == [0, 0, 1, 0, 2]
        batch = opened.put_messages({"topic": "T", "body": [b"x"] * 4, "sys_flag": [4, 0, 12, 8]})
        assert batch.queue_offsets.tolist() == [0, 3, 0, 4]
        assert [m.sys_flag for m in whole(opened, "T", 0)] == [0, COMMIT, 0, 0, COMMIT]
        assert [len(opened.query_message("T", f"f{flag}").messages) for flag in (PREPARED, ROLLBACK)] == [1, 0]
        delayed = opened.put_message(NewMessage("T", sys_flag=PREPARED, properties={"DELAY": "1"}))
        assert opened.look_message_by_offset(delayed.phy_offset).topic == "T"  # type: ignore[union-attr]


def test_further_queues_get_their_own_offsets(root: Path) -> None:
    with writing(root) as opened:
        for names in ("%LMQ%a,%LMQ%b", "%LMQ%b", "%LMQ%b,plain", " "):
            opened.put_message(NewMessage("T", queue_id=2, properties={"INNER_MULTI_DISPATCH": names, "WAIT": "true"}))
        stored = [message.properties for message in whole(opened, "T", 2)]
        assert [p.get("INNER_MULTI_QUEUE_OFFSET") for p in stored] == ["0,0", "1", "2,0", None]
        assert ["WAIT" in p for p in stored] == [False, False, False, True]
        assert [len(whole(opened, *queue)) for queue in (("%LMQ%a", 0), ("%LMQ%b", 0), ("plain", 2))] == [1, 3, 1]
        with pytest.raises(ValueError, match="path separator"):
            opened.put_message(NewMessage("T", properties={"INNER_MULTI_DISPATCH": "%LMQ%x,../../lock"}))
    assert verify(root, config=CONFIG, deep=True).ok


def test_further_queues_are_for_brokers_that_have_them_switched_on(root: Path) -> None:
    with writing(root, enableMultiDispatch=False) as opened:
        opened.put_message(NewMessage("T", properties={"INNER_MULTI_DISPATCH": "%LMQ%a"}))
        assert opened.queues == [("T", 0)]


@pytest.mark.parametrize(
    ("version", "numbered"), [("5.1.0", [0, 1, 2, 3]), ("5.1.1", [1, 2, 3]), ("5.1.3", [2, 3]), ("5.2.0", [3])]
)
def test_topics_of_the_system_have_no_further_queues_from_some_brokers_on(
    root: Path, version: str, numbered: list[int]
) -> None:
    with MessageStore.open(root, config=CONFIG, broker_version=version, writable=True) as opened:
        for number, topic in enumerate(("%RETRY%g", "rmq_sys_wheel_timer", "rmq_sys_x", "SCHEDULE_TOPIC_XXXX_2")):
            opened.put_message(NewMessage(topic, properties={"INNER_MULTI_DISPATCH": f"%LMQ%{number}"}))
        assert sorted(topic for topic, _ in opened.queues if topic < "A") == ["%LMQ%" + str(n) for n in numbered] + [
            "%RETRY%g"
        ]


@pytest.mark.parametrize("topic", ["../up", "a/b", "", "t" * 300, "nul\0"])
def test_a_topic_that_is_no_name_is_refused_and_nothing_is_written(root: Path, topic: str) -> None:
    with writing(root) as opened:
        with pytest.raises((ValueError, CapacityError)):
            opened.put_message(NewMessage(topic))
        with pytest.raises((ValueError, CapacityError)):
            opened.put_messages({"topic": topic, "body": [b""]})
        assert opened.put_message(NewMessage("T")).phy_offset == 0


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"topic": None}, "topic: expected str, got NoneType"),
        ({"body": "text"}, "body: expected bytes, got str"),
        ({"body": 5}, "body: expected bytes, got int"),
        ({"keys": ["a", "b"]}, "keys: expected str, got list"),
        ({"tags": b"TagA"}, "tags: expected str, got bytes"),
        ({"queue_id": "0"}, "queue_id: expected a whole number, got '0'"),
    ],
)
def test_what_is_of_another_type_is_named(values: dict[str, Any], named: str) -> None:
    with pytest.raises(TypeError, match=named):
        NewMessage(**{"topic": "T", **values})


def test_a_message_that_is_refused_takes_no_offset(root: Path) -> None:
    with writing(root, maxMessageSize=1000) as opened:
        with pytest.raises(CapacityError):
            opened.put_message(NewMessage("T", bytes(2000)))
        with pytest.raises(CapacityError):
            opened.put_messages([NewMessage("T"), NewMessage("T", bytes(2000))])
        assert opened.put_message(NewMessage("T")).queue_offset == 0


def test_the_checkpoint_has_the_offset_at_which_a_5_5_broker_begins(root: Path) -> None:
    """It kept 0, or what a broker had written: an offset behind the end of a log that had been cut."""
    with writing(root) as opened:
        opened.put_message(NewMessage("T"))
        last = opened.put_message(NewMessage("T"))
        opened.flush()
        assert opened.checkpoint is not None
        assert opened.checkpoint.logics_physical_offset == last.phy_offset > 0


def test_marks_of_a_running_broker_stand_while_it_is_open(root: Path) -> None:
    with writing(root) as opened:
        assert (root / "abort").read_bytes() == b""
        assert (root / "lock").read_bytes() == b"lock"
        opened.put_message(NewMessage("T", store_timestamp=77))
        opened.flush()
        assert opened.checkpoint == Checkpoint(77, 77, 0)
    assert sorted(path.name for path in root.iterdir()) == ["checkpoint", "commitlog", "consumequeue", "index", "lock"]


def test_an_open_that_is_refused_leaves_no_mark(root: Path) -> None:
    with writing(root) as opened:
        opened.put_message(NewMessage("T", keys="k"))
    before = files(root)
    with pytest.raises(ValueError, match=r"hash_slot_num|geometry|fits"):
        MessageStore.open(root, hash_slot_num=3, index_num=1, writable=True)
    assert files(root) == before


def test_a_second_writer_is_refused_and_readers_are_not(root: Path) -> None:
    program = (
        "from mqindex.rocketmq import MessageStore\n"
        f"MessageStore.open({str(root)!r}, config={CONFIG!r}, writable=True).close()"
    )
    with writing(root) as opened:
        opened.put_message(NewMessage("T", b"1"))
        with pytest.raises(StoreInUseError):
            MessageStore.open(root, writable=True)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert "StoreInUseError" in done.stderr
        opened.reput()
        with MessageStore.open(root) as reading:
            assert reading.get_message("T", 0, 0).messages[0].body == b"1"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_store_that_was_killed_is_made_right_when_it_is_opened(root: Path) -> None:
    program = (
        "import os\nfrom mqindex.rocketmq import MessageStore, NewMessage\n"
        f"opened = MessageStore.open({str(root)!r}, config={CONFIG!r}, writable=True)\n"
        "for n in range(200):\n"
        "    opened.put_message(NewMessage('T', b'x', keys=f'k{n}'))\n"
        "    n % 50 or opened.reput()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert (root / "abort").exists()
    with writing(root) as opened:
        assert len(whole(opened, "T", 0)) == 200
        assert [len(opened.query_message("T", f"k{n}", exact=True).messages) for n in range(200)] == [1] * 200
        assert opened.put_message(NewMessage("T")).queue_offset == 200
    assert not (root / "abort").exists()
    assert verify(root, config=CONFIG, deep=True).ok


def test_queues_that_were_removed_are_made_again_before_anything_is_put(tmp_path: Path) -> None:
    root = make_queued_store(tmp_path, tagged(120), file_size=16384)
    for path in (root / "consumequeue/Topic/0").iterdir():
        path.unlink()
    with writing(root) as opened:
        assert opened.reput()[:3] == (120, 240, 120)
        assert opened.put_message(NewMessage("Topic")).queue_offset == 120
    with writing(root) as opened:
        for path in (root / "consumequeue/Topic/0").iterdir():
            assert path.stat().st_size == 1000
        assert opened.put_message(NewMessage("Topic")).queue_offset == 121


def test_queues_removed_beside_an_index_start_at_their_begin(root: Path) -> None:
    with writing(root) as opened:
        opened.put_messages({"topic": "T", "body": [b"x"] * 70, "keys": [f"k{n}" for n in range(70)]})
    for path in (root / "consumequeue/T/0").iterdir():
        path.unlink()
    with writing(root) as opened:
        assert opened.put_message(NewMessage("T", keys="last")).queue_offset == 70
        assert len(whole(opened, "T", 0)) == 71


def test_threads_put_and_read_at_the_same_time(root: Path) -> None:
    results: list[list[int]] = [[] for _ in range(4)]
    wrong: list[object] = []

    def produce(opened: MessageStore, number: int) -> None:
        for n in range(100):
            message = NewMessage("T", b"%d" % number, queue_id=number % 2, keys=f"{number}-{n}")
            results[number].append(opened.put_message(message).queue_offset)
            if n % 10 == 0 and len(opened.query_message("T", f"{number}-{n}", exact=True).messages) != 1:
                wrong.append((number, n))

    with writing(root, flushDiskType="SYNC_FLUSH") as opened:
        threads = [threading.Thread(target=produce, args=(opened, number)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for queue_id in (0, 1):
            offsets = sorted(results[queue_id] + results[queue_id + 2])
            assert offsets == [m.queue_offset for m in whole(opened, "T", queue_id)] == list(range(200))
    assert wrong == []
    assert verify(root, config=CONFIG, deep=True).ok


def test_following_dispatches_what_is_put_until_it_is_stopped(root: Path) -> None:
    stop, told, done = threading.Event(), list[int](), list[Any]()
    with writing(root) as opened:
        follower = threading.Thread(
            target=lambda: done.append(opened.reput(follow=True, stop=stop, progress=lambda p: told.append(p.messages)))
        )
        follower.start()
        for _ in range(30):
            opened.put_message(NewMessage("T"))
        with MessageStore.open(root) as reading:
            until = time.monotonic() + 120
            while reading.get_message("T", 0, 29).status != "FOUND" and time.monotonic() < until:
                time.sleep(0.01)
            assert reading.get_message("T", 0, 29).status == "FOUND"
        stop.set()
        follower.join()
        assert (done[0].messages, told[-1]) == (30, 30)


def test_closing_while_others_put_loses_nothing_that_was_acknowledged(root: Path) -> None:
    acknowledged: list[int] = []

    def produce(opened: MessageStore) -> None:
        try:
            while True:
                acknowledged.append(opened.put_message(NewMessage("T")).phy_offset)
        except ValueError:
            pass

    opened = writing(root)
    threads = [threading.Thread(target=produce, args=(opened,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    while len(acknowledged) < 100:
        time.sleep(0.001)
    opened.close()
    for thread in threads:
        thread.join()
    with MessageStore.open(root) as reading:
        assert sorted(acknowledged) == [message.phy_offset for message in whole(reading, "T", 0)]


def files(root: Path) -> dict[str, bytes]:
    """Every file of log, queues and index; index files have the time of their making for a name."""
    found = sorted(path for part in ("commitlog", "consumequeue", "index") for path in (root / part).rglob("*"))
    index = os.path.join(root, "index")
    return {
        "index" if path.parent == Path(index) else str(path.relative_to(root)): path.read_bytes()
        for path in found
        if path.is_file()
    }
