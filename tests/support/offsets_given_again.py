"""Stores of a broker that had lost a queue's end, and gave queue offsets again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from mqindex.rocketmq import ConsumeQueue, rebuild
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter

CONFIG = {"maxHashSlotNum": 5, "maxIndexNum": 256, "mappedFileSizeConsumeQueue": 2000}


def phy_offsets(root: Path) -> list[int]:
    with ConsumeQueue.open(root / "consumequeue/T/0") as queue:
        return [int(one) for one in np.asarray(queue.units()["phy_offset"])]


def store_with_offsets_given_again(root: Path, count: int, again: range, config: dict[str, int]) -> list[int]:
    """Messages, and later ones at the queue offsets `again`, with which the queue ends; returns what it had before."""
    writer = LogWriter(root / "commitlog", mapped_file_size=1 << 20)
    written = writer.write(*(
        LogMessage("T", queue_offset=offset, keys=f"k{number:05d}", store_timestamp=FIRST_TIME + number)
        for number, offset in enumerate([*range(count), *again])
    ))  # fmt: skip
    rebuild(root, root / "out", config=config)
    for part in ("index", "consumequeue"):
        (root / "out" / part).rename(root / part)
    assert phy_offsets(root) == written[:count]
    put_units(root, config, {place: written[count + number] for number, place in enumerate(again)})
    end = again.stop * 20
    for path in (root / "consumequeue/T/0").iterdir():
        if int(path.name) >= end:
            path.unlink()
        elif int(path.name) + config["mappedFileSizeConsumeQueue"] > end:
            os.truncate(path, end - int(path.name))
            os.truncate(path, config["mappedFileSizeConsumeQueue"])
    return written[:count]


def put_units(root: Path, config: dict[str, int], units: dict[int, int]) -> None:
    """Other phy offsets at places of the queue."""
    size = config["mappedFileSizeConsumeQueue"]
    for place, phy_offset in units.items():
        start = place * 20 // size * size
        with open(root / f"consumequeue/T/0/{start:020d}", "r+b") as file:
            file.seek(place * 20 - start)
            file.write(phy_offset.to_bytes(8, "big"))
