"""What a directory or a file of Kafka's is: one module says it, for the commands and for the library."""

from __future__ import annotations

from pathlib import Path

import mqindex
from mqindex.cli.kafka import kinds as words
from mqindex.kafka.kinds import (
    OF_LOG_DIR,
    is_log_dir,
    is_partition,
    kind_of_directory,
    kind_of_name,
    metadata_snapshot,
    other_name,
    segment_file,
    segment_name,
)

NAME = "00000000000000000042"


def test_each_kind_of_a_name_has_words(tmp_path: Path) -> None:
    endings = ("log", "index", "timeindex", "txnindex", "snapshot")
    for ending in endings:
        (tmp_path / f"{NAME}.{ending}").touch()
    kinds = [kind_of_name(str(tmp_path / f"{NAME}.{ending}")) for ending in endings]
    assert kinds == [*words.OF_SEGMENT, words.SNAPSHOT]


def test_a_segments_name_is_20_digits_an_ending_and_what_a_broker_appends() -> None:
    assert segment_name(f"orders-0/{NAME}.index.swap") == (42, "index", ".swap")
    assert segment_name(f"{NAME}.log") == (42, "log", "")
    others = ("42.log", f"{NAME}.log.old", f"{NAME}.lo", "\u0660" * 20 + ".log", f"{NAME}.log.swap.swap")
    assert [segment_name(name) for name in others] == [None] * len(others)


def test_names_of_20_digits_are_read_and_written_in_one_module() -> None:
    for offset, ending, after in ((0, "log", ""), (42, "index", ".swap"), (2**63 - 1, "snapshot", ".deleted")):
        assert segment_name(segment_file(offset, ending, after)) == (offset, ending, after)
    root = Path(mqindex.__file__).parent
    found = [path for path in root.rglob("*.py") if any(digits in path.read_text() for digits in (":020d", "{20}"))]
    assert [str(path.relative_to(root)) for path in found] == ["kafka/kinds.py"]


def test_a_snapshot_of_the_metadata_log_has_its_end_and_epoch_in_its_name() -> None:
    name = f"__cluster_metadata-0/{71:020d}-{3:010d}.checkpoint"
    assert metadata_snapshot(name) == (71, 3, name)
    assert [metadata_snapshot(f"{name}{end}") for end in (".part", ".deleted")] == [None, None]
    assert metadata_snapshot("bootstrap.checkpoint") is None


def test_a_broker_takes_other_names_for_a_segments() -> None:
    assert other_name("orders-0/30.log") == ("orders-0/30.log", 30, "log", f"orders-0/{30:020d}.log")
    assert other_name("-3.copy.index") == ("-3.copy.index", -3, "index", f"-{3:020d}.index")
    assert [other_name(name) for name in ("notes.log", f"{2**63}.log", "30.txt")] == [None, None, None]


def test_each_file_of_a_log_dir_shows_it(tmp_path: Path) -> None:
    """Also for a partition without any file beside it: one of these is enough, whichever it is."""
    for name in sorted(OF_LOG_DIR):
        log_dir = tmp_path / name
        (log_dir / "orders-0").mkdir(parents=True)
        assert (kind_of_directory(str(log_dir)), is_partition(log_dir / "orders-0")) == (None, False), name
        (log_dir / name).touch()
        assert (is_log_dir(str(log_dir)), kind_of_directory(str(log_dir))) == (True, words.LOG_DIR), name
        assert kind_of_directory(str(log_dir / "orders-0")) == words.PARTITION, name


def test_a_partition_of_a_log_dir_is_one_whatever_is_in_it(tmp_path: Path) -> None:
    """With strange files only it was none where it was given by itself, and one as a part of its log dir."""
    log_dir, alone = tmp_path / "logs", tmp_path / "alone"
    for home in (log_dir, alone):
        (home / "orders-0").mkdir(parents=True)
        (home / "orders-0" / "notes.txt").touch()
        (home / "orders-0" / "queues").mkdir()
    (log_dir / "meta.properties").touch()
    assert (is_partition(log_dir / "orders-0"), is_partition(alone / "orders-0")) == (True, False)
    (alone / "orders-0" / "30.log").touch()  # of which a broker makes a segment
    assert is_partition(alone / "orders-0")
    assert kind_of_directory(str(alone)) == words.LOG_DIR
