"""The health of a store: what a report shows, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mqindex.health import Read, Site, plain
from mqindex.report import Report
from mqindex.rocketmq.health.coverage import Coverage
from mqindex.rocketmq.health.groups import GroupsHealth
from mqindex.rocketmq.health.index import IndexHealth
from mqindex.rocketmq.health.topics import TopicsHealth


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """What `report` says of a store.

    Attributes
    ----------
    verify : Report, as `verify` returns it: findings, actions, the next start, settings and where they are from
    site : Site, the host, the broker, and how long the disk lasts
    coverage, index, topics : None where the log is gone, so that nothing was read of it
    groups : GroupsHealth, consumers and what they have not consumed
    read : Read, what it is all made of, and which parts are samples
    """

    verify: Report
    site: Site
    coverage: Coverage | None
    index: IndexHealth | None
    topics: TopicsHealth | None
    groups: GroupsHealth
    read: Read

    @property
    def ok(self) -> bool:
        """True when no finding is an error."""
        return self.verify.ok

    def to_dict(self) -> dict[str, Any]:
        """Every field as dicts, lists, strings and numbers, for JSON."""
        sections = ("site", "coverage", "index", "topics", "groups", "read")
        return {
            "ok": self.ok,
            "verify": self.verify.to_dict(),
            **{name: plain(getattr(self, name)) for name in sections},
        }
