"""Keys in whatever form they come, as one batch that the kernels hash without the GIL."""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping, Set
from typing import TYPE_CHECKING, Any, TypeAlias

from mqindex._native.keys import KeyBatch, hashes_to_slots, seed_of
from mqindex.columns.limits import whole_number_from

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Keys: TypeAlias = Any
"""list, tuple or iterable of str; ndarray of text; Arrow, polars or pandas strings (the Arrow PyCapsule interface)."""


def key_batch(keys: Keys, topic: str | None = None) -> KeyBatch:
    """Take keys of any origin; with a topic each means `topic#key`.

    Buffers (Arrow, NumPy's U and S) are kept and hashed later, sequences of str are hashed now.

    Raises
    ------
    TypeError
        Not a sequence of text. A single str, a set and a mapping are refused too: the order of keys must be defined.
    ValueError
        A null; the message names its position.

    >>> key_batch(["a", "b"], topic="T").hashes().tolist()
    [81906, 81907]
    """
    if isinstance(keys, KeyBatch):
        return keys
    if isinstance(keys, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"keys: expected a sequence of str, got one {type(keys).__name__}")
    if isinstance(keys, (Set, Mapping)) and not isinstance(keys, KeysView):
        raise TypeError(f"keys: expected a sequence of str, got {type(keys).__name__}")
    batch = KeyBatch(seed_of(None if topic is None else text_of("topic", topic)))
    if isinstance(keys, (list, tuple)):
        batch.add_sequence(keys)
    elif hasattr(keys, "__arrow_c_array__"):
        batch.add_array(*keys.__arrow_c_array__())
    elif hasattr(keys, "__arrow_c_stream__"):
        _add_stream(batch, keys)
    elif hasattr(keys, "__array__"):
        _add_ndarray(batch, keys)
    elif isinstance(keys, Iterable):
        batch.add_sequence(tuple(keys))
    else:
        raise TypeError(f"keys: expected a sequence of str, got {type(keys).__name__}")
    return batch


def index_key(topic: str | None, key: str) -> str:
    """The whole `topic#key` that is hashed; without a topic the key is one.

    >>> index_key("T", "a"), index_key(None, "T#a")
    ('T#a', 'T#a')
    """
    whole = text_of("key", key)
    return whole if topic is None else f"{text_of('topic', topic)}#{whole}"


def text_of(name: str, text: str) -> str:
    """The argument as str itself; `TypeError`, naming it: no text."""
    if not isinstance(text, str):
        raise TypeError(f"{name}: expected str, got {type(text).__name__}")
    return text if type(text) is str else str.__str__(text)  # kernels take no subclass, as NumPy's


def _add_stream(batch: KeyBatch, keys: Keys) -> None:
    try:
        capsule = keys.__arrow_c_stream__()
    except ImportError:  # pandas exports through pyarrow, which need not be there
        _add_ndarray(batch, keys)
    else:
        batch.add_stream(capsule)


def _add_ndarray(batch: KeyBatch, keys: Keys) -> None:
    import numpy as np

    from mqindex.columns.numbers import refuse_masked

    array = np.asarray(keys)
    if array.ndim != 1:
        raise TypeError(f"keys: expected one dimension, got {array.ndim}")
    refuse_masked("keys", keys)
    if not array.size:  # of float64, if it was made of an empty list
        return
    if array.dtype.kind == "U":
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        batch.add_fixed(native if native.flags.aligned else native.copy(), True)
    elif array.dtype.kind == "S":
        batch.add_fixed(array, False)
    elif array.dtype.kind in "OT":
        batch.add_sequence(array.tolist())
    else:
        raise TypeError(f"keys: expected text, got an array of {array.dtype}")


def key_hashes(keys: Keys, *, topic: str | None = None) -> npt.NDArray[np.int32]:
    """Non-negative Java hashes of many keys, or of `topic#key` without building that string.

    Parameters
    ----------
    keys : list[str], ndarray of text, Arrow, polars or pandas strings, shape (n,)
        Bytes are taken as UTF-8, malformed ones replaced as Java does.
    topic : str, optional

    Returns
    -------
    ndarray of int32, shape (n,)

    Notes
    -----
    Source: RocketMQ 4.9.3, `store/index/IndexFile.indexKeyHashMethod`.

    Examples
    --------
    >>> key_hashes(["MessageKey", "KEY-1"], topic="TopicTest").tolist()
    [638347386, 173552481]
    """
    return key_batch(keys, topic).hashes()


def hash_slots(keys: Keys, hash_slot_num: int, *, topic: str | None = None) -> npt.NDArray[np.int32]:
    """The slot that each key (or `topic#key`) falls into, `key_hash % hash_slot_num`: ndarray of int32, shape (n,).

    Parameters as of `key_hashes`; `hash_slot_num`: how many slots the index file has.

    Source: RocketMQ 4.9.3, `store/index/IndexFile.putKey`.

    >>> hash_slots(["MessageKey"], 5_000_000, topic="TopicTest").tolist()
    [3347386]
    """
    slots = whole_number_from(1, "hash_slot_num", hash_slot_num)
    hashes = key_hashes(keys, topic=topic)
    hashes_to_slots(hashes, slots)
    return hashes
