"""Whether a result may go to a place, asked before the work begins."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from mqindex.errors import FileStateError, OutputExistsError
from mqindex.files import disk, lock
from mqindex.files.path_relations import PathRelations
from mqindex.files.places.place import Place
from mqindex.files.probe import file_system, is_mount_point
from mqindex.files.results import elsewhere
from mqindex.files.results.staging import home_of, scratch, sweep

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_ASIDE = 30  # bytes that `mqindex.files.results.staging.exchange` adds to a name at most


def require_new(out: str, *, overwrite: bool) -> None:
    """`out` must not exist or be an empty directory, unless it may be moved aside; it is never a file or a device.

    What a broker holds, of whichever kind, is not moved. Nor is what no other directory can take the place of.
    """
    if isinstance(out, Place):
        elsewhere.require_new(out, overwrite=overwrite)
        return
    try:
        new = not disk.exists(out)
    except OSError:  # above it something may not be entered
        new = True
    if new:
        require_place(out)
        return
    if not disk.is_directory(out):
        raise OutputExistsError(
            "the output is no directory", path=out, got=disk.kind_of(out), hint="choose another place"
        )
    kept = _kept_in_place(out)
    if kept is not None:
        raise OutputExistsError(f"the output is {kept}", path=out, hint="name a new directory in it")
    _require_own(out)
    if overwrite:
        _require_short_name(out)
    if not os.listdir(out):
        return
    if not overwrite:
        with suppress(OSError):
            sweep(home_of(out))  # of a run that was killed when it had published this
        raise OutputExistsError(
            "the output exists and is not empty",
            path=out,
            hint="choose another place, or overwrite (--force), which moves it to a backup beside it",
        )
    lock.require_unused(out)
    _require_movable(out)


def require_place(out: str) -> None:
    """`out` can be made: the directory that it is to be in is there, and takes new names. That is tried.

    It is not made: it may be a misspelt one. The `OSError` names it.
    """
    home = os.path.dirname(os.path.abspath(out))
    try:
        with scratch(home):
            pass
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise
        why = os.strerror(error.errno or errno.EIO)  # without the advice for a place that is a broker's
        text = f"nothing can be made in it ({why}); choose a directory that is there and may be written"
        raise OSError(error.errno, text, home) from error


def _kept_in_place(directory: str) -> str | None:
    """What a directory is, in words, if another one in its place would not be where its users look."""
    if os.path.islink(directory):
        return "a link"
    if is_mount_point(directory):
        return "a mount point"
    return "the current directory" if os.path.samefile(directory, os.curdir) else None


def _require_own(out: str) -> None:
    """In a directory such as /tmp only its owner gives a directory another name, or puts another one in its place."""
    above = os.stat(os.path.dirname(os.path.abspath(out)))
    if above.st_mode & stat.S_ISVTX and os.geteuid() not in (0, above.st_uid, os.stat(out).st_uid):
        what = "the output is another user's, and only its owner may move it from where it is (sticky bit)"
        raise FileStateError(what, path=out, hint="choose another place")


def _require_short_name(out: str) -> None:
    """What is there gets a longer name, that of a backup, for which there must be room."""
    longest = os.pathconf(os.path.dirname(os.path.abspath(out)), "PC_NAME_MAX") - _ASIDE
    length = len(os.fsencode(os.path.basename(out)))
    if length > longest:
        what, expected = "the name of the output is too long for one of a backup of it", f"{longest} bytes or fewer"
        raise FileStateError(what, path=out, expected=expected, got=length, hint="choose a shorter name, or remove it")


def _require_movable(out: str) -> None:
    """A directory of a container's image cannot be renamed on overlayfs: said before the work, and not after it.

    That is asked by a rename that never succeeds: over a directory that is not empty.
    """
    home = home_of(out)
    if file_system(home) != "overlay" or home == os.path.realpath(out):
        return
    with scratch(home) as taken:
        try:
            disk.rename(out, taken)
        except OSError as error:
            if error.errno == errno.EXDEV:
                what = "overlayfs renames no directory of a lower layer, so that it cannot be moved to a backup"
                raise FileStateError(what, path=out, hint="choose another place, or empty it") from error


def require_apart(out: str, places: Iterable[str], whose: str, *, home: str | None = None) -> None:
    """`ValueError` if `out` is one of the `places`, or in one, or above one, by whatever name.

    It may be in `home`, but not be `home` or above it: what is replaced would go to a backup.
    """
    if isinstance(out, Place):
        place = next(
            (one for one in places if f"{one}/".startswith(f"{out}/") or f"{out}/".startswith(f"{one}/")), None
        )
        if place is not None:
            raise ValueError(f"out: expected a place of its own, got {out}, where {whose} {place}")
        return
    where, apart = PathRelations(), [one for one in places if not isinstance(one, Place)]
    place = where.around(out, apart)
    if place is None:
        inside = apart if home is None else [*apart, home]
        place = next((one for one in inside if where.around(one, [out]) is not None), None)
    if place is not None:
        raise ValueError(f"out: expected a place of its own, got {out}, where {whose} {place}")
