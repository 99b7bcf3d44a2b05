"""`mqindex hash`."""

from __future__ import annotations

from typing import Any

import click

from mqindex.cli.keys import argument_text, key_batches
from mqindex.cli.options import json_option, subcommand
from mqindex.cli.printing.output import Column, Rows, print_json


@subcommand("hash", "mqindex hash --topic OrderTopic --hash-slot-num 5000000 order-1 order-2")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option("--topic", metavar="T", help="Hash T#KEY, as the index does.  [default: KEY as it is]")
@click.option("--hash-slot-num", type=click.IntRange(1), metavar="N", help="Print the slot among N slots, too.")
@json_option
def command(*, keys: tuple[str, ...], topic: str | None, hash_slot_num: int | None, as_json: bool) -> int:
    """Print the key_hash of each KEY, as the broker computes it ('-': keys from stdin, one a line)."""
    from mqindex.rocketmq import hash_slots, key_hashes

    topic = None if topic is None else argument_text(topic, "topic")
    rows = Rows([Column("key_hash", 10), Column("slot", 10), Column("key")][:: 1 if hash_slot_num else 2])
    for batch in key_batches(keys):
        columns: list[list[Any]] = [key_hashes(batch, topic=topic).tolist()]
        if hash_slot_num is not None:
            columns.append(hash_slots(batch, hash_slot_num, topic=topic).tolist())
        if not as_json:
            rows.write(zip(*columns, batch, strict=True))
            continue
        names = ["key_hash", "slot"][: len(columns)]
        for key, *values in zip(batch, *columns, strict=True):
            print_json("hash", {"topic": topic, "key": key, **dict(zip(names, values, strict=True))})
    return 0
