"""Results at a place elsewhere.

Tasks build each file on this machine and deliver it to the scratch, under a name that no other attempt has and that
ends with the file's checksum and length. On HDFS the result is put together there and appears by one rename. In an
object store there is no rename: the files are copied to their names, and `<out>/mqindex.json`, which lists them, comes
last; a prefix with a scratch and without that list is unfinished, and readers refuse it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mqindex._native.crc import crc32c
from mqindex.errors import FileStateError, MQIndexError, OutputExistsError
from mqindex.files import disk
from mqindex.files.few_threads import of_each
from mqindex.files.places.place import Place
from mqindex.files.places.storage import Stat, errors_of
from mqindex.files.results.staging import say_left

MANIFEST: Final = "mqindex.json"
SCHEMA: Final = "mqindex.result/1"
_SCRATCH, _SCRATCH_BESIDE = "_mqindex-", ".mqindex-"
_OWNER, _OWNED = "owner", b"mqindex\n"
_QUIET = 900  # seconds after which a scratch in which nothing was written counts as abandoned
_AT_ONCE = 16
_TRIES = 2  # of a removal: a client tries again only some of what fails
_BLOCK = 4 << 20
_FILE = re.compile(r"(.*)\.([0-9a-f]{8})\.(\d+)", re.DOTALL)  # its checksum and length end its name in a scratch


# ---- what tasks do


@contextlib.contextmanager
def workshop(directory: str) -> Iterator[str]:
    """A directory of this machine for what a task builds: `directory` itself, if it is one."""
    if not isinstance(directory, Place):
        yield directory
        return
    import shutil  # here: most runs write on this machine
    import tempfile

    try:
        made = tempfile.mkdtemp(prefix="mqindex-")
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)
            if os.path.lexists(made):
                say_left(made, then="")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or isinstance(error.filename, Place):
            raise
        text = f"{os.strerror(error.errno)}, where files are built before they go to {directory}; TMPDIR= names another"
        raise OSError(error.errno, text, tempfile.gettempdir()) from error


def deliver(path: str, directory: str) -> str:
    """Bring a finished file or directory of the workshop to `directory`; returns where it is now."""
    if not isinstance(directory, Place):
        return path
    if os.path.isdir(path):
        target = directory / os.path.basename(path)
        below = [os.path.join(home, name) for home, _, names in os.walk(path) for name in names]
        of_each(lambda one: _upload(one, _inside(target, os.path.relpath(one, path))), below, _AT_ONCE)
        return target
    return _upload(path, directory / os.path.basename(path))


def deliver_all(paths: Sequence[str], directory: str) -> list[str]:
    """The same of several, side by side."""
    return of_each(lambda one: deliver(one, directory), paths, _AT_ONCE if isinstance(directory, Place) else 0)


def fetch_all(paths: Sequence[str], directory: str) -> list[str]:
    """Delivered files as files of this machine, those that are elsewhere copied to a directory."""

    def fetch(path: str) -> str:
        if not isinstance(path, Place):
            return path
        (_, told, length), crc = _told_by(path.name), 0
        copy, size = os.path.join(directory, path.name), int(length)
        with disk.new_file(copy) as fd:
            for start in range(0, size, _BLOCK):
                some = path.read(start, min(start + _BLOCK, size))
                crc = crc32c(some, crc)
                disk.write_all(fd, some)
        if f"{crc:08x}" != told:
            what = "a file of the scratch came back with other bytes"
            raise FileStateError(what, path=path, expected=f"checksum {told}", got=f"{crc:08x}", hint="run it again")
        return copy

    return of_each(fetch, paths, _AT_ONCE if any(isinstance(path, Place) for path in paths) else 0)


def _upload(path: str, target: Place) -> Place:
    target += f".{_checksum(path):08x}.{os.path.getsize(path)}"
    with errors_of(target):
        target.storage.upload(target.path, path)
    os.unlink(path)
    return target


def _checksum(path: str) -> int:
    crc = 0
    with open(path, "rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            crc = crc32c(block, crc)
    return crc


def _inside(place: Place, name: str) -> Place:
    for part in name.split(os.sep):
        place = place / part
    return place


# ---- scratch


@contextlib.contextmanager
def scratch_of(out: Place) -> Iterator[Place]:
    """The scratch of a run that will publish at `out`, removed at its end; what killed runs left there goes first.

    After an error it takes along what was copied to `out`; where that cannot be removed it stays, as the sign of it.
    """
    _sweep(out)
    scratch = _home(out) / f"{_prefix(out)}{os.urandom(6).hex()}"
    made = alone = False
    try:
        with errors_of(scratch):
            scratch.storage.put((scratch / _OWNER).path, _OWNED)
        made = True
        if not out.storage.renames:
            _require_alone(out, scratch)
        alone = True
        yield scratch
    except BaseException:
        if out.storage.renames or not alone or _take_back(out, scratch):
            (_remove_or_say if made else _remove)(scratch)
        raise
    _remove_or_say(scratch)


def _require_alone(out: Place, scratch: Place) -> None:
    """Of two runs that begin at one moment the later one sees both: they would copy over each other's files."""
    names = out.entries()
    if MANIFEST in names:
        raise _made_meanwhile(out)
    _require_quiet(out, [name for name in names if name.startswith(_SCRATCH) and name != scratch.name])


def _require_quiet(out: Place, running: Sequence[str]) -> None:
    for name in running:
        if not _is_quiet(out / name):
            raise FileStateError(
                "another run may be writing there", path=out / name,
                hint=f"choose another place, wait {_QUIET // 60} minutes if that run was killed, or remove {out}",
            )  # fmt: skip


def _take_back(out: Place, scratch: Place) -> bool:
    """Remove what was copied of a result, if it has no list; False: it may be there still."""
    try:
        return MANIFEST in out.entries() or _removed(out, _copied(scratch))
    except (OSError, MQIndexError):
        return False


def _say_copied(scratch: Place, names: Sequence[str]) -> None:
    """Before the first of them is there: only these are ever removed."""
    import json

    owner = scratch / _OWNER
    with errors_of(owner):
        owner.storage.put(owner.path, _OWNED + json.dumps(sorted(names)).encode())


def _copied(scratch: Place) -> list[str]:
    """The names below the output that the run of this scratch may have made."""
    import json

    owner = scratch / _OWNER
    try:
        said = bytes(owner.read(0, owner.stat().size))
    except FileNotFoundError:
        return []
    try:
        names = [str(one) for one in json.loads(said.removeprefix(_OWNED))]
    except (ValueError, TypeError):  # not said yet
        return []
    return [name for name in names if {"", ".", ".."}.isdisjoint(name.split("/"))]


def _removed(out: Place, names: Sequence[str]) -> bool:
    return all(of_each(lambda name: _remove(_inside(out, name)), names, _AT_ONCE))


def _home(out: Place) -> Place:
    return (out.parent or out) if out.storage.renames else out


def _prefix(out: Place) -> str:
    return _SCRATCH_BESIDE if out.storage.renames else _SCRATCH


def _sweep(out: Place) -> None:
    home = _home(out)
    with contextlib.suppress(FileNotFoundError):
        for name, found in home.entries().items():
            if found.directory and name.startswith(_prefix(out)) and _is_quiet(home / name):
                _remove_or_say(home / name)


def _is_quiet(scratch: Place) -> bool:
    """Whether nobody has written in a scratch for some time."""
    with errors_of(scratch):
        return time.time() - scratch.storage.newest(scratch.path) > _QUIET


def _remove_or_say(scratch: Place) -> None:
    if not _remove(scratch):
        say_left(scratch)


def _remove(place: Place) -> bool:
    """False: it is not sure to be gone; a later run removes what is left."""
    for _ in range(_TRIES):
        with contextlib.suppress(OSError), errors_of(place):
            place.storage.remove(place.path)
            return True
    return False


# ---- the result


def require_new(out: Place, *, overwrite: bool) -> None:
    """Nothing is at `out`, or what a killed run of ours left there."""
    if overwrite and not out.storage.renames:
        what, hint = "nothing is overwritten in an object store", "choose another prefix, or remove that one first"
        raise OutputExistsError(what, path=out, hint=hint)
    try:
        names = out.entries()
    except FileNotFoundError:
        return
    except NotADirectoryError:
        names = {"": out.stat()}
    if not names or (overwrite and out.storage.renames):
        return
    running = [name for name in names if name.startswith(_SCRATCH)]
    left = [name for one in running for name in _copied(out / one)]
    if not {*names} - {*running, *(name.partition("/")[0] for name in left)}:
        _require_quiet(out, running)
        if _removed(out, left) and not {*_names_in(out)} - {*running}:
            return
    what, hint = "the output exists and is not empty", "choose another place"
    raise OutputExistsError(what, path=out, hint=hint)


def publish(
    scratch: Place, out: Place, moves: Sequence[tuple[str, str]], aside: str | None, about: dict[str, Any]
) -> tuple[list[str], str | None]:
    """Let the result appear; returns its files, and where what was at `out` is now. A second attempt succeeds too."""
    if out.storage.renames:
        backup = _rename(scratch, out, moves, aside)
        return [path for _, name in moves for path in _below(_inside(out, name))], backup
    every = [one for some in of_each(_delivered, moves, _AT_ONCE) for one in some]
    _say_copied(scratch, [name for _, name in every])

    def copy(one: tuple[Place, str]) -> dict[str, Any]:
        source, name = one
        with errors_of(source):
            source.storage.move(source.path, _inside(out, name).path)
        _, crc, size = _told_by(source.name)
        return {"name": name, "size": int(size), "crc32c": crc}

    listed = sorted(of_each(copy, every, _AT_ONCE), key=lambda one: str(one["name"]))
    _put_list(out, listed, about)
    return [_inside(out, one["name"]) for one in listed], None


def _put_list(out: Place, listed: Sequence[dict[str, Any]], about: dict[str, Any]) -> None:
    """Tried again, as no client does that: what a lost answer was of is there, with the same bytes."""
    import json

    text = json.dumps({"schema": SCHEMA, **about, "files": listed}, indent=1).encode()
    manifest = out / MANIFEST
    for tries_left in reversed(range(_TRIES)):
        try:
            with errors_of(manifest):
                manifest.storage.put(manifest.path, text, new=True)
        except FileExistsError:
            if bytes(manifest.read(0, manifest.stat().size)) != text:
                raise _made_meanwhile(out) from None
        except OSError:
            if not tries_left:
                raise
            continue
        return


def publish_once(built: Mapping[str, str], out: Place, about: dict[str, Any]) -> None:
    """Let files of this machine appear at `out`, `built` by the names they get: attempts at a task do so with the same.

    `OutputExistsError` where something else is there.
    """
    made = {name: (os.path.getsize(path), _checksum(path)) for name, path in built.items()}
    names = _names_in(out)
    free = not names or (MANIFEST not in names and any(name.startswith(_SCRATCH) for name in names))
    if free and _publish_once(built, made, out, about):
        return
    homes = {name.rpartition("/")[0] for name in made}
    there = [f"{home}/{name}" for home in homes for name in _names_in(_inside(out, home))]
    if sorted(there) != sorted(made) or any(_seen(_inside(out, name)) != made[name] for name in made):
        what, hint = "the output exists and holds something else", "choose another place"
        raise OutputExistsError(what, path=out, hint=hint)


def _publish_once(
    built: Mapping[str, str], made: Mapping[str, tuple[int, int]], out: Place, about: dict[str, Any]
) -> bool:
    """False: another attempt was there before this one."""
    if out.storage.renames:
        with scratch_of(out) as scratch, contextlib.suppress(OutputExistsError):
            publish(scratch, out, [(deliver(path, scratch), name) for name, path in built.items()], None, about)
            return True
        return False
    mark = out / f"{_SCRATCH}{os.urandom(6).hex()}"  # it has no list yet; other attempts write the same bytes
    _say_copied(mark, list(built))
    with errors_of(out):
        for name, path in built.items():
            out.storage.upload(_inside(out, name).path, path)
    listed = [{"name": name, "size": size, "crc32c": f"{crc:08x}"} for name, (size, crc) in sorted(made.items())]
    _put_list(out, listed, about)
    for name in _names_in(out):
        if name.startswith(_SCRATCH):
            _remove_or_say(out / name)
    return True


def _names_in(place: Place) -> list[str]:
    try:
        return list(place.entries())
    except FileNotFoundError:
        return []


def _seen(place: Place) -> tuple[int, int]:
    """The size and checksum of a file."""
    size, crc = place.stat().size, 0
    for start in range(0, size, _BLOCK):
        crc = crc32c(place.read(start, min(start + _BLOCK, size)), crc)
    return size, crc


def _delivered(move: tuple[str, str]) -> list[tuple[Place, str]]:
    """The files that a task delivered as one path: where each is in the scratch, and where it goes."""
    source, name = move
    assert isinstance(source, Place)
    if _FILE.fullmatch(source.name):
        return [(source, name)]
    return [(source / one, f"{name}/{_told_by(one)[0]}") for one in source.entries()]


def _told_by(name: str) -> tuple[str, str, str]:
    """What a name in the scratch says: the file's own, its checksum and its length."""
    found = _FILE.fullmatch(name)
    assert found is not None, name
    return found[1], found[2], found[3]


def _rename(scratch: Place, out: Place, moves: Sequence[tuple[str, str]], aside: str | None) -> str | None:
    result, storage = scratch / "result", out.storage
    for move in moves:
        with contextlib.suppress(FileNotFoundError):  # moved by an attempt before
            for source, name in _delivered(move):
                target = _inside(result, name)
                _make_home(target)
                with errors_of(source):
                    storage.move(source.path, target.path)
    _make_home(result / "any")
    backup = None
    with contextlib.suppress(FileNotFoundError):
        if not result.stat().directory or not out.entries():
            pass
        elif isinstance(aside, Place):
            with errors_of(out):
                storage.move(out.path, aside.path)
            backup = aside
        else:
            raise _made_meanwhile(out)
    try:
        with errors_of(out):
            storage.remove(out.path, whole=False)  # an empty directory
            storage.move(result.path, out.path)
    except FileExistsError:
        raise _made_meanwhile(out) from None
    return backup


def _make_home(path: Place) -> None:
    home = path.parent
    if home is not None:
        with errors_of(home):
            home.storage.make_directory(home.path)


def _below(place: Place) -> list[str]:
    found = place.stat()
    return [place / name for name in place.entries()] if found.directory else [place]


def _made_meanwhile(out: Place) -> OutputExistsError:
    what, hint = "the output was made by another run meanwhile", "choose another place; that one stays as it is"
    return OutputExistsError(what, path=out, hint=hint)


# ---- readers


def require_finished(directory: Place, listed: Mapping[str, Stat]) -> dict[str, Any]:
    """`FileStateError` for a directory of a result of ours whose run has not finished, or that lost files since.

    Returns what the result's list says; nothing where there is none.

    listed : what is in the directory.
    """
    root, names = directory, listed
    if not any(name == MANIFEST or name.startswith(_SCRATCH) for name in listed):
        root, names = _above(directory)
    if MANIFEST not in names:
        if any(name.startswith(_SCRATCH) for name in names):
            raise FileStateError("its run has not finished", path=root, expected=MANIFEST, hint="run it again")
        return {}
    import json

    manifest, own = root / MANIFEST, "" if root is directory else directory.name
    try:
        said: dict[str, Any] = json.loads(bytes(manifest.read(0, names[MANIFEST].size)))
        sizes = {str(one["name"]): int(one["size"]) for one in said["files"]} if said["schema"] == SCHEMA else {}
    except (ValueError, KeyError, TypeError):
        raise FileStateError("its list of files cannot be read", path=manifest, hint="rebuild it") from None
    for name, size in sizes.items():
        home, _, last = name.rpartition("/")
        got = listed[last].size if last in listed else None
        if home == own and got != size:
            raise FileStateError(
                "a file is not as its rebuild left it", path=directory / last, expected=f"{size} bytes",
                got="none" if got is None else f"{got} bytes", hint="rebuild it",
            )  # fmt: skip
    return said


def _above(directory: Place) -> tuple[Place, Mapping[str, Stat]]:
    """What is beside a directory; nothing where that may not be listed."""
    root = directory.parent or directory
    try:
        return root, root.entries()
    except OSError:
        return root, {}
