"""What README and the pages of `.github/docs` say that a shell or Python prints, and the files that they begin with."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

__all__ = ["MADE", "PAGES", "README", "blocks_of", "stories"]

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = ROOT / ".github" / "docs"

_NEEDS = {"spark": pytest.mark.spark, "s3://": pytest.mark.peer}
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks_of(text: str) -> list[tuple[str, str]]:
    """Language and body of each fenced block."""
    return _FENCE.findall(text)


def stories() -> Iterator[Any]:
    """What runs in a directory of its own: each section of README, and each page."""
    if not README.exists():
        return
    for section in re.split(r"^(?=#+ )", README.read_text(), flags=re.MULTILINE):
        yield from _story(section.partition("\n")[0].strip("# "), section)
    for page in sorted(PAGES.rglob("*.md")):
        yield from _story(str(page.relative_to(PAGES)), page.read_text())


def _story(name: str, text: str) -> Iterator[Any]:
    blocks = [block for block in blocks_of(text) if block[0] in ("console", "pycon")]
    if blocks:
        said = "".join(body for _, body in blocks)
        yield pytest.param(blocks, id=name, marks=[mark for word, mark in _NEEDS.items() if word in said])


def _payments(place: Path) -> None:
    """A partition in which a transaction was left open, by a Kafka 4.1.0 broker."""
    PartitionCase("410-txn-open").closed(place / "unpacked").rename(place / "payments-0")
    shutil.rmtree(place / "unpacked")


def _seconds(place: Path) -> None:
    """A partition of a producer that took seconds for milliseconds."""
    writer = PartitionWriter(place / "seconds-0")
    for number in range(100):
        writer.append([KafkaRecord(b"key", b"value", timestamp=FIRST_TIME // 1000 + number)])
    writer.close()


MADE: dict[str, Callable[[Path], None]] = {"payments-0": _payments, "seconds-0": _seconds}
