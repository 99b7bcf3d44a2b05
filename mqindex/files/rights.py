"""Who may write a file, by its owner and mode; whose a new file gets; and with whose rights root works in a store."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import itertools
import os
import platform
import pwd
import stat
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from mqindex.errors import FileStateError
from mqindex.files import disk


def is_shut(status: os.stat_result, owner: os.stat_result) -> bool:
    """Whether the user `owner` cannot write. A group's right counts as his: he may be in the group."""
    mine = status.st_mode & stat.S_IWUSR if status.st_uid == owner.st_uid else status.st_mode & 0o022
    return owner.st_uid != 0 and not mine


def rights(status: os.stat_result) -> str:
    """Mode and owner, as `ls -l` shows them."""
    return f"{stat.filemode(status.st_mode)} of user {status.st_uid}"


def neighbour_of(path: str) -> os.stat_result:
    """The owner and mode that a new file takes: of the file it replaces, else of one beside it, else of the directory.

    Read at once, and not by its name later: a file beside it may be removed at any moment, by another worker of the
    same build or by a broker whose files expire.
    """
    home = os.path.dirname(path) or "."
    beside = (os.path.join(home, name) for name in sorted(os.listdir(home)))
    there = filter(None, map(disk.status, itertools.chain([path], beside)))
    return next((like for like in there if stat.S_ISREG(like.st_mode)), None) or os.stat(home)


_SETGROUPS = dict.fromkeys(("aarch64", "riscv64", "loongarch64"), 159) | {
    "x86_64": 116, "ppc64": 81, "ppc64le": 81, "s390x": 206
}  # fmt: skip
_VERSION_3 = 0x20080522, 0  # of capabilities; of this thread
_IMPORTED_LATE = ("cramjam", "shutil", "mqindex.files.few_threads")  # from where the owner may not read


def is_led_by_another(path: str) -> bool:
    """Whether root would enter a link of another user, who may lead it anywhere."""
    return os.path.islink(path) and os.geteuid() == 0 and os.lstat(path).st_uid != 0


@contextlib.contextmanager
def as_owner_of(path: str, *, reading: bool = False) -> Iterator[None]:
    """Root writes files in the block with the rights of the owner of the directory, and so what it makes is his.

    He can exchange a file for a link at any moment. With his rights that lets root write, move or hand over nothing
    that he could not himself. The system holds these rights for each thread, and a thread takes those of the one that
    starts it: the rest of the process stays root, which `os.seteuid` would change for all threads. In a block inside
    the block nothing changes. Linux only; elsewhere root stays root.

    path : the directory; where it is not there yet, the one above it.
    reading : root also reads with his rights only. Else it reads all, as a source that is closed to him.
    """
    is_root = sys.platform == "linux" and os.geteuid() == 0 == _user()
    there = (disk.status(path) or disk.status(os.path.dirname(path))) if is_root else None
    if there is None or there.st_uid == 0:
        yield
        return
    owner, number = _known(there.st_uid), _SETGROUPS.get(platform.machine()) if sys.maxsize > 2**32 else None
    refused = partial(FileStateError, "root works here with the rights of the directory's owner", path=path)
    by_himself = f"run it as this user: sudo -u {owner.pw_name} mqindex ..."
    if number is None:
        raise refused(got=f"a machine whose calls for that are not known ({platform.machine()})", hint=by_himself)
    for name in _IMPORTED_LATE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    groups, his = os.getgroups(), os.getgrouplist(owner.pw_name, owner.pw_gid)
    try:
        if not _act_as(number, owner.pw_uid, owner.pw_gid, his, reads_all=not reading):
            raise refused(got="a process that may not take them", hint=by_himself)
        if reading and not _is_reached(path):
            open_it = "let him enter what is above it (chmod o+x), mount --bind it elsewhere, or chown a copy to root"
            raise refused(got="a directory that he cannot reach", hint=open_it)
        yield
    finally:
        _act_as(number, 0, os.getegid(), groups, reads_all=True)


@contextlib.contextmanager
def as_process() -> Iterator[None]:
    """In a block of `as_owner_of`, again with the rights of root, where files are not the store's but the process's."""
    if sys.platform != "linux" or os.geteuid() != 0 or (user := _user()) == 0:
        yield
        return
    system, header, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(*_VERSION_3), (ctypes.c_uint32 * 6)()
    system.capget(header, sets)
    system.setfsuid(0)
    try:
        yield
    finally:
        system.setfsuid(user)
        system.capset(header, sets)


def _known(user: int) -> pwd.struct_passwd:
    """What the system knows of a user. One whom it does not know has the group of the same number."""
    try:
        return pwd.getpwuid(user)
    except KeyError:
        return pwd.struct_passwd((f"'#{user}'", "x", user, user, "", "/", ""))


def _user() -> int:
    """Whose rights this thread has for files; -1 changes nothing, and tells."""
    return int(ctypes.CDLL(None).setfsuid(-1))


def _act_as(number: int, user: int, group: int, groups: Sequence[int], *, reads_all: bool) -> bool:
    """For the files that this thread opens; False: it may not. The C library's `setgroups` is for all threads, the
    system's, of this number, for one. Another user's number takes all that root may do with files, and 0 gives it back.
    """
    system = ctypes.CDLL(None)
    if user == 0:
        system.setfsuid(0)
    failed = system.syscall(ctypes.c_long(number), ctypes.c_long(len(groups)), (ctypes.c_uint32 * len(groups))(*groups))
    system.setfsgid(group)
    system.setfsuid(user)
    if reads_all:  # CAP_DAC_READ_SEARCH again; a container may not have it
        header, sets = (ctypes.c_uint32 * 2)(*_VERSION_3), (ctypes.c_uint32 * 6)()
        if system.capget(header, sets) == 0:
            sets[0] |= sets[1] & 1 << 2  # effective, permitted
            system.capset(header, sets)
    return not failed and (_user(), system.setfsgid(-1)) == (user, group)


def _is_reached(directory: str) -> bool:
    try:
        os.listdir(directory)
    except OSError as error:
        return not isinstance(error, PermissionError)  # others are said by who looks for what is in it
    return True
