"""Scratch directories: in use, left behind, or gone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

from mqindex.errors import OutputExistsError
from mqindex.files import disk, staging


def test_a_scratch_is_gone_after_use_also_after_a_failure(tmp_path):
    with pytest.raises(KeyError), staging.scratch(str(tmp_path)):
        assert len(os.listdir(tmp_path)) == 1
        raise KeyError
    assert os.listdir(tmp_path) == []


def test_a_scratch_in_use_is_left_alone(tmp_path):
    with staging.scratch(str(tmp_path)) as one, staging.scratch(str(tmp_path)) as other:
        assert os.path.isdir(one)
        assert os.path.isdir(other)


def test_a_scratch_whose_process_was_killed_is_removed_by_the_next(tmp_path):
    code = (
        "import os, sys; from mqindex.files import staging\nwith staging.scratch(sys.argv[1]): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    (killed,) = os.listdir(tmp_path)
    with staging.scratch(str(tmp_path)) as fresh:
        assert killed not in os.listdir(tmp_path)
        assert os.listdir(tmp_path) == [os.path.basename(fresh)]


def test_an_old_shared_scratch_is_removed_a_fresh_one_not(tmp_path):
    old, fresh = (staging.make_shared_scratch(str(tmp_path)) for _ in range(2))
    os.utime(os.path.join(old, "owner"), (0, 0))
    staging.make_shared_scratch(str(tmp_path))
    assert not os.path.exists(old)
    assert os.path.exists(fresh)


def test_an_output_that_exists_is_refused_unless_asked(tmp_path):
    staging.require_new(str(tmp_path / "new"), overwrite=False)
    staging.require_new(str(tmp_path), overwrite=False)
    (tmp_path / "kept").touch()
    with pytest.raises(OutputExistsError, match="is not empty"):
        staging.require_new(str(tmp_path), overwrite=False)
    staging.require_new(str(tmp_path), overwrite=True)


def test_no_space_is_said_before_the_work(tmp_path):
    with pytest.raises(OSError, match=r"this needs 1,0{3}") as caught:
        staging.check_space(str(tmp_path), 10**21)
    assert caught.value.filename == str(tmp_path)


def test_a_new_file_takes_the_mode_of_its_neighbour(tmp_path):
    neighbour, fresh = tmp_path / "old", tmp_path / "new"
    neighbour.touch(mode=0o640)
    os.chmod(neighbour, 0o640)
    fresh.touch(mode=0o600)
    disk.own_like(str(fresh), str(neighbour))
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640


def test_scratch_that_was_left_behind_is_swept_away_and_what_is_in_use_stays(tmp_path):
    (tmp_path / ".mqindex-left").mkdir()
    (tmp_path / "mine").mkdir()
    with staging.scratch(str(tmp_path)) as used:
        (tmp_path / ".mqindex-later").mkdir()
        staging.sweep(str(tmp_path))
        assert sorted(os.listdir(tmp_path)) == sorted([os.path.basename(used), "mine"])


@pytest.mark.parametrize("count", [1, 40])
def test_new_files_are_written_once_and_brought_to_the_disk(count, tmp_path, monkeypatch):
    paths = [str(tmp_path / str(number)) for number in range(count)]
    for path in paths:
        disk.write_new(path, b"new")
        with pytest.raises(FileExistsError):
            disk.write_new(path, b"other")
    synced, sync = set(), os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(os.fstat(fd).st_ino), sync(fd)))
    assert disk.sync_files(paths) > 0
    assert synced == {os.stat(path).st_ino for path in paths}
    with pytest.raises(FileNotFoundError):
        disk.sync_files([*paths, str(tmp_path / "gone")])
