"""Results at a place elsewhere.

Tasks build each file on this machine and deliver it to the scratch, under a name that no other attempt has and that
ends with the file's checksum and length. On HDFS the result is put together there and appears by one rename. In an
object store there is no rename: files are copied to their names, or built there (`in_place`), and `<out>/mqindex.json`,
which lists them, comes last; a prefix with a scratch and without that list is unfinished, and readers refuse it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mqindex.errors import FileStateError, MQIndexError, OutputExistsError
from mqindex.files.few_threads import of_each
from mqindex.files.places.place import Place
from mqindex.files.places.storage import Stat, errors_of
from mqindex.files.results.delivery import AT_ONCE, FILE, checksum, deliver, inside, told_by
from mqindex.files.results.finished import MANIFEST, SCHEMA, SCRATCH, seen
from mqindex.files.results.staging import say_left

_SCRATCH_BESIDE = ".mqindex-"
_OWNER, _OWNED = "owner", b"mqindex\n"
_QUIET = 900  # seconds after which a scratch in which nothing was written counts as abandoned
_TRIES = 2  # of a removal: a client tries again only some of what fails


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
    _require_quiet(out, [name for name in names if name.startswith(SCRATCH) and name != scratch.name])


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
        return MANIFEST in out.entries() or _removed(out, _made_by(scratch))
    except (OSError, MQIndexError):
        return False


def say_made(scratch: Place, names: Sequence[str]) -> None:
    """Note the names below the output of a run, before the first of them is there: only these are ever removed."""
    import json

    owner = scratch / _OWNER
    with errors_of(owner):
        owner.storage.put(owner.path, _OWNED + json.dumps(sorted(names)).encode())


def _made_by(scratch: Place) -> list[str]:
    """The names below the output that the run of this scratch may have made."""
    import json

    owner = scratch / _OWNER
    try:
        said = bytes(owner.read(0, owner.stat().size))
    except FileNotFoundError:
        return []
    try:
        names = [str(one) for one in json.loads(said.removeprefix(_OWNED))]
    except (ValueError, TypeError, RecursionError):  # not said yet
        return []
    return [name for name in names if {"", ".", ".."}.isdisjoint(name.split("/"))]


def _removed(out: Place, names: Sequence[str]) -> bool:
    return all(of_each(lambda name: _remove(inside(out, name)), names, AT_ONCE))


def _home(out: Place) -> Place:
    return (out.parent or out) if out.storage.renames else out


def _prefix(out: Place) -> str:
    return _SCRATCH_BESIDE if out.storage.renames else SCRATCH


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
        names = _object_at(out)
    except NotADirectoryError:
        names = {"": out.stat()}
    if not names or (overwrite and out.storage.renames):
        return
    running = [name for name in names if name.startswith(SCRATCH)]
    left = [name for one in running for name in _made_by(out / one)]
    if not {*names} - {*running, *(name.partition("/")[0] for name in left)}:
        _require_quiet(out, running)
        if _removed(out, left) and not {*_names_in(out)} - {*running}:
            return
    what, hint = "the output exists and is not empty", "choose another place"
    raise OutputExistsError(what, path=out, hint=hint)


def _object_at(out: Place) -> dict[str, Stat]:
    """A file by this very name: nobody would look below it."""
    with contextlib.suppress(FileNotFoundError):
        if not (found := out.stat()).directory:
            return {"": found}
    return {}


def publish(
    scratch: Place,
    out: Place,
    moves: Sequence[tuple[str, str]],
    aside: str | None,
    about: dict[str, Any],
    placed: Sequence[tuple[str, int, int]] = (),
) -> tuple[list[str], str | None]:
    """Let the result appear; returns its files, and where what was at `out` is now. A second attempt succeeds too.

    placed : name, size and checksum of the files that are at their names already
    """
    if out.storage.renames:
        backup = _rename(scratch, out, moves, aside)
        return [path for _, name in moves for path in _below(inside(out, name))], backup
    every = [one for some in of_each(_delivered, moves, AT_ONCE) for one in some]
    there = [_listed(*one) for one in placed]
    say_made(scratch, [*(name for _, name in every), *(one["name"] for one in there)])

    def copy(one: tuple[Place, str]) -> dict[str, Any]:
        source, name = one
        with errors_of(source):
            source.storage.move(source.path, inside(out, name).path)
        _, crc, size = told_by(source.name)
        return _listed(name, int(size), int(crc, 16))

    listed = sorted([*of_each(copy, every, AT_ONCE), *there], key=lambda one: str(one["name"]))
    _put_list(out, listed, about)
    return [inside(out, one["name"]) for one in listed], None


def _listed(name: str, size: int, crc: int) -> dict[str, Any]:
    return {"name": name, "size": size, "crc32c": f"{crc:08x}"}


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
    made = {name: (os.path.getsize(path), checksum(path)) for name, path in built.items()}
    names = _names_in(out)
    free = not names or (MANIFEST not in names and any(name.startswith(SCRATCH) for name in names))
    if free and _publish_once(built, made, out, about):
        return
    homes = {name.rpartition("/")[0] for name in made}
    there = [f"{home}/{name}" for home in homes for name in _names_in(inside(out, home))]
    if sorted(there) != sorted(made) or any(seen(inside(out, name)) != made[name] for name in made):
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
    mark = out / f"{SCRATCH}{os.urandom(6).hex()}"  # it has no list yet; other attempts write the same bytes
    say_made(mark, list(built))
    with errors_of(out):
        for name, path in built.items():
            out.storage.upload(inside(out, name).path, path)
    listed = [_listed(name, *told) for name, told in sorted(made.items())]
    _put_list(out, listed, about)
    for name in _names_in(out):
        if name.startswith(SCRATCH):
            _remove_or_say(out / name)
    return True


def _names_in(place: Place) -> list[str]:
    try:
        return list(place.entries())
    except FileNotFoundError:
        return []


def _delivered(move: tuple[str, str]) -> list[tuple[Place, str]]:
    """The files that a task delivered as one path: where each is in the scratch, and where it goes."""
    source, name = move
    assert isinstance(source, Place)
    if FILE.fullmatch(source.name):
        return [(source, name)]
    return [(source / one, f"{name}/{told_by(one)[0]}") for one in source.entries()]


def _rename(scratch: Place, out: Place, moves: Sequence[tuple[str, str]], aside: str | None) -> str | None:
    result, storage = scratch / "result", out.storage
    for move in moves:
        with contextlib.suppress(FileNotFoundError):  # moved by an attempt before
            for source, name in _delivered(move):
                target = inside(result, name)
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
