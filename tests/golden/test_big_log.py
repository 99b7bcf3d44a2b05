"""The generator of large logs writes what the twin reads, and says beforehand what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reference.commit_log import decode, scan_log
from tests.reference.rebuild import log_files
from tests.support.big_log import FIRST_TIME, MESSAGES_PER_MS, BigLog, main, write_big_log


@pytest.mark.parametrize("keys", [0, 1, 3])
def test_every_message_is_as_announced(keys: int, tmp_path: Path) -> None:
    log = write_big_log(tmp_path, messages=200, body_size=300, mapped_file_size=16384, keys_per_message=keys, seed=7)
    files = log_files(tmp_path / "commitlog")
    assert (len(files), {len(data) for _, data in files}) == (log.files, {16384})
    messages, damage, end = scan_log(files)
    assert (damage, end) == ([], log.max_phy_offset)
    assert [message.phy_offset for message in messages] == log.phy_offsets(range(200)).tolist()
    assert [message.queue_offset for message in messages] == list(range(200))
    assert [message.store_timestamp for message in messages] == log.store_timestamps(range(200)).tolist()
    assert [message.property_map["UNIQ_KEY"].encode() for message in messages] == log.uniq_keys(range(200)).tolist()
    for which in range(keys):
        seen = [message.property_map["KEYS"].split(" ")[which].encode() for message in messages]
        assert seen == log.keys(range(200), which).tolist()
        assert len(set(seen)) == 200
    assert keys or "KEYS" not in messages[0].property_map


def test_bodies_have_their_crc_and_finished_files_their_blank(tmp_path: Path) -> None:
    log = write_big_log(tmp_path, messages=100, body_size=300, mapped_file_size=16384)
    for start, data in log_files(tmp_path / "commitlog")[:-1]:
        at = 0
        while at < len(data):
            record = decode(data, at, start, check_crc=True)
            at += record.size
        assert record.blank
        assert record.size < 8 + len(log.template)


def test_size_that_was_asked_for_is_kept(tmp_path: Path) -> None:
    log = write_big_log(tmp_path, total_bytes=40_000, body_size=300, mapped_file_size=16384)
    assert 40_000 - len(log.template) < log.max_phy_offset <= 40_000


def test_unique_keys_do_not_repeat_where_the_counter_wraps() -> None:
    log = BigLog(Path(), 0)
    numbers = [*range(65530, 65545), *range(131066, 131080)]
    assert len(set(log.uniq_keys(numbers).tolist())) == len(numbers)
    assert log.uniq_keys([131073]).tolist() == [b"C0A8010A1F902B193F2D" + b"%08X%04X" % (131073 // MESSAGES_PER_MS, 1)]
    assert log.store_timestamps([4]).tolist() == [FIRST_TIME + 1]


def test_it_runs_from_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["big_log", f"{tmp_path}/made", "--gib", "0.0001", "--file-size", "65536"])
    main()
    assert capsys.readouterr().out.startswith("88 messages, 2 files, ")
    assert len(list((tmp_path / "made/commitlog").iterdir())) == 2
