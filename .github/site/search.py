"""Words that people type into the site's search, and the place that has them in its title. `./dev docs` runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

INDEX = Path(__file__).parents[2] / "build" / "docs" / "search.json"
ASKED = {
    "time range": "howto/topic-to-parquet.html",
    "index lost": "howto/index-lost.html",
    "volume not mounted": "howto/volume-not-mounted.html",
    "broker will not start": "howto/broker-will-not-start.html",
    "csv": "howto/orders-in-a-csv.html",
    "retention": "howto/retention.html",
    "time index": "howto/kafka-time-index.html",
    "hanging transaction": "howto/hanging-transaction.html",
    "s3": "howto/pyspark-on-s3.html",
    "live store": "howto/copy-of-a-live-store.html",
    "missing-entries": "findings.html#missing-entries",
    "mqindex verify": "shell.html#mqindex-verify",
    "select_phy_offsets": "reference/rocketmq.html#mqindex.rocketmq.IndexFile.select_phy_offsets",
    "index file": "formats/rocketmq.html#mqindex.rocketmq.layout--index-file",
}


def main() -> int:
    titles = [(item["location"], item["title"].lower()) for item in json.loads(INDEX.read_text())["items"]]
    lost = [
        f"a search for '{words}' does not lead to {place}"
        for words, place in ASKED.items()
        if not any(at == place and all(word in title for word in words.split()) for at, title in titles)
    ]
    for one in lost:
        print(f"docs: {one}", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
