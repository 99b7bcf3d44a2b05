"""Which messages match a subscription: an expression of tags, compared as hashes first and as strings afterwards."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mqindex._native.log_columns import texts_among
from mqindex.rocketmq.queue.queue_units import tag_hash

_ALL = "*"
_MIN_TAGS_CODE = -(2**31)  # what is less is an address in an extension file
_SPACES = "".join(map(chr, range(33)))  # what Java's trim removes


class TagFilter:
    """`TagA || TagB`; `*`, an empty expression or None: every message. Immutable.

    A broker compares the low 32 bits of a unit's tags code; the consumer compares the strings. A message without TAGS
    matches `*` only, and a `*` beside other tags is a tag like them.
    Source: RocketMQ 4.9.3 `FilterAPI.buildSubscriptionData`, `DefaultMessageFilter`, `PullAPIWrapper`.

    >>> wanted = TagFilter("TagA || TagB")
    >>> sorted(wanted.tags), wanted.matches_code(2598919), wanted.matches("TagC"), TagFilter("*").tags
    (['TagA', 'TagB'], True, False, None)
    """

    def __init__(self, expression: str | None) -> None:
        self.tags: frozenset[str] | None = _parse(expression)
        self.hashes: npt.NDArray[np.int32] = np.array(sorted(map(tag_hash, self.tags or ())), np.int32)
        self.hashes.flags.writeable = False
        self._hashes = frozenset(self.hashes.tolist())

    def matches_code(self, tags_code: int) -> bool:
        """Whether the broker would send the message of a unit; True also for an address that leads nowhere."""
        if self.tags is None or tags_code < _MIN_TAGS_CODE:
            return True
        return (tags_code & 0xFFFFFFFF ^ 0x80000000) - 0x80000000 in self._hashes

    def matches(self, tags: str | None) -> bool:
        """Whether a consumer keeps a message with these TAGS; True also where the expression names no tag at all."""
        return not self.tags or tags in self.tags

    def matching(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """`matches` of a whole column; a message without TAGS has an empty text, which no tag has."""
        if not self.tags:
            return np.ones(len(offsets) - 1, np.bool_)
        return texts_among(data, offsets, tuple(tag.encode(errors="surrogatepass") for tag in self.tags))


def tag_filter(expression: str | None) -> TagFilter:
    """The filter of an expression, cached: consumers use the same one again and again."""
    try:
        return _cached(expression)
    except TypeError:  # what has no hash is no text
        return TagFilter(expression)


_cached = lru_cache(maxsize=64)(TagFilter)


def _parse(expression: str | None) -> frozenset[str] | None:
    if expression is None or expression in ("", _ALL):
        return None
    if not isinstance(expression, str):
        raise TypeError(f"tags: expected an expression like 'TagA || TagB', got {type(expression).__name__}")
    if not expression.replace("||", ""):
        raise ValueError(f"tags: expected an expression like 'TagA || TagB', got {expression!r}")
    return frozenset(filter(None, (part.strip(_SPACES) for part in expression.split("||"))))
