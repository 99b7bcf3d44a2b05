"""Whether a result elsewhere is finished: its list of files is there, and says what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mqindex.errors import FileStateError
from mqindex.files.places.place import Place
from mqindex.files.places.storage import Stat

MANIFEST: Final = "mqindex.json"
SCHEMA: Final = "mqindex.result/1"
SCRATCH: Final = "_mqindex-"  # in an object store the begin of the names of scratches, in the result's own directory


def require_finished(directory: Place, listed: Mapping[str, Stat]) -> dict[str, Any]:
    """`FileStateError` for a directory of a result of ours whose run has not finished, or that lost files since.

    Returns what the result's list says; nothing where there is none.

    listed : what is in the directory.
    """
    root, names = directory, listed
    if not any(name == MANIFEST or name.startswith(SCRATCH) for name in listed):
        root, names = _above(directory)
    if MANIFEST not in names:
        if any(name.startswith(SCRATCH) for name in names):
            raise FileStateError("its run has not finished", path=root, expected=MANIFEST, hint="run it again")
        return {}
    own = "" if root is directory else directory.name
    said, sizes = _listed_by(root / MANIFEST, names[MANIFEST].size)
    for name, size in sizes.items():
        home, _, last = name.rpartition("/")
        got = listed[last].size if last in listed else None
        if home == own and got != size:
            raise FileStateError(
                "a file is not as its rebuild left it", path=directory / last, expected=f"{size} bytes",
                got="none" if got is None else f"{got} bytes", hint="rebuild it",
            )  # fmt: skip
    return said


def require_finished_at(directory: str) -> None:
    """The same of a directory that may not be there; what is on this machine appeared as a whole."""
    if isinstance(directory, Place):
        try:
            listed = directory.entries()
        except FileNotFoundError:
            listed = {}
        require_finished(directory, listed)


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
        return said, {str(one["name"]): int(one["size"]) for one in files}
    except (ValueError, KeyError, TypeError):
        raise _unreadable(manifest) from None


def _unreadable(manifest: Place) -> FileStateError:
    return FileStateError("its list of files cannot be read", path=manifest, hint="rebuild it")


def _above(directory: Place) -> tuple[Place, Mapping[str, Stat]]:
    """What is beside a directory; nothing where that may not be listed."""
    root = directory.parent or directory
    try:
        return root, root.entries()
    except OSError:
        return root, {}
