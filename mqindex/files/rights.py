"""Who may write a file, by its owner and mode; whose a new file gets; and with whose rights root works in a store."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import platform
import pwd
import stat
import sys
from collections.abc import Iterator, Sequence

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


@contextlib.contextmanager
def as_owner_of(directory: str) -> Iterator[None]:
    """Root writes files in the block with the rights of the directory's owner, and so what it makes is his.

    He can exchange a file for a link at any moment. With his rights that lets root write, move or hand over nothing
    that he could not himself. Root still reads all and enters all directories: the way to a copy, or to a volume of a
    container, is mostly closed to him. The system holds these rights for each thread, and a thread takes those of the
    one that starts it: the rest of the process stays root, which `os.seteuid` would change for all threads. Linux only;
    elsewhere root stays root.
    """
    owner = disk.status(directory)
    if owner is None or owner.st_uid == 0 or os.geteuid() != 0 or sys.platform != "linux":
        yield
        return
    groups = os.getgroups()
    try:
        _act_as(owner.st_uid, *_groups_of(owner.st_uid))
        yield
    finally:
        _act_as(0, os.getegid(), groups)


def _groups_of(user: int) -> tuple[int, list[int]]:
    """A user's own group and all his groups. That of his directory may be another's: setgid gives it to what he makes.
    Of a user whom the system does not know, the group of the same number."""
    try:
        known = pwd.getpwuid(user)
    except KeyError:
        return user, [user]
    return known.pw_gid, os.getgrouplist(known.pw_name, known.pw_gid)


def _act_as(user: int, group: int, groups: Sequence[int]) -> None:
    """For the files that this thread opens. The C library's `setgroups` is for all threads, the system's for one."""
    system = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 116, "ppc64le": 81, "s390x": 206}.get(platform.machine(), 159)
    if user == 0:
        system.setfsuid(0)
    failed = system.syscall(ctypes.c_long(number), ctypes.c_long(len(groups)), (ctypes.c_uint32 * len(groups))(*groups))
    system.setfsgid(group)
    system.setfsuid(user)
    _read_all(system)
    if failed or (system.setfsuid(-1), system.setfsgid(-1)) != (user, group):  # -1 changes nothing, and tells
        system.setfsuid(0)
        raise PermissionError(
            ctypes.get_errno() or 1, "root cannot take the rights of this user, whose files they are", str(user)
        )


def _read_all(system: ctypes.CDLL) -> None:
    """Give this thread CAP_DAC_READ_SEARCH again, which another user's rights take; a container may not have it."""
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable
    if system.capget(header, sets) == 0:
        sets[0] |= sets[1] & 1 << 2
        system.capset(header, sets)
