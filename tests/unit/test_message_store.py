"""`MessageStore` for reading: what it answers where there is something to answer, and to whom."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.errors import BadMagicError, ClosedFileError, FormatError, ReadOnlyFileError
from mqindex.rocketmq import GetMessageStatus, MessageStore, NewMessage
from tests.support.log_writer import LogMessage
from tests.support.queued_store import make_queued_store, tagged, write_units


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_queued_store(tmp_path / "store", tagged(120))


@pytest.mark.parametrize(
    ("offset", "status", "following"),
    [
        (0, "FOUND", 32),
        (49, "FOUND", 50),
        (119, "FOUND", 120),
        (120, "OFFSET_OVERFLOW_ONE", 120),
        (121, "OFFSET_OVERFLOW_BADLY", 0),
        (-1, "OFFSET_TOO_SMALL", 0),
    ],
)
def test_the_status_says_where_the_offset_lies(root: Path, offset: int, status: str, following: int) -> None:
    with MessageStore.open(root) as opened:
        answer = opened.get_message("Topic", 0, offset)
        assert (answer.status, answer.next_begin_offset, answer.min_offset, answer.max_offset) == (
            status, following, 0, 120,
        )  # fmt: skip
        assert answer.status is GetMessageStatus[status]
        bulk = opened.get_messages("Topic", 0, offset, max_msg_nums=1)
        assert (bulk.status, bulk.messages.num_rows) == (status, int(status == "FOUND"))


@pytest.mark.parametrize(("version", "following"), [("4.9.3", 0), ("4.9.4", 120), ("5.0.0", 120), ("5.5", 120)])
def test_where_who_asked_too_far_goes_on_is_the_versions_rule(root: Path, version: str, following: int) -> None:
    with MessageStore.open(root, broker_version=version) as opened:
        assert opened.get_message("Topic", 0, 500)[:2] == ("OFFSET_OVERFLOW_BADLY", following)
        assert opened.get_messages("Topic", 0, 500, max_msg_nums=1)[:2] == ("OFFSET_OVERFLOW_BADLY", following)


def test_a_file_that_5x_alone_leaves_tells_its_rules(root: Path) -> None:
    (root / "abort.bak").touch()
    with MessageStore.open(root) as opened:
        assert opened.get_message("Topic", 0, 121).next_begin_offset == 120


def test_a_time_before_all_messages_is_where_the_queue_begins_now(root: Path) -> None:
    (root / "commitlog/00000000000000000000").unlink()
    with MessageStore.open(root) as opened:
        queue = opened.consume_queue("Topic", 0)
        assert queue is not None
        low = queue.min_offset_in_queue
        assert 0 < low < 50  # not where its file begins
        for boundary in ("lower", "upper"):
            assert queue.get_offset_in_queue_by_time(0, opened.commit_log, boundary=boundary) == low  # type: ignore[arg-type]


def test_a_queue_whose_begin_is_gone_says_where_it_begins(root: Path) -> None:
    shutil.move(root / "consumequeue/Topic/0/00000000000000000000", root / "elsewhere")
    with MessageStore.open(root) as opened:
        answer = opened.get_message("Topic", 0, 3)
        assert (answer.status, answer.next_begin_offset, answer.min_offset) == ("OFFSET_TOO_SMALL", 50, 50)
        assert opened.get_message("Topic", 0, 500).next_begin_offset == 120


def test_a_missing_file_in_the_middle_is_found_null(root: Path) -> None:
    (root / "consumequeue/Topic/0/00000000000000001000").unlink()
    with MessageStore.open(root) as opened:
        assert opened.get_message("Topic", 0, 70)[:2] == ("OFFSET_FOUND_NULL", 100)
        assert opened.get_messages("Topic", 0, 70, max_msg_nums=9)[:2] == ("OFFSET_FOUND_NULL", 100)
        assert opened.get_message("Topic", 0, 100).messages[0].queue_offset == 100
        whole = opened.get_messages("Topic", 0, 40, max_msg_nums=100, columns=["queue_offset"])
        assert whole.messages["queue_offset"].tolist() == [*range(40, 50), *range(100, 120)]
        assert whole.next_begin_offset == 120


@pytest.mark.parametrize("queue", [("Topic", 1), ("Other", 0), ("../Topic", 0), ("", 0), ("Topic", -1), ("a\0", 0)])
def test_a_queue_that_is_not_there_is_empty(root: Path, queue: tuple[str, int]) -> None:
    with MessageStore.open(root) as opened:
        assert opened.get_message(*queue, 7) == ("NO_MESSAGE_IN_QUEUE", 0, 0, 0, [])
        assert opened.get_messages(*queue, 7, max_msg_nums=5).messages.num_rows == 0


def test_messages_that_the_log_has_lost_are_removing(root: Path) -> None:
    first = sorted((root / "commitlog").iterdir())[0]
    first.unlink()
    with MessageStore.open(root) as opened:
        low = opened.get_message("Topic", 0, 0)
        assert low.status == "OFFSET_TOO_SMALL"
        assert opened.get_message("Topic", 0, low.next_begin_offset).status == "FOUND"
    write_units(root, "Lost", 0, [(10, 100, 0), (20, 100, 0)])
    with MessageStore.open(root) as opened:
        assert opened.get_message("Lost", 0, 0).status != "FOUND"


def test_a_queue_longer_than_its_log_ends_in_removing(root: Path) -> None:
    write_units(root, "Topic", 0, [(10**9, 100, 0)] * 3, first=120)
    with MessageStore.open(root) as opened:
        assert opened.get_message("Topic", 0, 120)[:2] == ("MESSAGE_WAS_REMOVING", 123)
        assert opened.get_messages("Topic", 0, 120, max_msg_nums=9)[:2] == ("MESSAGE_WAS_REMOVING", 123)
        assert opened.get_messages("Topic", 0, 118, max_msg_nums=9)[:2] == ("FOUND", 123)


def test_one_request_looks_at_800_units_or_as_many_as_it_may_give(tmp_path: Path) -> None:
    root = make_queued_store(tmp_path, tagged(1, ["TagA"]))
    unit = (0, 100, 5)
    directory = root / "consumequeue/Topic/1"
    directory.mkdir()
    data = b"".join([unit[0].to_bytes(8, "big"), unit[1].to_bytes(4, "big"), unit[2].to_bytes(8, "big")])
    (directory / "00000000000000000000").write_bytes(data * 3000)
    with MessageStore.open(root) as opened:
        assert opened.get_message("Topic", 1, 0, tags="TagB")[:2] == ("NO_MATCHED_MESSAGE", 800)
        assert opened.get_message("Topic", 1, 0, tags="TagB", max_msg_nums=900)[:2] == ("NO_MATCHED_MESSAGE", 900)
        assert opened.get_messages("Topic", 1, 0, tags="TagB", max_msg_nums=1)[:2] == ("NO_MATCHED_MESSAGE", 3000)


def test_tags_of_one_hash_are_told_apart_as_consumers_do(tmp_path: Path) -> None:
    root = make_queued_store(tmp_path, tagged(40, ["Aa", "BB"]))
    with MessageStore.open(root) as opened:
        mine = opened.get_message("Topic", 0, 0, tags="BB", max_msg_nums=10)
        assert (mine.next_begin_offset, [m.queue_offset for m in mine.messages]) == (10, [1, 3, 5, 7, 9])
        bulk = opened.get_messages("Topic", 0, 0, tags="BB", max_msg_nums=10, columns=["queue_offset"])
        assert (bulk.next_begin_offset, bulk.messages["queue_offset"].tolist()) == (20, list(range(1, 20, 2)))
        assert opened.get_message("Topic", 0, 0, tags="Aa", max_msg_nums=1).messages[0].tags == "Aa"
        assert opened.get_message("Topic", 0, 0, tags="BB", max_msg_nums=1)[:2] == ("FOUND", 1)


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        ("TagA", {"TagA"}),
        ("TagA||TagB", {"TagA", "TagB"}),
        ("  TagA \t||  nothing ", {"TagA"}),
        ("*", {"TagA", "TagB", None}),
        ("", {"TagA", "TagB", None}),
        ("TagA || *", {"TagA"}),
        (" ", set()),
    ],
)
def test_expressions_are_the_client_s(root: Path, expression: str, tags: set[str | None]) -> None:
    with MessageStore.open(root) as opened:
        assert {m.tags for m in opened.get_message("Topic", 0, 0, tags=expression).messages} == tags
        bulk = opened.get_messages("Topic", 0, 0, max_msg_nums=120, tags=expression).messages
        assert set(bulk["tags"].to_pylist()) == tags


def test_wrong_arguments_are_named(root: Path) -> None:
    with MessageStore.open(root) as opened:
        with pytest.raises(ValueError, match="tags: expected an expression"):
            opened.get_message("Topic", 0, 0, tags="||")
        with pytest.raises(ValueError, match="max_msg_nums: expected 1 or more, got 0"):
            opened.get_messages("Topic", 0, 0, max_msg_nums=0)
        with pytest.raises(ValueError, match="columns: expected some of"):
            opened.get_messages("Topic", 0, 0, max_msg_nums=1, columns=["nope"])


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda opened: opened.get_message(None, 0, 0), "topic: expected str, got NoneType"),
        (lambda opened: opened.get_message("Topic", "0", 0), "queue_id: expected a whole number, got '0'"),
        (lambda opened: opened.get_message("Topic", 0, "x"), "offset: expected a whole number, got 'x'"),
        (lambda opened: opened.get_messages("Topic", 0, 0, max_msg_nums=1.5), "max_msg_nums: expected a whole number"),
        (lambda opened: opened.get_message("Topic", 0, 0, tags=["TagA"]), "tags: expected an expression"),
        (lambda opened: opened.query_message("Topic", None), "key: expected str, got NoneType"),
        (lambda opened: opened.look_message_by_offset("1"), "phy_offset: expected a whole number, got '1'"),
        (lambda opened: opened.view_message(b"0" * 32), "msg_id: expected str, got bytes"),
    ],
)
def test_arguments_of_another_type_are_named(root: Path, call: Callable[[MessageStore], object], named: str) -> None:
    with MessageStore.open(root) as opened, pytest.raises(TypeError, match=named):
        call(opened)


def test_limits_of_a_broker_hold_where_they_are_configured(root: Path) -> None:
    with MessageStore.open(root, config={"maxTransferCountOnMessageInMemory": 5}) as opened:
        assert opened.get_message("Topic", 0, 0)[:2] == ("FOUND", 5)
    with MessageStore.open(root, config={"maxTransferBytesOnMessageInMemory": "1"}) as opened:
        assert opened.get_message("Topic", 0, 0)[:2] == ("FOUND", 1)
    with pytest.raises(ValueError, match="maxTransferCountOnMessageInMemory"):
        MessageStore.open(root, config={"maxTransferCountOnMessageInMemory": "many"})


def test_a_unit_into_the_middle_of_a_message_is_an_error_that_says_how_to_go_on(root: Path) -> None:
    write_units(root, "Topic", 0, [(3, 50, 0)], first=60)
    with MessageStore.open(root) as opened:
        for call in (opened.get_message, lambda *at: opened.get_messages(*at, max_msg_nums=70)):
            with pytest.raises(FormatError, match=r"queue offset 60 leads to no message.*go on at queue offset 61"):
                call("Topic", 0, 55)
        assert opened.get_message("Topic", 0, 61).status == "FOUND"


def test_places_and_ids_that_hold_no_message_are_none(root: Path) -> None:
    with MessageStore.open(root) as opened:
        message = opened.look_message_by_offset(0)
        assert message is not None
        assert opened.view_message(message.msg_id) == message
        for place in (-1, 1, 10**12, 2**63 - 1):
            assert opened.look_message_by_offset(place) is None
        for msg_id in ("", "order-17", "zz" * 16, "0B" + message.msg_id[2:], message.msg_id[:-2] + "01", "f" * 32):
            assert opened.view_message(msg_id) is None


def test_a_damaged_message_is_an_error_when_it_is_looked_at_but_not_when_it_is_queried(root: Path) -> None:
    (first, *_) = sorted((root / "commitlog").iterdir())
    data = bytearray(first.read_bytes())
    with MessageStore.open(root) as opened:
        second = opened.get_message("Topic", 0, 1).messages[0].phy_offset
    data[second + 88] ^= 1  # its body
    first.write_bytes(data)
    with MessageStore.open(root) as opened, pytest.raises(FormatError, match="checksum"):
        opened.look_message_by_offset(second)


def test_a_store_without_index_or_queues_answers_nothing(root: Path) -> None:
    shutil.rmtree(root / "consumequeue")
    with MessageStore.open(root) as opened:
        assert opened.queues == []
        assert opened.get_message("Topic", 0, 0).status == "NO_MESSAGE_IN_QUEUE"
        assert opened.query_message("Topic", "k1") == ([], 0, 0)
        assert (opened.checkpoint, dict(opened.consumer_offsets), opened.topics, opened.delay_offsets) == (
            None, {}, {}, {},
        )  # fmt: skip


def test_lag_is_what_the_queue_has_beyond_the_committed_offset(root: Path) -> None:
    (root / "config").mkdir()
    (root / "config/consumerOffset.json").write_text('{"offsetTable":{"Topic@g":{0:100,1:3},"Gone@g":{0:0}}}')
    with MessageStore.open(root) as opened:
        assert opened.consumer_offsets.lag == {"Topic@g": {0: 20, 1: -3}, "Gone@g": {0: 0}}


def test_a_store_that_could_not_be_opened_is_not_held(tmp_path: Path) -> None:
    """Its lock stayed with this process, and every later opening said that it holds the store already."""
    with pytest.raises(ValueError, match="maxTransferCountOnMessageInMemory"):
        MessageStore.open(tmp_path, writable=True, config={"maxTransferCountOnMessageInMemory": "many"})
    MessageStore.open(tmp_path, writable=True).close()


def test_a_path_that_is_no_store_is_told(root: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        MessageStore.open(tmp_path / "nowhere")
    for path in (root / "commitlog", root / "consumequeue", tmp_path):
        with pytest.raises(BadMagicError, match="not a store"):
            MessageStore.open(path)
    (file, *_) = (root / "commitlog").iterdir()
    with pytest.raises(BadMagicError, match="not a store"):
        MessageStore.open(file)
    shutil.rmtree(root / "commitlog")
    with pytest.raises(FileNotFoundError):
        MessageStore.open(root)


def test_reading_changes_nothing_and_writing_is_refused(root: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    with MessageStore.open(root) as opened:
        opened.get_message("Topic", 0, 0)
        for call in (lambda: opened.put_message(NewMessage("T")), lambda: opened.put_messages([]), opened.reput,
                     opened.flush):  # fmt: skip
            with pytest.raises(ReadOnlyFileError, match="writable=True"):
                call()
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_after_close_everything_says_so(root: Path) -> None:
    opened = MessageStore.open(root)
    opened.close()
    opened.close()
    for call in (
        lambda: opened.get_message("Topic", 0, 0),
        lambda: opened.get_messages("Topic", 0, 0, max_msg_nums=1),
        lambda: opened.query_message("Topic", "k1"),
        lambda: opened.view_message("0A00000200002A9F0000000000000000"),
        lambda: opened.queues,
        lambda: opened.consumer_offsets,
        lambda: opened.delay_offsets,
        lambda: opened.topics,
        lambda: opened.checkpoint,
        lambda: opened.put_message(NewMessage("T")),
    ):
        with pytest.raises(ClosedFileError):
            call()


def test_threads_read_one_store(root: Path) -> None:
    wrong: list[object] = []

    def consume(opened: MessageStore, start: int) -> None:
        for offset in range(start, 120, 8):
            (message,) = opened.get_message("Topic", 0, offset, max_msg_nums=1).messages
            if message.queue_offset != offset:
                wrong.append((offset, message))
            bulk = opened.get_messages("Topic", 0, offset, max_msg_nums=3, columns=["queue_offset"]).messages
            if bulk["queue_offset"].tolist() != list(range(offset, min(offset + 3, 120))):
                wrong.append((offset, bulk))

    with MessageStore.open(root) as opened:
        threads = [threading.Thread(target=consume, args=(opened, start)) for start in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_what_a_broker_appends_while_the_store_is_open_is_read(tmp_path: Path) -> None:
    messages = tagged(60)
    make_queued_store(tmp_path / "later", messages)
    root = make_queued_store(tmp_path / "store", messages[:10])
    with MessageStore.open(root) as opened:
        assert opened.get_message("Topic", 0, 0).max_offset == 10
        for part in ("commitlog", "consumequeue/Topic/0"):
            for path in (tmp_path / "later" / part).iterdir():
                with (root / part / path.name).open("r+b" if (root / part / path.name).exists() else "wb") as file:
                    file.write(path.read_bytes())
        answer = opened.get_messages("Topic", 0, 0, max_msg_nums=100, columns=["queue_offset"])
        assert (answer.status, answer.max_offset) == ("FOUND", 60)
        assert answer.messages["queue_offset"].tolist() == list(range(60))
        assert opened.get_message("Topic", 0, 59).status == "FOUND"


def test_a_place_behind_the_end_that_is_known_is_a_message_or_nothing_yet(tmp_path: Path) -> None:
    """A broker writes there: what it has half written is no damage."""
    messages = tagged(12)
    whole = make_queued_store(tmp_path / "later", messages) / "commitlog" / f"{0:020d}"
    root = make_queued_store(tmp_path / "store", messages[:10])
    with MessageStore.open(root) as later, MessageStore.open(root) as opened:
        end = later.commit_log.max_phy_offset
        data = whole.read_bytes()
        log = root / "commitlog" / whole.name
        log.write_bytes(data[: end + 95].ljust(len(data), b"\0"))
        assert opened.look_message_by_offset(end) is None
        log.write_bytes(data)
        message = opened.look_message_by_offset(end)
        assert message is not None
        assert message.keys == "k10"


def test_a_message_too_large_for_columns_of_one_file_is_joined(tmp_path: Path) -> None:
    messages = [LogMessage("Topic", body=bytes([n]) * 1500, queue_offset=n) for n in range(9)]
    with MessageStore.open(make_queued_store(tmp_path, messages)) as opened:
        columns = opened.get_messages("Topic", 0, 2, max_msg_nums=5, columns=["body", "tags", "size"]).messages
        assert columns["body"].to_pylist() == [message.body for message in messages[2:7]]
        assert columns["tags"].to_pylist() == [None] * 5
