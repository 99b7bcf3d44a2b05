"""Which entries of the log the good index files hold together, and what is in the gaps.

The log's entries are a line; a good file covers a stretch of it from one `Place` to another, inside one message's
keys if need be. What no file covers is a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mqindex.engines import Engine
from mqindex.rocketmq.checks.check import Checked
from mqindex.rocketmq.index.compare import Place
from mqindex.rocketmq.log.log_entries import LogEntries, LogSpan, Tags
from mqindex.rocketmq.pipeline.splits import Extracted, LogRange, cut, extract


@dataclass(frozen=True, slots=True)
class Gap:
    """Entries between two places that no good file holds: after the good file `after`, before the good file `before`.

    `stretch`: the frames to read; of their entries the first `skip` and the last `drop` are covered.
    """

    after: Checked | None
    before: Checked | None
    stretch: LogRange
    skip: int
    drop: int


@dataclass(frozen=True, slots=True)
class Filled:
    """A gap and what was read of it."""

    gap: Gap
    extracted: Extracted

    @property
    def entries(self) -> int:
        return max(self.extracted.entries - self.gap.skip - self.gap.drop, 0)

    @property
    def message_follows(self) -> bool:
        """A message comes after the last entry, so a broker has created the file after a full one."""
        covered = self.gap.after.end.phy_offset if self.gap.after is not None and self.gap.after.end else -1
        return self.extracted.last_message > max(self.extracted.last_entry, covered)


def gaps(good: Sequence[Checked], spans: Sequence[LogSpan], *, tags: Tags) -> list[Gap]:
    """The stretches before, between and after the good files, in the log's order, empty ones included."""
    if not spans:
        return []
    low, high = spans[0].file_start, spans[-1].stop
    found: list[Gap] = []
    at, after = Place(low, 0), None
    with LogEntries(spans, tags=tags) as log:
        for file in good:
            if file.begin is None or file.end is None:
                after = file  # below the log's minimum, or without entries
                continue
            if file.begin > at:
                total = len(log.of(file.begin.phy_offset))
                stretch = LogRange(at.phy_offset, file.begin.phy_offset + 1)
                found.append(Gap(after, file, stretch, at.ordinal, total - file.begin.ordinal))
            at, after = max(file.end, at), file  # they are in the order of their ends; some may be before the log
        found.append(Gap(after, None, LogRange(min(at.phy_offset, high), high), at.ordinal, 0))
    return found


def measure(
    engine: Engine, found: Sequence[Gap], spans: Sequence[LogSpan], split_size: int, *, tags: Tags, out: str | None
) -> list[Filled]:
    """Read the gaps, all in one round of tasks; with `out` their runs stay there."""
    stretches = [cut(spans, gap.stretch, split_size, tags=tags, out=out) for gap in found]
    extracted = extract(engine, stretches, name="read what the index lacks", spans=spans)
    return [Filled(_begun_later(gap, one), one) for gap, one in zip(found, extracted, strict=True)]


def _begun_later(gap: Gap, extracted: Extracted) -> Gap:
    """The gap, whose remaining entries are all not covered if a broker deleted the message in which it begins."""
    low = extracted.spans[0].file_start if extracted.spans else 0
    return replace(gap, skip=0) if gap.stretch.start < low else gap
