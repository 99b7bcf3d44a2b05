"""The files of a result elsewhere, compared with the checksums of its list."""

from __future__ import annotations

from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.files.places.place import Place
from mqindex.files.results.finished import ListedFile, changed, listed_files


def changed_files(engine: Engine, path: str, *above: str) -> list[tuple[ListedFile, str]]:
    """Those at `path` that are not as the list of their result says, and the checksum of each; none: it has no list.

    above : the directories above it that may be the result's, nearest first
    """
    paths = (path, *above)
    listed = run_one(engine, listed_files, paths, "look at the list of files") if isinstance(path, Place) else []
    weights = [file.size for file in listed]
    found = engine.map(changed, listed, name="compare checksums", weights=weights, unit="byte") if listed else []
    return [one for one in found if one is not None]
