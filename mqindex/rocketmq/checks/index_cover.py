"""Which files of a log are wholly in the index: a scan by key may then ask the index for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from mqindex.rocketmq.checks.diagnosis import Diagnosis
from mqindex.rocketmq.tally.split_zones import Kept
from mqindex.zones.cache import FileIdentity, identity_of
from mqindex.zones.index_cover import IndexCover


def versions_of(paths: Iterable[str]) -> dict[str, FileIdentity]:
    """Which versions of index files are going to be checked; a broker may delete one meanwhile."""
    found = {}
    for path in paths:
        try:
            found[path] = identity_of(path)
        except FileNotFoundError:
            continue
    return found


def index_covers(index: Diagnosis, versions: Mapping[str, FileIdentity], files: Iterable[Kept]) -> Iterator[IndexCover]:
    """Those of the log's files of which the index lacks nothing.

    index : of it every entry was compared with the log. versions : of its files, from before that.
    files : of the log, as their zone maps were kept: without damage
    """
    if index.survey.options.index_switch is not None:  # then gaps are not looked for
        return
    lacking = [one.gap.stretch for one in index.gaps if one.entries]
    for file in files:
        if any(one.start < file.end and file.start < one.stop for one in lacking):
            continue
        holding = [
            one.path
            for one in index.good
            if one.begin is not None and one.end is not None
            if one.begin.phy_offset < file.end and file.start <= one.end.phy_offset
        ]
        if versions.keys() >= set(holding):
            known = frozenset(versions[path] for path in holding)
            yield IndexCover(
                file.identity, file.end, index.survey.geometry.value, known, np.array(file.rolled_back, np.int64)
            )
