"""Small files written as a whole: they appear complete, or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TextIO

from mqindex.errors import OutputExistsError
from mqindex.files import disk
from mqindex.files.tmpfile import open_nameless


def replace_content(path: str, data: bytes, *, like: str | None = None) -> None:
    """Let `path` hold exactly these bytes, durably: the old content or the new one, never a part.

    like : whose owner and mode the file takes; None: its own, where it exists, else its directory's.
    """
    neighbour = like if like is not None else path if disk.exists(path) else os.path.dirname(path) or "."
    _written_aside(path, data, neighbour, disk.replace)


def _written_aside(path: str, data: bytes, neighbour: str | None, put: Callable[[str, str], None]) -> None:
    with _aside(path, neighbour, put) as fd:
        disk.write_all(fd, data)


@contextlib.contextmanager
def _aside(path: str, neighbour: str | None, put: Callable[[str, str], None]) -> Iterator[int]:
    """A new file to fill, which `put` gives its name. `neighbour`: whose owner and mode it takes; None: nobody's."""
    fresh = disk.temporary(os.path.dirname(path) or ".", f".{os.path.basename(path)}")
    try:
        with disk.new_file(fresh) as fd:
            yield fd
            disk.sync(fd)
        if neighbour is not None:
            disk.own_like(fresh, neighbour)
        put(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):  # not there; or the first error counts
            os.unlink(fresh)
        raise


def require_new_file(path: str, *, overwrite: bool) -> None:
    """`path` must not exist, unless it may be overwritten and is a file itself: never a device, a directory or a link.

    Its directory must exist and take a file. Checked before the work, not after it.
    """
    _require_free(path, overwrite=overwrite)
    fd = open_nameless(os.path.dirname(os.path.abspath(path)))
    if fd is not None:
        os.close(fd)


def _require_free(path: str, *, overwrite: bool) -> None:
    if not disk.exists(path):
        return
    if os.path.islink(path):  # a new file would take its place: that of /dev/stdout, which may lead to a file now
        raise OutputExistsError("the output is no file", path=path, got="a link", hint="name the file that it leads to")
    if not os.path.isfile(path):
        raise OutputExistsError("the output is no file", path=path, got=disk.kind_of(path), hint="choose another name")
    if not overwrite:
        raise OutputExistsError("the output exists", path=path, hint="choose another name, or overwrite it (--force)")


def publish_content(path: str, data: bytes, *, overwrite: bool) -> None:
    """Let a file of exactly these bytes appear, durably; one that exists is an `OutputExistsError` unless asked.

    It is the user's who made it, as the umask says, and no broker's; one that is overwritten keeps its owner and mode.
    """
    _require_free(path, overwrite=overwrite)
    kept = path if disk.exists(path) else None
    _written_aside(path, data, kept, disk.replace if overwrite else _put_new)


@contextlib.contextmanager
def new_text(path: str, *, overwrite: bool) -> Iterator[TextIO]:
    """The same of a file to fill with UTF-8: it appears when the block ends without an error, else nothing is left."""
    _require_free(path, overwrite=overwrite)
    kept = path if disk.exists(path) else None
    with (
        _aside(path, kept, disk.replace if overwrite else _put_new) as fd,
        disk.named(path),
        open(fd, "w", encoding="utf-8", newline="\n", closefd=False) as file,
    ):
        yield file


def _put_new(fresh: str, path: str) -> None:
    """A file that others made there meanwhile is not replaced."""
    try:
        linked = disk.link(fresh, path)
    except FileExistsError:
        _require_free(path, overwrite=False)
        raise
    if linked:
        disk.remove(fresh)
        disk.sync_directory(os.path.dirname(path) or ".")
    else:  # a file system without hard links
        disk.replace(fresh, path)


@contextlib.contextmanager
def appearing(path: str, *, like: str, aside: str) -> Iterator[int]:
    """A new file to fill, which appears at `path` when the block ends without an error; else nothing is left of it.

    Its directory is not synced. What SIGKILL leaves is a file `.mqindex-*` in the directory `aside`.

    like : whose owner and mode it takes.
    """
    fresh = disk.temporary(aside, f".mqindex-{os.path.basename(path)}")
    fd = disk.create(fresh)
    try:
        try:
            yield fd
        finally:
            os.close(fd)
        disk.own_like(fresh, like)
        os.rename(fresh, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh)
        raise


def have_file(path: str, data: bytes) -> None:
    """Make sure that a file exists: a new one holds `data`, and has owner and mode of its directory."""
    try:
        fd = disk.create(path)
    except FileExistsError:
        return
    try:
        disk.write_all(fd, data)
        disk.own_like(path, os.path.dirname(path) or ".")
    finally:
        os.close(fd)
