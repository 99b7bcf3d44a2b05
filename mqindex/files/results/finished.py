"""Whether a result elsewhere is finished: its list of files is there, and says what they are."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mqindex._native.crc import crc32c
from mqindex.errors import FileStateError
from mqindex.files.few_threads import of_each
from mqindex.files.paths import one_look
from mqindex.files.places.place import Place

if TYPE_CHECKING:
    from mqindex.files.places.storage import Stat

MANIFEST: Final = "mqindex.json"
SCHEMA: Final = "mqindex.result/1"
_BLOCK: Final = 4 << 20
SCRATCH: Final = "_mqindex-"  # in an object store the begin of the names of scratches, in the result's own directory


def require_finished(path: str, *roots: str) -> dict[str, Any]:
    """`FileStateError` for what is in a result of ours whose run has not finished, or that lost files since.

    Returns what the result's list says; nothing where there is none. What is on this machine appeared as a whole.

    path : a directory, or a file.
    roots : the directories above it that may be the result's, nearest first.

    Raises
    ------
    OSError : what is in one of these is not known, as it may not be listed
    """
    return _result_of(path, roots)[1]


def _result_of(path: str, roots: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """The directory with the list, and what that says."""
    places = [one for one in dict.fromkeys([path, *roots]) if isinstance(one, Place)]
    for root, names in zip(places, of_each(_names_or_error, places, len(places)), strict=True):
        assert isinstance(path, Place)
        if isinstance(names, OSError):
            raise names
        if MANIFEST in names:
            said, sizes = _listed_by(root / MANIFEST, names[MANIFEST].size)
            _require_sizes(path, root, sizes)
            return root, said
        if any(name.startswith(SCRATCH) for name in names):
            raise FileStateError("its run has not finished", path=root, expected=MANIFEST, hint="run it again")
    return path, {}


class ListedFile(NamedTuple):
    """A file of a result and what its list says of it. `checksum`: CRC-32C, 8 hexadecimal digits."""

    path: Place
    size: int
    checksum: str


def listed_files(paths: Sequence[str]) -> list[ListedFile]:
    """What the list of a result says of the first of these paths and below; nothing where there is none.

    paths : it, and the directories above it that may be the result's, nearest first
    """
    path, *above = paths
    root, said = _result_of(path, above)
    if not said or not isinstance(root, Place):
        return []
    try:
        files = [ListedFile(root / one["name"], int(one["size"]), str(one["crc32c"])) for one in said["files"]]
    except (KeyError, ValueError, TypeError):
        raise _unreadable(root / MANIFEST) from None
    return [one for one in files if f"{one.path}/".startswith(f"{path}/")]


def seen(place: Place) -> tuple[int, int]:
    """The size and checksum of a file as it is now."""
    found, crc = place.pinned(), 0
    for start in range(0, found.size, _BLOCK):
        crc = crc32c(place.read(start, min(start + _BLOCK, found.size), found), crc)
    place.require_same(found)
    return found.size, crc


def changed(file: ListedFile) -> tuple[ListedFile, str] | None:
    """The file, and what its checksum is now; None: it is as its list says."""
    got = f"{seen(file.path)[1]:08x}"
    return None if got == file.checksum else (file, got)


def _names_or_error(root: Place) -> Mapping[str, Stat] | OSError:
    try:
        return _names_in(root)
    except OSError as error:
        return error


def _names_in(root: Place) -> Mapping[str, Stat]:
    try:
        return root.entries()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        if not root.storage.lists:  # who asks for a list may be told anything
            return {}
        if error.errno != errno.EACCES:
            raise
        why = f"{os.strerror(errno.EACCES)}; it is listed to know whether a result there is finished"
        raise OSError(errno.EACCES, why, root) from error


def _require_sizes(path: Place, root: Place, sizes: Mapping[str, int]) -> None:
    """All that is listed of `path` is there, and as long."""
    with one_look(root):
        for name, size in sizes.items():
            place = root / name
            if f"{place}/".startswith(f"{path}/") and (got := _size_of(place)) != size:
                raise FileStateError(
                    "a file is not as its rebuild left it", path=place, expected=f"{size} bytes",
                    got="none" if got is None else f"{got} bytes", hint="rebuild it",
                )  # fmt: skip


def _size_of(place: Place) -> int | None:
    try:
        return place.stat().size
    except FileNotFoundError:
        return None


def _listed_by(manifest: Place, size: int) -> tuple[dict[str, Any], dict[str, int]]:
    """What a list of files says, and the size of each."""
    import json

    try:
        said: dict[str, Any] = json.loads(bytes(manifest.read(0, size)) if size else b"")
        schema, files = str(said["schema"]), said["files"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _unreadable(manifest) from None
    if schema != SCHEMA:
        what, hint = "its list of files is of another version", "read it with the version that wrote it"
        raise FileStateError(what, path=manifest, expected=SCHEMA, got=f"{schema:.40}", hint=hint)
    try:
        sizes = {str(one["name"]): int(one["size"]) for one in files}
    except (ValueError, KeyError, TypeError):
        raise _unreadable(manifest) from None
    if any(part in ("", ".", "..") for name in sizes for part in name.split("/")):
        raise _unreadable(manifest)
    return said, sizes


def _unreadable(manifest: Place) -> FileStateError:
    return FileStateError("its list of files cannot be read", path=manifest, hint="rebuild it")
