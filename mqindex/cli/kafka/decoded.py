"""`mqindex messages --decode`: what the records of the topics say that brokers keep for themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mqindex.cli.trouble import Trouble
from mqindex.files.paths import absolute, base_name, join, parent_of

if TYPE_CHECKING:
    from mqindex.cli.broker import Scanned, Selection
    from mqindex.columns.columns import Columns


class Decoded:
    """A scan whose batches are decoded, of some columns. `topic`: whose records they are."""

    def __init__(self, scan: Scanned, topic: str, columns: Sequence[str] | None) -> None:
        from mqindex.columns.columns import chosen_columns
        from mqindex.kafka.internal.decoders import DECODERS

        self._scan, self._decode = scan, DECODERS[topic]
        known = list(self._decode(scan.empty()))
        self._names = known if columns is None else chosen_columns(columns, known)

    @property
    def damage(self) -> Sequence[Any]:
        """Of the scan."""
        return self._scan.damage

    @property
    def expired(self) -> Sequence[str]:
        """Of the scan."""
        return self._scan.expired

    def empty(self) -> Columns:
        """The columns, without a row."""
        return self._made(self._scan.empty())

    def __iter__(self) -> Iterator[Columns]:
        return map(self._made, self._scan)

    def close(self) -> None:
        """End the scan."""
        self._scan.close()

    def _made(self, records: Columns) -> Columns:
        return self._decode(records).select(self._names)


def decoded_topic(path: str, selection: Selection) -> str:
    """The one topic whose records are asked for, which must be one that can be decoded."""
    from mqindex.kafka.internal.decoders import DECODERS
    from mqindex.kafka.kinds import partition_name, segment_name

    place = absolute(path)
    homes = [parent_of(place) if segment_name(place) else place]
    if selection.partitions:
        homes = [join(place, name) for name in selection.partitions]
    named = (
        [selection.topic]
        if selection.topic is not None
        else [each.topic if each else "" for each in map(partition_name, homes)]
    )
    topics = set(named)
    if len(topics) != 1 or not topics <= DECODERS.keys():
        got = ", ".join(sorted(topics)) or base_name(place)
        raise Trouble(
            f"--decode: expected --topic {' or '.join(DECODERS)}, or a partition of one of these, got {got}; "
            "control markers are the table NAME.markers of `mqindex sql`"
        )
    return topics.pop()
