"""Which messages a scan is asked for: what is compared, and which columns that takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mqindex._native.numbers import milliseconds, whole_number
from mqindex.columns.columns import Columns
from mqindex.columns.limits import several_names
from mqindex.columns.numbers import Time
from mqindex.columns.texts import TextSet
from mqindex.rocketmq.serving.tag_filter import TagFilter, tag_filter
from mqindex.zones.zone_map import ZoneMap

TAGS_KEY: Final = b"T#"  # before the tags where they are indexed (5.4)


@dataclass(frozen=True)
class MessageFilter:
    """What is compared with every message; None: all match.

    Attributes
    ----------
    topics, keys : TextSet
    queue_ids : sorted int32 array
    begin, end : ms since the epoch, of the store timestamp; `end` is exclusive
    tags : TagFilter
    """

    topics: TextSet | None
    queue_ids: npt.NDArray[np.int32] | None
    begin: int | None
    end: int | None
    keys: TextSet | None
    tags: TagFilter

    @classmethod
    def of(
        cls,
        topic: str | Iterable[str] | None,
        queue_id: int | Iterable[int] | None,
        begin: Time | None,
        end: Time | None,
        keys: str | Iterable[str] | None,
        tags: str | None,
    ) -> MessageFilter:
        """The filter of a caller's arguments; TypeError and ValueError name the one that is wrong."""
        return cls(
            _texts("topic", topic),
            _numbers(queue_id),
            None if begin is None else milliseconds("begin", begin),
            None if end is None else milliseconds("end", end),
            _texts("keys", keys),
            tag_filter(tags),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are compared."""
        names = ["topic"] if self.topics is not None else []
        names += ["queue_id"] if self.queue_ids is not None else []
        names += ["store_timestamp"] if self.has_period else []
        names += ["tags"] if self.tags.tags or self.keys is not None else []
        return (*names, *(("keys", "uniq_key") if self.keys is not None else ()))

    @property
    def has_period(self) -> bool:
        """Whether times are compared."""
        return self.begin is not None or self.end is not None

    @property
    def has_zones(self) -> bool:
        """Whether a zone map tells what can match."""
        return self.has_period or self.topics is not None

    def stretches(self, zones: ZoneMap, start: int, stop: int) -> list[tuple[int, int]]:
        """The stretches of a file that can hold a match which begins in [start, stop); each begins at a message."""
        chosen = zones.in_period(self.begin, self.end) & zones.between(start, stop)
        if self.topics is not None:
            chosen &= zones.with_topics(self.topics.hashes)
        return [(at, min(end, stop)) for at, end in zones.stretches(chosen)]

    def matching(self, batch: Columns) -> npt.NDArray[np.bool_] | None:
        """Which messages of a batch that has `columns` match: bool[n]; None: nothing is compared."""
        if not self.columns:
            return None
        chosen = np.ones(len(batch), np.bool_)
        if self.begin is not None:
            chosen &= batch["store_timestamp"] >= self.begin
        if self.end is not None:
            chosen &= batch["store_timestamp"] < self.end
        if self.queue_ids is not None:
            chosen &= np.isin(batch["queue_id"], self.queue_ids)
        if self.topics is not None and chosen.any():
            chosen &= self.topics.equal(batch["topic"])
        if self.tags.tags and chosen.any():
            chosen &= self.tags.matching(batch["tags"].data, batch["tags"].offsets)
        if self.keys is not None and chosen.any():
            chosen &= self._with_keys(self.keys, batch)
        return chosen

    def _with_keys(self, keys: TextSet, batch: Columns) -> npt.NDArray[np.bool_]:
        found = keys.among(batch["uniq_key"]) | keys.among_words(batch["keys"])
        of_tags = [key.removeprefix(TAGS_KEY) for key in keys.texts if key.startswith(TAGS_KEY)]
        return found | TextSet(of_tags).among(batch["tags"]) if of_tags else found


def _texts(name: str, given: str | Iterable[str] | None) -> TextSet | None:
    if given is None:
        return None
    for as_list in ("to_pylist", "to_list", "tolist"):  # Arrow's, of polars and pandas, NumPy's
        if hasattr(given, as_list):
            given = getattr(given, as_list)()
            break
    texts = [given] if isinstance(given, str) else several_names(name, given)
    return TextSet(text.encode(errors="surrogatepass") for text in texts)


def _numbers(given: int | Iterable[int] | None) -> npt.NDArray[np.int32] | None:
    if given is None:
        return None
    numbers = given if isinstance(given, Iterable) else [given]
    return np.unique([whole_number("queue_id", number) for number in numbers])
