"""What crosses to the workers and back, pickled: the storage of places travels once, elsewhere is its number.

So its options, which are nobody's to see, are in no result, and a log of many files takes them along once.
"""

from __future__ import annotations

import functools
import io
import pickle
from collections.abc import Iterable
from typing import Any

from mqindex.files.places.place import Place
from mqindex.files.places.storage import OfClient, Storage

_JOBS = 8  # whose clients a worker keeps


class Parcels:
    """Packs and unpacks the values of a job. Pickled itself, after its packs are made, it takes the storages along."""

    def __init__(self, storages: Iterable[Storage] = (), *, grows: bool = True) -> None:
        self._numbers: dict[Any, int] = {storage: number for number, storage in enumerate(storages)}
        self._grows = grows

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (pickle.dumps(list(self._numbers)),)

    def pack(self, value: Any) -> bytes:
        """The value pickled, local functions by value."""
        from pyspark import cloudpickle

        file = io.BytesIO()
        pickler: Any = cloudpickle.Pickler(file)  # type: ignore[no-untyped-call]
        pickler.persistent_id = self._number
        pickler.dump(value)
        return file.getvalue()

    def unpack(self, data: bytes) -> Any:
        """What was packed, here or by a copy in a worker."""
        unpickler: Any = pickle.Unpickler(io.BytesIO(data))
        unpickler.persistent_load = list(self._numbers).__getitem__
        return unpickler.load()

    def _number(self, value: Any) -> int | None:
        if not isinstance(value, OfClient):
            return None
        return self._numbers.setdefault(value, len(self._numbers)) if self._grows else self._numbers.get(value)


def parcels_of(paths: Iterable[str]) -> Parcels:
    """For values that have places in them, all of the storages of these."""
    return Parcels(dict.fromkeys(path.storage for path in paths if isinstance(path, Place)), grows=False)


@functools.lru_cache(_JOBS)
def _again(storages: bytes) -> Parcels:
    """In a worker: its process has one client for the tasks of a job."""
    return Parcels(pickle.loads(storages), grows=False)
