"""A worker that sees another directory than the others is named before any work; one that dies is told truly."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex import kafka, rocketmq
from mqindex.engines import LocalEngine
from mqindex.engines import visibility as seen
from mqindex.engines.tasks import require_seen, scratch_in
from mqindex.errors import FileStateError, RebuildError, StoreInUseError
from mqindex.files import disk
from tests.support.clusters import LOOK, BlindWorker, DyingWorker, ElsewhereCluster
from tests.support.kafka_writer import KafkaRecord, PartitionWriter
from tests.support.small_store import OPTIONS, QUEUE_FILE_SIZE, make_small_store
from tests.support.tree import contents, index_bytes, queue_bytes, scraps

Act = Callable[[Path, Path, Any], Any]
ONE = LocalEngine(1)


def verify(store: Path, out: Path, engine: Any) -> Any:
    return rocketmq.verify(store, engine=engine, **OPTIONS)


def repair(store: Path, out: Path, engine: Any) -> Any:
    return rocketmq.repair(store, engine=engine, **OPTIONS)


def rebuild(store: Path, out: Path, engine: Any) -> Any:
    return rocketmq.rebuild(store, out / "new", engine=engine, **OPTIONS)


def health(store: Path, out: Path, engine: Any) -> Any:
    return rocketmq.report(store, engine=engine, **OPTIONS)


def optimize(store: Path, out: Path, engine: Any) -> Any:
    return rocketmq.optimize(store, out / "new", engine=engine, hash_slot_num=5, index_num=16)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return make_small_store(tmp_path / "store")


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Of three partitions, one of which lacks its time index."""
    (tmp_path / "out").mkdir()
    for topic in ("a", "b", "c"):
        writer = PartitionWriter(tmp_path / "logs" / f"{topic}-0", index_interval=0)
        for _ in range(5):
            writer.append([KafkaRecord(b"value")])
        writer.close()
    (tmp_path / "logs" / "b-0" / f"{0:020d}.timeindex").unlink()
    return tmp_path / "logs"


def unseen(path: Path) -> str:
    return f"^the worker on w2 does not see it as the others do: {re.escape(str(path))}; every path must be visible to"


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize(
    ("act", "volume"),
    [
        *((act, name) for act in (verify, repair, rebuild, health) for name in ("commitlog", "index", "consumequeue")),
        (rebuild, "../out"),
        (optimize, "index"),
        (optimize, "../out"),
    ],
)
def test_a_worker_without_a_volume_is_named_and_nothing_is_done(
    act: Act, volume: str, asked: bool, store: Path, tmp_path: Path
) -> None:
    """A repair of this healthy store wrote a file to the worker's own disk, or one that is wrong, and was content.

    If it was not asked, it joined later.
    """
    hidden = (store / volume).resolve()
    worker = BlindWorker(hidden, tmp_path, None if asked else ["look at the files"])
    before = contents(tmp_path)
    if volume == "../out" and not asked:
        worker.on_w2 = ["publish"]
    with pytest.raises(FileStateError, match=unseen(hidden)):
        act(store, tmp_path / "out", worker)
    assert contents(tmp_path) == before
    assert set(worker.stages) == {LOOK} or not asked or volume == "../out"


def lose_last_index_file(store: Path) -> None:
    max((store / "index").iterdir()).unlink()
    shutil.rmtree(store / "consumequeue" / "Topic1")


def lose_index(store: Path) -> None:
    for path in (store / "index").iterdir():
        path.unlink()


def lose_queues(store: Path) -> None:
    shutil.rmtree(store / "consumequeue")
    (store / "consumequeue").mkdir()


@pytest.mark.parametrize("volume", ["commitlog", "index", "consumequeue"])
@pytest.mark.parametrize("spoil", [lose_last_index_file, lose_index, lose_queues])
def test_no_stage_of_a_repair_harms_a_store_on_a_worker_that_was_not_asked(
    spoil: Callable[[Path], None], volume: str, store: Path, tmp_path: Path
) -> None:
    """An empty `index/` looks as the directory below an unmounted volume: it is known by a mark in it."""
    spoil(store)
    known = BlindWorker(store / volume, tmp_path, [])
    options = {**OPTIONS, "config": {"mappedFileSizeConsumeQueue": QUEUE_FILE_SIZE}}
    spoilt, mended = shutil.copytree(store, tmp_path / "spoilt"), shutil.copytree(store, tmp_path / "mended")
    assert rocketmq.repair(mended, engine=known, **options).ok
    for stage in dict.fromkeys(known.stages):
        known.on_w2 = [stage]
        before = contents(store)
        try:
            report = rocketmq.repair(store, engine=known, **options)
        except FileStateError as error:
            assert re.match(unseen(store / volume), str(error))
            assert contents(store) == before
        else:  # empty here and there, and nothing is written on w2
            assert report.ok or report.backup  # a look at what it did that fails calls nothing repaired
            assert index_bytes(store) == index_bytes(mended)
            assert queue_bytes(store) == queue_bytes(mended)
            shutil.rmtree(store)
            shutil.copytree(spoilt, store)
        assert list(known.local.iterdir()) == []
        assert scraps(tmp_path) == []


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("act", [kafka.verify, kafka.repair, kafka.report, kafka.rebuild])
def test_a_worker_without_the_log_dir_is_named(act: Any, asked: bool, log_dir: Path, tmp_path: Path) -> None:
    worker = BlindWorker(log_dir, tmp_path, None if asked else ["look at the files"])
    before = contents(tmp_path)
    with pytest.raises(FileStateError, match=unseen(log_dir)):
        act(log_dir, *([tmp_path / "out" / "new"] if act is kafka.rebuild else []), engine=worker)
    assert contents(tmp_path) == before


def test_a_worker_without_the_volume_of_a_partition_is_named(log_dir: Path, tmp_path: Path) -> None:
    partition = log_dir / "b-0"
    before = contents(log_dir)
    for stage in (LOOK, "put files in place"):
        worker = BlindWorker(partition, tmp_path, [stage])
        with pytest.raises(FileStateError, match=unseen(partition)):
            kafka.repair(log_dir, engine=worker)
        assert contents(log_dir) == before
        assert list(worker.local.iterdir()) == []
        worker.local.rmdir()


def test_what_a_broker_does_meanwhile_is_no_worker_s_fault(tmp_path: Path) -> None:
    """It adds files, and deletes the oldest ones; a directory may have its first one since this process looked."""
    home = tmp_path / "index"
    home.mkdir()
    for number in range(3):
        (home / str(number)).touch()
    (tmp_path / "empty").mkdir()
    worker = BlindWorker(tmp_path / "other", tmp_path, [])
    engine = require_seen(worker, map(str, [home, tmp_path / "empty", tmp_path / "nowhere", home / "2"]))
    for number in range(2):
        (home / str(number)).unlink()
    (tmp_path / "empty" / "first").touch()
    (tmp_path / "nowhere").mkdir()
    assert engine.map(abs, [-1], name="work") == [1]
    (home / "2").unlink()
    with pytest.raises(FileStateError, match="does not see it"):
        engine.map(abs, [-1], name="work")


def test_a_directory_is_known_by_its_newest_names(tmp_path: Path) -> None:
    assert seen._names("/nowhere") is None
    assert seen._names(__file__) == []
    for name in (*map(str, range(1000, 2000)), ".hidden", "lost+found"):
        (tmp_path / name).touch()
    assert seen._names(str(tmp_path)) == [str(1999 - at) for at in range(seen._NAMES)]


@pytest.fixture(params=[False, True], ids=["nothing is here", "the volume is not mounted here"])
def elsewhere(store: Path, tmp_path: Path, request: pytest.FixtureRequest) -> ElsewhereCluster:
    """Workers that see a store without its first index file in `shared`; here is nothing, or an empty mount point."""
    shared = tmp_path / "shared"
    shared.mkdir()
    min((store / "index").iterdir()).unlink()
    store.rename(shared / "store")
    return ElsewhereCluster(shared, mount_point=request.param)


def test_only_the_workers_need_to_see_the_files_of_a_rebuild(elsewhere: ElsewhereCluster, tmp_path: Path) -> None:
    """A driver's own empty directory got the scratch, and a worker that saw the volume was said to lack it."""
    expected = index_bytes(make_small_store(tmp_path / "whole"))
    assert rebuild(elsewhere.there / "store", elsewhere.there, elsewhere).ok
    elsewhere.come_back()
    assert index_bytes(elsewhere.there / "new") == expected
    assert scraps(tmp_path) == []


def test_only_the_workers_need_to_see_the_files_of_a_check_and_a_repair(
    elsewhere: ElsewhereCluster, tmp_path: Path
) -> None:
    """This process opened the log to find what is before a file, and told that a file of it was missing."""
    expected = index_bytes(make_small_store(tmp_path / "whole"))
    store = elsewhere.there / "store"
    assert [one.kind for one in verify(store, tmp_path, elsewhere).findings] == ["missing-entries"]
    assert repair(store, tmp_path, elsewhere).ok
    assert verify(store, tmp_path, elsewhere).ok
    elsewhere.come_back()
    assert index_bytes(store) == expected
    assert scraps(tmp_path) == []


@pytest.mark.parametrize("mount_point", [False, True], ids=["nothing", "mount point"])
def test_a_broker_s_lock_is_seen_where_the_store_is(mount_point: bool, store: Path) -> None:
    code = "import sys; from mqindex.files import lock\nwith lock.hold(sys.argv[1]): print(flush=True); input()"
    lose_last_index_file(store)
    before = contents(store)
    with subprocess.Popen(
        [sys.executable, "-c", code, store / "lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        cluster = ElsewhereCluster(store, mount_point=mount_point)
        with pytest.raises(StoreInUseError):
            repair(store, store, cluster)
        broker.communicate(b"\n")
    cluster.come_back()
    assert contents(store) == before


def test_no_space_in_a_scratch_of_the_workers_names_the_place_of_the_user(elsewhere: ElsewhereCluster) -> None:
    """The scratch was named, which is gone when the sentence is read."""
    place = str(elsewhere.there)
    with (
        pytest.raises(OSError, match=rf"No space left on device: '{place}'$"),
        scratch_in(require_seen(elsewhere, [place]), place) as (_, scratch),
    ):
        raise OSError(errno.ENOSPC, "No space left on device", os.path.join(scratch, "run"))


def test_a_scratch_that_the_workers_could_not_remove_is_named_by_the_driver(
    elsewhere: ElsewhereCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a task warns of is in a worker's log, and the command ended without a word."""
    place = str(elsewhere.there)

    def busy(path: str) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)

    with pytest.warns(UserWarning, match="scratch could not be removed") as told:
        with scratch_in(require_seen(elsewhere, [place]), place) as (_, scratch):
            monkeypatch.setattr(disk, "remove_directory", busy)
        assert [scratch in str(one.message) for one in told] == [True]


# ---- a worker that dies while files get their places --------------------------------------------------------------


def test_a_rebuild_whose_worker_dies_says_that_out_may_be_there(store: Path, tmp_path: Path) -> None:
    """It said that nothing was published, when all was."""
    out = tmp_path / "out" / "new"
    said = rf"^Spark could not publish: it died; {out} is complete, or as it was before; then run it again$"
    with pytest.raises(RebuildError, match=said):
        rebuild(store, tmp_path / "out", DyingWorker("publish"))
    assert rocketmq.verify(store, **OPTIONS).ok
    assert index_bytes(out) == index_bytes(store)
    said = rf"; {out} is complete, or the old one; an old one that is not there is beside it; run it again$"
    with pytest.raises(RebuildError, match=said):
        rocketmq.rebuild(store, out, overwrite=True, engine=DyingWorker("publish"), **OPTIONS)
    with pytest.raises(RebuildError, match="; nothing was published"):
        rocketmq.rebuild(store, out, overwrite=True, engine=DyingWorker("build the queues"), **OPTIONS)


def test_a_repair_whose_worker_dies_says_where_the_old_files_are(store: Path, tmp_path: Path) -> None:
    lose_last_index_file(store)
    with pytest.raises(RebuildError, match="; nothing was published"):
        repair(store, tmp_path, DyingWorker("make a backup"))
    with pytest.raises(RebuildError) as caught:
        repair(store, tmp_path, DyingWorker("publish"))
    (backup,) = store.glob("mqindex-backup-*")
    assert str(caught.value) == (
        f"Spark could not publish: it died; each file is the old or the new one, the old ones are in {backup}; "
        "run it again"
    )
    assert rocketmq.verify(store, **OPTIONS).ok
    with pytest.raises(RebuildError, match=r"each file is the old or the new one"):
        rocketmq.optimize(store, store, overwrite=True, engine=DyingWorker("publish"), hash_slot_num=5, index_num=16)


def test_a_kafka_repair_whose_worker_dies_says_where_the_old_files_are(log_dir: Path) -> None:
    with pytest.raises(RebuildError, match="; nothing was published"):
        kafka.repair(log_dir, engine=DyingWorker("recover the segments"))
    for stage in ("put files in place", "clean up"):
        said = (
            rf"each file is the old or the new one, the old ones are in {log_dir}/\*/mqindex-backup-.*; run it again$"
        )
        with pytest.raises(RebuildError, match=said):
            kafka.repair(log_dir, engine=DyingWorker(stage))
        (log_dir / "b-0" / f"{0:020d}.timeindex").unlink()
