"""The page of the settings of a broker that are read, made from their table. To write it: run this module with -m."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mqindex._settings import Setting
from mqindex.kafka.settings import SETTINGS as OF_TOPICS
from mqindex.rocketmq.settings import SETTINGS

__all__ = ["PATH", "document"]

PATH = Path(__file__).parents[2] / ".github" / "docs" / "settings.md"
_INTRODUCTION = """\
# Settings

## Of a RocketMQ broker

These settings, by the broker's own names, are what `--broker-conf FILE` (`config=`) is read for: a `broker.conf`,
whole, as the broker starts with it, or in Python also a mapping. Whatever else is in the file is passed over; a name
that is nearly one of these is refused. What a `broker.conf` does not set is the broker's default. What a mapping does
not set is inferred from the files where these show it; where nothing does, `repair` refuses to guess it. This page is
made from the table `mqindex.rocketmq.settings`.

"""
_KAFKA = """
## Of Kafka's topics

No file of a partition has these: they are options, `--index-interval-bytes` (`index_interval_bytes=`) and
`--max-index-size` (`max_index_size=`). This is the table `mqindex.kafka.settings`.

"""
_HEAD = """\
| setting | default | unit | what it decides |
|---|---|---|---|
"""


def document() -> str:
    """The whole page."""
    return f"{_INTRODUCTION}{_table(SETTINGS)}{_KAFKA}{_table(OF_TOPICS)}"


def _table(settings: Mapping[str, Setting[Any]]) -> str:
    return _HEAD + "".join(map(_row, sorted(settings.values(), key=lambda one: one.name.lower())))


def _row(setting: Setting[Any]) -> str:
    default = str(setting.default).lower() if isinstance(setting.default, bool) else str(setting.default)
    former = f" (before 4.5.2 `{setting.former}`)" if setting.former is not None else ""
    cells = (f"`{setting.name}`{former}", f"`{default}`" if default else "none", setting.unit, setting.decides)
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PATH.write_text(document(), encoding="utf-8")
