"""The one filter of a directory: made of those of single files, and of what it knew before."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping

from mqindex._native.key_filter import weave_rows
from mqindex.errors import FileStateError, MQIndexError
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.sidecar.key_filter import FilterFile
from mqindex.rocketmq.sidecar.names import fence_path
from mqindex.rocketmq.sidecar.reading import read_fence_header
from mqindex.rocketmq.sidecar.writing import write_filter


def known_files(path: str, geometry: tuple[int, int]) -> frozenset[bytes]:
    """The files that a filter knows, by `FenceHeader.of_filter`, if all its rows are good; none: there is no such."""
    with contextlib.suppress(MQIndexError, OSError), MappedFile.open(path) as file:
        found = FilterFile(file)
        if (found.header.hash_slot_num, found.header.index_num) == geometry:
            found.require_content()
            return frozenset(found.numbers)
    return frozenset()


def known_of(index_paths: Iterable[str]) -> Iterator[bytes]:
    """By what a filter knows those of the files that have a good fence."""
    for path in index_paths:
        try:
            header = read_fence_header(fence_path(path))
        except (MQIndexError, OSError):  # no filter knows such a file, and nobody asks one for it
            continue
        yield header.of_filter()


def weave(path: str, wanted: Iterable[bytes], new: Mapping[bytes, str], before: str, geometry: tuple[int, int]) -> None:
    """Write one filter of the wanted files: from filters of some of them alone, and from the one that was there before.

    It is not synced. `FileStateError`: what was there before has changed since it was looked at.
    """
    with contextlib.ExitStack() as opened:

        def open_one(path: str) -> FilterFile:
            return FilterFile(opened.enter_context(MappedFile.open(path)))

        sources = {known: open_one(of_one) for known, of_one in new.items()}
        try:
            old = [known for known in wanted if known not in sources]
            sources |= dict.fromkeys(old, open_one(before)) if old else {}
            columns = [(sources[known].rows, sources[known].numbers[known]) for known in wanted]
            write_filter(path, geometry, list(wanted), lambda *part: weave_rows(columns, *part))
        except (KeyError, ValueError, MQIndexError) as error:
            raise FileStateError("the key filter was changed meanwhile", path=before, hint="try again") from error
