"""How all results are written: complete in a scratch directory, synced, then renamed into place.

A *scratch* is one directory `.mqindex-<12 hex digits>` in the file system of the target. A run that ends in any way but
SIGKILL removes its own; the next run in the same place removes what SIGKILL left.

The process that owns a scratch holds a lock on the file `owner` in it. Where the file system has no locks, and for a
scratch that the tasks of a cluster share, only an old one counts as abandoned. No run waits for another.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import shlex
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from mqindex.errors import FileStateError, OutputExistsError
from mqindex.files import disk, lock
from mqindex.files.rights import as_owner_of

_NAME = re.compile(r"\.mqindex-[0-9a-f]{12}", re.ASCII)
_BESIDE = ".exchange-"
_OWNER = "owner"
_PRIVATE, _SHARED = b"mqindex\n", b"mqindex shared\n"
_GIVEN_UP = 24 * 3600  # seconds after which a scratch without a lock counts as abandoned
_ATTEMPTS = 100


def backup_name(now: float | None = None) -> str:
    """The UTC second as people read it in a file name.

    >>> backup_name(0)
    '19700101T000000Z'
    """
    moment = datetime.fromtimestamp(time.time() if now is None else now, UTC)
    return moment.strftime("%Y%m%dT%H%M%SZ")


def unused(path: str) -> str:
    """`path`, or where that exists (two runs in one second) `path-2` and so on."""
    return next(name for name in names_like(path) if not disk.exists(name))


def newest(path: str) -> str | None:
    """The last name that `unused` gave here, if it is in use."""
    names = list(itertools.takewhile(disk.exists, names_like(path)))
    return names[-1] if names else None


def names_like(path: str) -> Iterator[str]:
    """`path`, `path-2`, `path-3` and so on."""
    return itertools.chain([path], (f"{path}-{n}" for n in itertools.count(2)))


def home_of(directory: str) -> str:
    """Where the scratch for a directory's files goes: beside it, in its file system, also where it is a link.

    Inside it where a file system is mounted on it: no other place is in that file system.
    """
    real = os.path.realpath(directory)
    above = os.path.dirname(real)
    return real if disk.exists(real) and os.stat(real).st_dev != os.stat(above).st_dev else above


# ---- a directory takes the place of another -----------------------------------------------------------------------


def exchange(source: str, target: str, aside: str | None) -> str | None:
    """Rename a directory into place, durably; what is there goes `aside`. Returns where it is now, None: nothing was.

    Where the system can swap two names, `target` leads to the old or to the new directory at every moment, whatever
    fails. Elsewhere the old one comes back when the new one cannot take its place; if that fails too, the error says
    where it is. `end_exchange` finishes an exchange that was killed.
    """
    kept = None if aside is None or not disk.exists(target) else unused(aside)
    with interrupts_wait():
        if kept is None:
            _appear(source, target)
        elif not _swapped(source, target, kept):
            _renamed(source, target, kept)
        disk.sync_directory(os.path.dirname(target))
    return kept


def _appear(source: str, target: str) -> None:
    try:
        disk.rename(source, target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        what, hint = "the output was made by another run meanwhile", "choose another place; that one stays as it is"
        raise OutputExistsError(what, path=target, hint=hint) from error


def end_exchange(target: str, aside: str) -> None:
    """After a kill inside an exchange of `target`: the old directory goes `aside`, a new one is removed."""
    home, name = os.path.split(target)
    with os.scandir(home) as entries:
        beside = [one.path for one in entries if re.fullmatch(rf"{re.escape(name)}{_BESIDE}\d+", one.name)]
    for path in beside:
        if _is_new(path):
            discard_or_say(path)
        else:
            disk.rename(path, unused(aside))


def _swapped(source: str, target: str, aside: str) -> bool:
    """Bring the new directory beside the old one, swap their names, and give the old one its backup's name.

    Between these calls either of them may have the name beside `target`: its inode number is that of the new one.
    """
    beside = f"{target}{_BESIDE}{os.lstat(source).st_ino}"
    try:
        disk.rename(source, beside)
        if not disk.swap(beside, target):
            disk.rename(beside, source)
            return False
        disk.rename(beside, aside)
    except BaseException as error:
        if disk.exists(beside):
            _take_back(beside, source, target, aside, error)
        raise
    return True


def _is_new(beside: str) -> bool:
    return os.lstat(beside).st_ino == int(beside.rpartition("-")[2])


def _take_back(beside: str, source: str, target: str, aside: str, cause: BaseException) -> None:
    if not _is_new(beside):
        try:
            disk.swap(beside, target)
        except OSError:
            raise _not_moved("the new directory is there; the old one is not aside", beside, aside, cause) from cause
    try:
        disk.rename(beside, source)
    except OSError:
        discard_or_say(beside)


def _renamed(source: str, target: str, aside: str) -> None:
    try:
        disk.rename(target, aside)
        disk.rename(source, target)
    except BaseException as error:
        if disk.exists(aside) and not disk.exists(target):
            _put_back(aside, target, error)
        raise


def _put_back(aside: str, target: str, cause: BaseException) -> None:
    try:
        disk.rename(aside, target)
    except OSError:
        raise _not_moved("the old directory could not be put back", aside, target, cause) from cause


def _not_moved(what: str, old: str, place: str, cause: BaseException) -> FileStateError:
    hint = f"it is whole: mv {shlex.quote(old)} {shlex.quote(place)}"
    return FileStateError(what, path=place, got=str(cause), hint=hint)


# ---- scratch ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def scratch(parent: str) -> Iterator[str]:
    """A new scratch directory in `parent`, removed at the end in any case; what killed runs left there goes first.

    Root writes all of the result with the rights of the owner of `parent`, who could exchange the scratch for a link.
    """
    with as_owner_of(parent):
        sweep(parent)
        tried: list[str] = []
        owner = -1
        try:
            with named_outside(parent, tried):
                path, owner = _make(parent, _PRIVATE, tried)
                yield path
        finally:
            try:
                with interrupts_wait():
                    _discard_all(tried)
            except BaseException:  # an interrupt, before they wait
                with interrupts_wait():
                    _discard_all(tried)
                raise
            finally:
                if owner >= 0:
                    disk.close(owner)
                discard_or_say(*tried)  # again: there may have been no other descriptor to list it with


def make_shared_scratch(parent: str) -> str:
    """A scratch made in one task for others: no process holds it, so only its age shows whether it was abandoned."""
    sweep(parent)
    tried: list[str] = []
    try:
        with named_outside(parent, tried):
            path, owner = _make(parent, _SHARED, tried)
            disk.close(owner)
    except BaseException:
        discard_or_say(*tried)
        raise
    return path


@contextlib.contextmanager
def named_outside(parent: str, tried: Sequence[str]) -> Iterator[None]:
    """An `OSError` that names a path in a scratch names `parent`: that is there when the sentence is read.

    One that something vanished keeps its name: it was the scratch itself that somebody removed.
    """
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOENT:
            for attribute in ("filename", "filename2"):
                name = getattr(error, attribute)
                if isinstance(name, str) and any(f"{name}/".startswith(f"{path}/") for path in tried):
                    setattr(error, attribute, parent)
        raise


def _discard_all(paths: Sequence[str]) -> None:
    for path in paths:
        discard(path)


def _make(parent: str, content: bytes, tried: list[str]) -> tuple[str, int]:
    """A scratch and the descriptor that holds it. `tried`: what may be there, wherever an interrupt arrives.

    Until the lock is held another run may take it for an abandoned one and remove it: then the next attempt succeeds.
    """
    for _ in range(_ATTEMPTS):
        path = os.path.join(parent, f".mqindex-{os.urandom(6).hex()}")
        tried.append(path)
        with disk.named(path):
            try:
                disk.make_directory(path)
            except OSError as error:
                lock.refuse_writer(error, parent)
                raise
            owner = _claim(path, content)
        if owner is not None:
            return path, owner
    raise FileStateError("others remove every scratch directory that is made here", path=parent)


def _claim(path: str, content: bytes) -> int | None:
    name = os.path.join(path, _OWNER)
    try:
        fd = disk.create(name)
    except FileNotFoundError:  # removed by another run's `sweep`
        return None
    try:
        if lock.lock_whole(fd) is not False and lock.leads_to(name, fd):
            disk.write_all(fd, content)
            return fd
    except BaseException:
        disk.close(fd)
        raise
    disk.close(fd)
    return None


def sweep(parent: str) -> None:
    """Remove the scratch that killed runs left in `parent`: directories with such a name and an owner file.

    Without that file they go only when they are empty or old.
    """
    with as_owner_of(parent):
        ours = [
            one for one in list(os.scandir(parent)) if _NAME.fullmatch(one.name) and one.is_dir(follow_symlinks=False)
        ]
        for one in ours:
            with contextlib.suppress(OSError):  # another user's, or being removed
                _sweep(one.path)


def _sweep(path: str) -> None:
    owner = os.path.join(path, _OWNER)
    try:
        fd = disk.open_to_write(owner)
    except FileNotFoundError:
        _sweep_unowned(path)
        return
    try:
        held = lock.lock_whole(fd)
        content = os.pread(fd, 64, 0)
        if held is False or (_age(fd) < _GIVEN_UP and (held is None or content == _SHARED)):
            return
        if content in (_PRIVATE, _SHARED) or not content.strip(b"\0"):  # empty: killed at once, or the power went
            discard_or_say(path)
    finally:
        disk.close(fd)


def _sweep_unowned(path: str) -> None:
    """A scratch without an owner file: its run was killed, or makes it at this moment and has no other file there yet.

    With other files in it, somebody wrote to it while it was removed: only its age shows that this is over.
    """
    if _age(path) < _GIVEN_UP:
        disk.remove_directory(path)  # not if there is anything in it
    else:
        discard_or_say(path)


def rights_in(path: str) -> os.stat_result | None:
    """Owner and mode of what is made in a scratch: to look for a neighbour there would take longer with each file."""
    return disk.status(os.path.join(path, _OWNER))


def _age(place: int | str) -> float:
    return time.time() - os.stat(place).st_mtime


def discard_or_say(*paths: str) -> None:
    """Remove directories of ours; a warning names one that stays."""
    for path in paths:
        if not discard(path):
            say_left(path)


def say_left(path: str, *, then: str = ", or let a later run in this place do so") -> None:
    """Warn of scratch that could not be removed. `then`: what else than the user removes it."""
    text = f"scratch could not be removed: {path}; nothing in it is needed: remove it{then}"
    warnings.warn(text, stacklevel=2)


def discard(path: str) -> bool:
    """Remove a directory of ours and all in it; False: it is there still. What is missing already is no error.

    The owner file goes last, and only where nothing else is left: a later `sweep` removes the rest by it.
    """
    import shutil  # loads three compressors, which no check needs

    owner = os.path.join(path, _OWNER)
    with contextlib.suppress(OSError):  # `rmtree` does not ignore the errors of some of its calls
        for entry in list(os.scandir(path)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != _OWNER:
                with contextlib.suppress(OSError):
                    disk.remove(entry.path)
        if os.listdir(path) == [_OWNER]:
            disk.remove(owner)
        disk.remove_directory(path)
    return not os.path.lexists(path)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
_PATIENCE = 5.0  # s: a clean-up that takes longer, as on a disk that does not answer, is interrupted as ever


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Handlers of Python, which raise exceptions, run after the block for the signals that come in it.

    Such handlers run in the main thread only: in another one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual: dict[int, Any] = {number: call for number in _SIGNALS if callable(call := signal.getsignal(number))}
    began, over = time.monotonic(), False
    waiting: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if over or time.monotonic() - began > _PATIENCE:  # an interrupt may have kept this handler in its place
            usual[number](number, frame)
        else:
            waiting.append(number)

    try:
        for number in usual:
            signal.signal(number, wait)
        yield
    finally:
        over = True
        for number, handler in usual.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(waiting):
            signal.raise_signal(number)
