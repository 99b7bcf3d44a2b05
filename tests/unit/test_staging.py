"""Scratch directories: in use, left behind, or gone."""

from __future__ import annotations

import errno
import fcntl
import linecache
import os
import shutil
import stat
import subprocess
import sys

import pytest

from mqindex.cli.doctor import machine
from mqindex.errors import FileStateError, OutputExistsError
from mqindex.files import disk, lock
from mqindex.files import probe as probe_module
from mqindex.files.copying import copy
from mqindex.files.probe import probe
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.results import output_place, staging


def test_a_scratch_is_gone_after_use_also_after_a_failure(tmp_path):
    with pytest.raises(KeyError), staging.scratch(str(tmp_path)):
        assert len(os.listdir(tmp_path)) == 1
        raise KeyError
    assert os.listdir(tmp_path) == []


def test_a_scratch_is_gone_also_where_no_descriptor_is_left(tmp_path):
    """Nothing could list it then: it stayed, and nobody said so."""
    code = """
import os, resource, shutil, sys
from mqindex.files.results import staging
resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
with staging.scratch(sys.argv[1]) as path:
    os.close(os.open(f"{path}/file", os.O_CREAT))
    while True:
        os.open(os.devnull, os.O_RDONLY)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert "Too many open files: '/dev/null'" in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_scratch_in_use_is_left_alone(tmp_path):
    with staging.scratch(str(tmp_path)) as one, staging.scratch(str(tmp_path)) as other:
        assert os.path.isdir(one)
        assert os.path.isdir(other)


def test_a_scratch_whose_process_was_killed_is_removed_by_the_next(tmp_path):
    code = (
        "import os, sys; from mqindex.files.results import staging\n"
        "with staging.scratch(sys.argv[1]): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    (killed,) = os.listdir(tmp_path)
    with staging.scratch(str(tmp_path)) as fresh:
        assert killed not in os.listdir(tmp_path)
        assert os.listdir(tmp_path) == [os.path.basename(fresh)]


def test_a_scratch_whose_removal_was_killed_is_removed_by_the_next(tmp_path):
    code = """
import os, sys
from mqindex.files import disk
from mqindex.files.results import staging
def killed(*args, _unlink=os.unlink, _left=[10], **options):
    _left[0] -= 1
    if not _left[0]:
        os.kill(os.getpid(), 9)
    _unlink(*args, **options)
with staging.scratch(sys.argv[1]) as path:
    for number in range(9):
        disk.write_new(os.path.join(path, str(number)), b"")
    os.unlink = killed
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert len(os.listdir(tmp_path)) == 1
    staging.sweep(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_a_scratch_of_which_a_file_cannot_be_removed_is_removed_by_the_next(tmp_path, monkeypatch):
    """Its owner file went with the rest, and no later run dared to touch what was left."""
    unlink = os.unlink

    def busy(path, **options):
        if os.path.basename(path) == "run.1":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
        unlink(path, **options)

    with (
        pytest.warns(UserWarning, match="scratch could not be removed") as told,
        staging.scratch(str(tmp_path)) as path,
    ):
        for name in ("run.0", "run.1", "run.2"):
            disk.write_new(os.path.join(path, name), b"bytes")
        monkeypatch.setattr(os, "unlink", busy)
    assert [str(one.message) for one in told] == [
        f"scratch could not be removed: {path}; nothing in it is needed: "
        "remove it, or let a later run in this place do so"
    ]
    assert sorted(os.listdir(path)) == ["owner", "run.1"]
    with pytest.warns(UserWarning, match=f"scratch could not be removed: {path}"):
        staging.sweep(str(tmp_path))
    monkeypatch.undo()
    staging.sweep(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_scratch_that_a_command_could_not_remove_is_named_once(tmp_path):
    """The command ended well, and nobody said that a directory of ours stays beside the result."""
    code = """
import errno, os, sys
from mqindex.cli import main
rmdir = os.rmdir
def busy(path, **options):
    if os.path.basename(path).startswith(".mqindex-"):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
    rmdir(path, **options)
os.rmdir = busy
sys.exit(main())
"""
    command = [sys.executable, "-c", code, "sample", str(tmp_path / "new")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines() if "scratch" in line]
    left = [name for home, names, _ in os.walk(tmp_path) for name in names if name.startswith(".mqindex-")]
    assert [any(name in line for line in said) for name in left] == [True] * len(left) != []
    assert len(said) == len(left)
    assert all(line.startswith("mqindex: warning: scratch could not be removed: ") for line in said)


def test_a_scratch_without_owner_is_removed_when_it_is_old(tmp_path):
    """A task of a cluster that nobody waited for wrote to it while it was removed."""
    fresh, old = tmp_path / ".mqindex-000000000001", tmp_path / ".mqindex-000000000002"
    for directory in (fresh, old):
        directory.mkdir()
        (directory / "run.1").write_bytes(b"bytes")
    os.utime(old, (0, 0))
    staging.sweep(str(tmp_path))
    assert os.listdir(tmp_path) == [fresh.name]


def test_an_old_shared_scratch_is_removed_a_fresh_one_not(tmp_path):
    old, fresh = (staging.make_shared_scratch(str(tmp_path)) for _ in range(2))
    os.utime(os.path.join(old, "owner"), (0, 0))
    staging.make_shared_scratch(str(tmp_path))
    assert not os.path.exists(old)
    assert os.path.exists(fresh)


def test_an_output_that_exists_is_refused_unless_asked(tmp_path):
    output_place.require_new(str(tmp_path / "new"), overwrite=False)
    output_place.require_new(str(tmp_path), overwrite=False)
    (tmp_path / "kept").touch()
    with pytest.raises(OutputExistsError, match="is not empty"):
        output_place.require_new(str(tmp_path), overwrite=False)
    output_place.require_new(str(tmp_path), overwrite=True)


def test_a_run_that_is_refused_removes_what_one_left_that_was_killed_after_it_published(tmp_path):
    """The same command again was refused each time, and the scratch of the first one stayed beside its output."""
    out, left = tmp_path / "out", tmp_path / ".mqindex-000000000001"
    with staging.scratch(str(tmp_path)) as running:  # of another run, that is not over
        for directory in (out, left):
            directory.mkdir()
            (directory / "file").write_bytes(b"bytes")
        (left / "owner").write_bytes(b"mqindex\n")
        with pytest.raises(OutputExistsError, match="is not empty"):
            output_place.require_new(str(out), overwrite=False)
        assert sorted(os.listdir(tmp_path)) == [os.path.basename(running), "out"]
        assert os.listdir(running) == ["owner"]
    assert os.listdir(out) == ["file"]


def test_a_name_that_leaves_no_room_for_that_of_a_backup_is_refused_before_the_work(tmp_path):
    """It was "File name too long" when all was done; without --force, and where nothing is, every name is possible."""
    longest = os.pathconf(tmp_path, "PC_NAME_MAX")
    fits, long = (tmp_path / ("o" * (longest - less)) for less in (30, 29))
    for out in (fits, long):
        output_place.require_new(str(out), overwrite=True)
        out.mkdir()
        output_place.require_new(str(out), overwrite=False)
    output_place.require_new(str(fits), overwrite=True)
    for _ in range(2):
        (tmp_path / "new").mkdir()
        assert staging.exchange(str(tmp_path / "new"), str(fits), f"{fits}.backup-{staging.backup_name()}") is not None
    with pytest.raises(FileStateError, match=r"too long for one of a backup of it: .*: expected 225 bytes or fewer"):
        output_place.require_new(str(long), overwrite=True)


def test_no_space_is_said_before_the_work(tmp_path):
    with pytest.raises(OSError, match=r"this needs 1,0{3}") as caught:
        disk.check_space(str(tmp_path), 10**21)
    assert caught.value.filename == str(tmp_path)


def test_a_directory_that_overlayfs_does_not_rename_is_told_before_the_work(tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    (out / "kept").write_text("mine")
    monkeypatch.setattr(output_place, "file_system", lambda path: "overlay")
    output_place.require_new(str(out), overwrite=True)  # one of its upper layer
    assert os.listdir(tmp_path) == ["out"]

    def of_a_lower_layer(source, target):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), source, None, target)

    monkeypatch.setattr(disk, "rename", of_a_lower_layer)
    with pytest.raises(FileStateError, match="cannot be moved to a backup"):
        output_place.require_new(str(out), overwrite=True)
    assert (os.listdir(tmp_path), (out / "kept").read_text()) == (["out"], "mine")


def test_a_mount_of_the_same_file_system_is_told_before_the_work(tmp_path, monkeypatch):
    """No device number shows it, and the rename failed when all was done: "Device or resource busy"."""
    mounts, out = tmp_path / "mountinfo", tmp_path / "a ünmount"
    out.mkdir()
    monkeypatch.setattr(probe_module, "_MOUNTS", str(mounts))
    listed = os.fsencode(out).replace(b" ", b"\\040")
    line = b"37 26 8:1 /b %s rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    mounts.write_bytes(line % b"/" + line % (listed + b"2") + line % listed)
    for overwrite in (False, True):
        with pytest.raises(OutputExistsError, match=r"the output is a mount point: .*; name a new directory in it"):
            output_place.require_new(str(out), overwrite=overwrite)
    output_place.require_new(str(out / "new"), overwrite=False)
    mounts.write_bytes(line % b"/")
    output_place.require_new(str(out), overwrite=True)
    assert probe_module.file_system(str(out)) == "ext4"
    mounts.unlink()
    output_place.require_new(str(out), overwrite=True)


def test_what_only_another_user_may_move_is_told_before_the_work(tmp_path, monkeypatch):
    """It was "Operation not permitted" of a temporary name, when all was done."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "kept").touch()
    tmp_path.chmod(0o1777)
    output_place.require_new(str(out), overwrite=True)
    for user in (out.stat().st_uid + 1, out.stat().st_uid + 2):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        with pytest.raises(FileStateError, match=r"the output is another user's, .*; choose another place"):
            output_place.require_new(str(out), overwrite=True)
        output_place.require_new(str(tmp_path / "new"), overwrite=True)
    tmp_path.chmod(0o777)
    output_place.require_new(str(out), overwrite=True)


def test_a_file_system_without_a_size_is_not_full(tmp_path, monkeypatch):
    """ramfs, and tmpfs of size 0, have no blocks: a repair was refused there, and `doctor` told 0 bytes."""
    monkeypatch.setattr("shutil.disk_usage", lambda path: shutil._ntuple_diskusage(0, 0, 0))
    assert disk.check_space(str(tmp_path), 10**21) == "nobody counts what is free"
    assert probe(str(tmp_path)).free is None
    monkeypatch.chdir(tmp_path)
    (line, *_) = machine.places()
    assert line.found.endswith(", no size")


def test_the_loser_of_two_runs_is_told_that_the_output_is_there(tmp_path):
    """It was told "Directory not empty", of its scratch."""
    for name in ("scratch", "out"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    source, target = str(tmp_path / "scratch"), str(tmp_path / "out")
    with pytest.raises(OutputExistsError, match=f"made by another run meanwhile: {target}; "):
        staging.exchange(source, target, None)
    assert os.listdir(target) == ["out"]


def test_a_new_file_takes_the_mode_of_its_neighbour(tmp_path):
    neighbour, fresh = tmp_path / "old", tmp_path / "new"
    neighbour.touch(mode=0o640)
    os.chmod(neighbour, 0o640)
    fresh.touch(mode=0o600)
    disk.own_like(str(fresh), str(neighbour))
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640


def test_a_neighbour_that_goes_as_it_is_looked_at_still_gives_its_mode(tmp_path, monkeypatch):
    """Workers of one build share a scratch directory: what one finds beside its file another removes."""
    going, fresh, look = tmp_path / "beside", tmp_path / "fresh", os.stat
    going.touch()
    going.chmod(0o640)

    def look_and_let_go(path, *options, **more):
        found = look(path, *options, **more)
        if path == str(going):
            going.unlink()
        return found

    monkeypatch.setattr(os, "stat", look_and_let_go)
    MappedFile.create(fresh, 40).close()
    assert stat.S_IMODE(look(fresh).st_mode) == 0o640


def leave(parent):
    """What a run leaves that was killed."""
    code = "import os, sys; from mqindex.files.results import staging\nwith staging.scratch(sys.argv[1]): os._exit(9)"
    before = set(os.listdir(parent))
    subprocess.run([sys.executable, "-c", code, parent], check=False)
    (left,) = set(os.listdir(parent)) - before
    return left


def test_scratch_that_was_left_behind_is_swept_away_and_what_is_in_use_stays(tmp_path):
    left = leave(tmp_path)
    (tmp_path / "mine").mkdir()
    with staging.scratch(str(tmp_path)) as used:
        assert left not in os.listdir(tmp_path)
        leave(tmp_path)
        (tmp_path / ".mqindex-0123456789ab").mkdir()  # killed at once
        (tmp_path / ".mqindex-0123456789ac").mkdir()
        (tmp_path / ".mqindex-0123456789ac" / "owner").touch()
        for number, content in enumerate((b"", bytes(8))):  # the power went: names were on the disk, no bytes
            (tmp_path / f".mqindex-00000000000{number}").mkdir()
            (tmp_path / f".mqindex-00000000000{number}" / "run.1").write_bytes(b"bytes")
            (tmp_path / f".mqindex-00000000000{number}" / "owner").write_bytes(content)
        staging.sweep(str(tmp_path))
        assert sorted(os.listdir(tmp_path)) == sorted([os.path.basename(used), "mine"])


def test_directories_of_strangers_stay(tmp_path):
    """`.mqindex-mynotes/` was removed with all that was in it."""
    mine = [tmp_path / name for name in (".mqindex-mynotes", ".mqindex-0123456789ab", ".mqindex-0123456789aB")]
    for directory in mine:
        directory.mkdir()
        (directory / "notes").write_text("precious")
    (mine[1] / "owner").write_text("me")
    link = tmp_path / ".mqindex-ba9876543210"
    link.symlink_to(leave(tmp_path))
    with staging.scratch(str(tmp_path)):
        pass
    assert [(directory / "notes").read_text() for directory in mine] == ["precious"] * 3
    assert link.is_symlink()


def test_a_lock_that_others_hold_on_the_parent_stops_nobody(tmp_path):
    """A shared lock on the parent of `--out`, held by anybody, let a rebuild hang."""
    code = "import sys; from mqindex.files.results import staging\nwith staging.scratch(sys.argv[1]): print('in')"
    fd = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], check=False, timeout=300, stdout=subprocess.PIPE, text=True
    )
    os.close(fd)
    assert done.stdout == "in\n"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EBADF, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_without_locks_has_scratch_that_only_its_age_gives_up(number, tmp_path, monkeypatch):
    def refuse(fd, how):
        raise OSError(number, os.strerror(number))

    left = leave(tmp_path)
    monkeypatch.setattr(fcntl, "flock", refuse)
    with staging.scratch(str(tmp_path)) as used:
        assert {left, os.path.basename(used)} == set(os.listdir(tmp_path))
    os.utime(tmp_path / left / "owner", (0, 0))
    with staging.scratch(str(tmp_path)) as used:
        assert os.listdir(tmp_path) == [os.path.basename(used)]


def test_a_scratch_that_others_sweep_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    lock_whole, swept = lock.lock_whole, []

    def late(fd):
        if not swept:
            swept.append(fd)
            monkeypatch.setattr(lock, "lock_whole", lock_whole)
            staging.sweep(str(tmp_path))
        return lock_whole(fd)

    monkeypatch.setattr(lock, "lock_whole", late)
    with staging.scratch(str(tmp_path)) as used:
        assert os.listdir(tmp_path) == [os.path.basename(used)]
        assert os.listdir(used) == ["owner"]
    assert swept


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, None])
def test_a_copy_goes_on_where_the_kernel_does_not(number, tmp_path, monkeypatch):
    inside, calls = getattr(os, "copy_file_range", None), []

    def half(old, new, count):
        calls.append(count)
        if len(calls) > 1 or inside is None:
            raise OSError(number, os.strerror(number))
        return inside(old, new, 1000)

    if number is None:  # not on Linux
        monkeypatch.delattr(os, "copy_file_range", raising=False)
    else:
        monkeypatch.setattr(os, "copy_file_range", half, raising=False)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(3 << 20))
    copy(str(source), str(target))
    assert target.read_bytes() == source.read_bytes()
    with pytest.raises(FileExistsError):
        copy(str(source), str(target))


def test_a_directory_that_cannot_be_looked_at_is_an_error_and_not_nothing(tmp_path, monkeypatch):
    def refuse(path, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(os, "lstat", refuse)
    for ask in (disk.exists, disk.is_file, disk.is_directory):
        with pytest.raises(PermissionError):
            ask(str(tmp_path))


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


@pytest.mark.leaves_open  # an interrupt between two lines may leave a descriptor
def test_an_interrupt_at_any_line_leaves_no_scratch(tmp_path):
    """`at`: the line of the module, counted, before which a signal arrives; at `try:` none can."""

    def interrupted(at: int) -> bool:
        left = [at]

        def trace(frame, event, arg):
            if not frame.f_code.co_filename.endswith("staging.py"):
                return None
            if event == "line" and linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() != "try:":
                left[0] -= 1
                if not left[0]:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            with staging.scratch(str(tmp_path)):
                pass
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False

    at = 1
    while interrupted(at):
        assert os.listdir(tmp_path) == [], at
        at += 1
    assert at > 20


def test_a_full_disk_is_told_by_the_directory_that_is_there(tmp_path, monkeypatch):
    """The sentence named a file of the scratch directory, which was gone when it was read."""

    def full(fd, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(staging.disk, "write_all", full)
    with pytest.raises(OSError, match="No space left on device") as caught, staging.scratch(str(tmp_path)):
        pass
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_by_that_directory_also_while_a_result_is_built(tmp_path):
    """`repair` said that the scratch has too little room: it was gone, and nobody could make room there."""
    with pytest.raises(OSError, match="this needs") as caught, staging.scratch(str(tmp_path)) as scratch:
        disk.check_space(scratch, 1 << 62)
    assert caught.value.filename == str(tmp_path)


def test_of_two_names_in_an_error_only_that_in_a_scratch_is_told_by_its_directory(tmp_path):
    place = str(tmp_path / "index" / "1")
    with pytest.raises(OSError, match="full") as caught, staging.scratch(str(tmp_path)) as scratch:
        raise OSError(errno.ENOSPC, "full", os.path.join(scratch, "part"), None, place)
    assert (caught.value.filename, caught.value.filename2) == (str(tmp_path), place)


def test_a_scratch_that_somebody_removed_is_told_by_its_own_name(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, staging.scratch(str(tmp_path)) as scratch:
        shutil.rmtree(scratch)
        disk.write_new(os.path.join(scratch, "part"), b"")
    assert caught.value.filename == os.path.join(scratch, "part")
