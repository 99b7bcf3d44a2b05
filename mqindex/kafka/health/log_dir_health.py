"""The health of a log dir, of a partition or of one file: what `kafka.report` returns."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from mqindex.health import Read, Site, plain
from mqindex.kafka.health.partition_health import CodecShare, PartitionHealth, Totals
from mqindex.report import Report


@dataclass(frozen=True, slots=True)
class LogDirHealth:
    """How a log dir, a partition or one file of a segment is.

    Attributes
    ----------
    verify : Report, all that `verify` finds
    site : Site, the host, the broker, and how long the disk lasts
    kind : str, "log dir", "partition" or "file": what was looked at
    totals : Totals, of all partitions
    codecs : tuple of CodecShare, of all partitions
    partitions : tuple of PartitionHealth, the 100 largest by bytes, largest first
    others : Totals, of the partitions that are not among them
    read : Read, what it was made of
    """

    verify: Report
    site: Site
    kind: str
    totals: Totals
    codecs: tuple[CodecShare, ...]
    partitions: tuple[PartitionHealth, ...]
    others: Totals
    read: Read

    @property
    def ok(self) -> bool:
        """`verify` found no error."""
        return self.verify.ok

    def to_dict(self) -> dict[str, Any]:
        """`ok` and every field as dicts, lists, strings and numbers, for JSON."""
        parts = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "verify"}
        kind = parts.pop("kind")
        return {
            "ok": self.ok,
            "kind": kind,
            "verify": self.verify.to_dict(),
            **{name: _plain(part) for name, part in parts.items()},
        }


def _plain(part: Any) -> Any:
    return [plain(one) for one in part] if isinstance(part, tuple) else plain(part)
