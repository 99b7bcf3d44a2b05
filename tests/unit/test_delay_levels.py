"""Delay levels that were not given: told by the units of delayed messages, asked for where no unit tells them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from mqindex.report import Finding, Report
from mqindex.rocketmq import MessageStore, NewMessage, rebuild, repair, verify
from mqindex.rocketmq.dispatch.follow import follow
from tests.support.growing_store import Turns
from tests.support.tree import contents

DEFAULT = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
FILES = {"maxHashSlotNum": 50, "maxIndexNum": 200, "mappedFileSizeCommitLog": 65536, "mappedFileSizeConsumeQueue": 200}


def put(root: Path, levels: str | None, delays: tuple[int, ...] = (1, 2, 3, 0) * 7) -> Path:
    """Messages with these delay levels (0: none) in the store of a broker with this `messageDelayLevel`."""
    root.mkdir(exist_ok=True)
    config = {**FILES, **({} if levels is None else {"messageDelayLevel": levels})}
    with MessageStore.open(root, config=config, writable=True) as store:
        for level in delays:
            store.put_message(
                NewMessage("T", b"b", keys="k", tags="TagA", properties={"DELAY": str(level)} if level else {})
            )
    return root


def schedule(root: Path) -> dict[str, bytes]:
    home = root / "consumequeue" / "SCHEDULE_TOPIC_XXXX"
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_units_that_agree_tell_the_levels(tmp_path: Path) -> None:
    report = verify(put(tmp_path / "s", "1s 2m 3h"))
    assert told(report) == []
    levels = report.settings["message_delay_level"]
    assert levels.value.startswith("1s 120s 10800s 30s 60s")
    assert levels.source == "inferred from the units of SCHEDULE_TOPIC_XXXX"


def test_more_levels_than_a_broker_has_by_default(tmp_path: Path) -> None:
    levels = " ".join(f"{2 * number}m" for number in range(1, 21))
    report = verify(put(tmp_path / "s", levels, (19, 20, 19)))
    assert told(report) == []
    assert report.settings["message_delay_level"].value.endswith(" 7200s 2280s 2400s")


def test_the_default_levels_are_not_told(tmp_path: Path) -> None:
    report = verify(put(tmp_path / "s", None))
    assert (told(report), "message_delay_level" in report.settings) == ([], False)


def test_levels_that_are_given_count(tmp_path: Path) -> None:
    report = verify(put(tmp_path / "s", "1s 2m 3h"), config={"messageDelayLevel": "1s 2m 4h"})
    assert {finding.kind for finding in told(report)} == {"wrong-unit"}
    assert {Path(finding.path or "").parent.name for finding in told(report)} == {"2"}


def test_repair_keeps_the_times_of_delivery(tmp_path: Path) -> None:
    root = put(tmp_path / "s", "1s 2m 3h")
    before = schedule(root)
    shutil.rmtree(root / "consumequeue" / "T")
    (name,) = (name for name in before if name.startswith("2/"))
    damaged = root / "consumequeue" / "SCHEDULE_TOPIC_XXXX" / name
    damaged.write_bytes(b"\0" * 20 + before[name][20:])
    assert repair(root).ok
    assert schedule(root) == before


@pytest.mark.parametrize("second", ["1s 3m 3h", "2s 2m 3h"])
def test_units_that_disagree_tell_nothing(tmp_path: Path, second: str) -> None:
    root = put(put(tmp_path / "s", "1s 2m 3h"), second)
    report = verify(root)
    wrong = [finding for finding in report.findings if finding.kind == "wrong-unit"]
    queues = {Path(finding.path or "").parent.name for finding in wrong}
    assert queues == ({"1"} if second.startswith("1s") else {"0"})
    assert len(wrong) == len(told(report)) - 1
    assert asked(report) == ["2" if second.startswith("1s") else "1"]


def test_a_log_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    root = put(tmp_path / "s", "1s 2m 3h")
    for path in (root / "commitlog").iterdir():
        path.write_bytes(b"?" * 65536)
    assert "message_delay_level" not in verify(root).settings


def test_who_follows_the_store_writes_the_same_times_of_delivery(tmp_path: Path) -> None:
    root = put(tmp_path / "s", "1s 2m 3h")
    follow(root, tmp_path / "out", stop=Turns(12))
    assert schedule(tmp_path / "out") == schedule(root)


# ---- levels that nothing shows


def told(report: Report) -> list[Finding]:
    """All but that nothing shows the length of single files."""
    return [finding for finding in report.findings if finding.kind != "file-length-unknown"]


def asked(report: Report) -> list[str]:
    """The levels whose delays are not known, as the warning says it."""
    found = [finding for finding in report.findings if finding.kind == "delay-level-unknown"]
    assert all(
        finding.severity == "warning" and f"--broker-conf FILE, with messageDelayLevel={DEFAULT} in it" in str(finding)
        for finding in found
    )
    return [str(finding.expected).removeprefix("the delay of delay level ") for finding in found]


def lost(root: Path, *queues: int) -> dict[str, bytes]:
    """Remove these queues of delayed messages, or all of them; the files of all before."""
    before = schedule(root)
    home = root / "consumequeue" / "SCHEDULE_TOPIC_XXXX"
    for path in [home / str(queue) for queue in queues] or [home]:
        shutil.rmtree(path)
    return before


def test_lost_queues_are_not_written_with_guessed_times_of_delivery(tmp_path: Path) -> None:
    """Delays of hours became the seconds of the default levels, exit 0: the broker delivered all hours early."""
    root = put(tmp_path / "s", "1h 2h 3h")
    before = lost(root)
    for dry_run in (True, False):
        kept = contents(root)
        with pytest.raises(FileStateError, match="nothing shows the delay of delay level 1 to 3: ") as told:
            repair(root, dry_run=dry_run)
        assert f"give --broker-conf FILE, with messageDelayLevel={DEFAULT} in it" in str(told.value)
        assert contents(root) == kept
    assert asked(verify(root)) == ["1 to 3"]
    assert repair(root, config={"messageDelayLevel": "1h 2h 3h"}).ok
    assert schedule(root) == before
    assert asked(verify(root)) == []


@pytest.mark.parametrize("levels", [None, "1h 2h 3h"])
def test_a_broker_conf_is_enough_to_go_on(tmp_path: Path, levels: str | None) -> None:
    root, conf = put(tmp_path / "s", levels), tmp_path / "broker.conf"
    before = lost(root)
    conf.write_text(
        "".join(f"{name}={value}\n" for name, value in FILES.items())
        + (f"messageDelayLevel={levels}\n" if levels else "")
    )
    assert asked(verify(root, config=conf)) == []
    assert repair(root, config=conf).ok
    assert schedule(root) == before


def test_levels_whose_units_are_there_need_not_be_given(tmp_path: Path) -> None:
    root = put(tmp_path / "s", "1h 2h 3h")
    before = lost(root, 0, 2)
    with pytest.raises(FileStateError, match="nothing shows the delay of delay level 1, 3: "):
        repair(root)
    shutil.rmtree(root / "consumequeue" / "T")
    assert asked(verify(root)) == ["1, 3"]
    assert repair(root, config={"messageDelayLevel": "1h 2h 3h"}).ok
    assert schedule(root) == before
    shutil.rmtree(root / "consumequeue" / "T")
    assert repair(root).ok


def test_a_store_without_delayed_messages_is_asked_nothing(tmp_path: Path) -> None:
    root = put(tmp_path / "s", "1h 2h 3h", (0, 0, 0))
    shutil.rmtree(root / "consumequeue")
    assert asked(verify(root)) == []
    assert repair(root, config=FILES).ok


def test_a_rebuild_says_what_it_assumes(tmp_path: Path) -> None:
    root = put(tmp_path / "s", "1h 2h 3h")
    lost(root, 1)
    assert asked(rebuild(root, tmp_path / "assumed")) == ["2"]
    assert asked(rebuild(root, tmp_path / "index", parts=["index"])) == []
    assert asked(rebuild(root, tmp_path / "given", config={"messageDelayLevel": "1h 2h 3h"})) == []


def spoilt(root: Path, level: int, unit: bytes, units: int) -> None:
    """Other bytes in place of the first units of a level."""
    (path,) = (root / "consumequeue" / "SCHEDULE_TOPIC_XXXX" / str(level - 1)).iterdir()
    data = path.read_bytes()
    path.write_bytes(unit * units + data[20 * units :])


def test_the_end_of_a_queue_tells_its_level_too(tmp_path: Path) -> None:
    """The first messages of a queue expire before its file does."""
    root, config = tmp_path / "s", {**FILES, "mappedFileSizeConsumeQueue": 2000, "messageDelayLevel": "3h"}
    with MessageStore.open(root, config=config, writable=True) as store:
        for _ in range(40):
            store.put_message(NewMessage("T", b"b", keys="k", properties={"DELAY": "1"}))
    before = schedule(root)
    spoilt(root, 1, bytes(20), 20)
    assert verify(root).settings["message_delay_level"].value.startswith("10800s 5s")
    assert repair(root).ok
    assert schedule(root) == before


def test_a_tag_s_hash_in_place_of_a_time_is_no_other_time(tmp_path: Path) -> None:
    root = put(tmp_path / "s", "3h", (1,) * 7)
    (path,) = (root / "consumequeue" / "SCHEDULE_TOPIC_XXXX" / "0").iterdir()
    before = path.read_bytes()
    path.write_bytes(before[:12] + (2598919).to_bytes(8, "big") + before[20:])
    assert {finding.kind for finding in told(verify(root))} == {"no-deliver-time"}
    assert repair(root).ok
    assert path.read_bytes() == before


def followed(root: Path, out: Path, **options: Any) -> list[str]:
    """What the follower says of settings that nothing shows."""
    notes: list[str] = []
    engine = LocalEngine(1, progress=lambda now: notes.append(now.note))
    follow(root, out, stop=Turns(12), engine=engine, **options)
    return [note for note in dict.fromkeys(notes) if "not known" in note]


def test_who_follows_says_what_is_assumed(tmp_path: Path) -> None:
    root = put(tmp_path / "s", "1h 2h 3h")
    lost(root, 1)
    (note,) = followed(root, tmp_path / "out")
    assert note.startswith("the delay of delay level 2, 4 to 18 is not known, the broker's default is taken: ")
    assert followed(root, tmp_path / "given", config={"messageDelayLevel": "1h 2h 3h"}) == []


def test_what_was_assumed_is_enough_to_repair_what_a_follower_wrote(tmp_path: Path) -> None:
    root, out = put(tmp_path / "s", None), tmp_path / "out"
    lost(root)
    assert len(followed(root, out)) == 1
    before = lost(out)
    (out / "abort").touch()
    assert followed(root, out) == []
    assert schedule(out) == before


def test_a_writer_has_settings(tmp_path: Path) -> None:
    root = put(tmp_path / "s", None)
    before = lost(root)
    (root / "abort").touch()
    MessageStore.open(root, config=FILES, writable=True).close()
    assert schedule(root) == before
