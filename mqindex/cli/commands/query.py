"""`mqindex query`."""

from __future__ import annotations

import click

from mqindex.cli.broker import MOST_HITS, Question
from mqindex.cli.brokers import QUERIED, broker_of
from mqindex.cli.kinds import require_kind
from mqindex.cli.options import BrokerOptions, path_options, subcommand, time_option


@subcommand(
    "query",
    "mqindex query /data/store --topic OrderTopic order-1 order-2",
    "mqindex query /data/store --topic OrderTopic order-1 --begin -2h --messages --exact",
    "mqindex query s3://backup/store/index --topic OrderTopic - < keys.txt",
    "mqindex query /data/kafka/orders-0 --timestamp 2023-11-14T22:13:35Z",
    "mqindex query /data/kafka --timestamp -1h --csv > offsets.csv",
)
@click.argument("path", metavar="PATH")
@click.argument("keys", nargs=-1, metavar="[KEY...]")
@click.option("--topic", metavar="T", help="RocketMQ: the topic of the messages of each KEY.")
@time_option(
    "--begin",
    "RocketMQ: stored at this time or later: -1h, 2026-11-21T08:00+08:00, ...; an index knows seconds.",
    default=0,
)
@time_option("--end", "RocketMQ: stored at this time or earlier: begin <= t <= end, as the broker has it.")
@click.option(
    "--max-num",
    type=click.IntRange(0),
    default=MOST_HITS,
    show_default=True,
    metavar="N",
    help="RocketMQ: most hits a key.",
)
@click.option("--messages", is_flag=True, help="RocketMQ: print the messages: time, queue, tags, keys, id, body.")
@click.option("--exact", is_flag=True, help="RocketMQ: only messages that have the KEY, not just one of its hash.")
@click.option(
    "--offset", "offsets", multiple=True, metavar="N",
    help="Kafka: the batch that holds this offset; repeat it, or - for one a line on stdin.",
)  # fmt: skip
@click.option(
    "--timestamp", "timestamps", multiple=True, metavar="TIME",
    help="The offset of each queue, or of a partition the first record, at this time or later; repeat it, or - for one "
    "a line on stdin. Kafka also takes -1 (end), -2 (begin), -3 (greatest time).",
)  # fmt: skip
@click.option(
    "--boundary", type=click.Choice(["lower", "upper", "nearest"]),
    help="RocketMQ, --timestamp: the first message from then on, the last until then, or as brokers before 5.1.4.  "
    "[default: lower]",
)  # fmt: skip
@click.option(
    "--csv", is_flag=True,
    help="Kafka, --timestamp: topic,partition,offset, as kafka-consumer-groups --reset-offsets --from-file takes it.",
)  # fmt: skip
@path_options(*QUERIED)
def command(
    *,
    path: str,
    keys: tuple[str, ...],
    topic: str | None,
    begin: int,
    end: int | None,
    max_num: int,
    messages: bool,
    exact: bool,
    offsets: tuple[str, ...],
    timestamps: tuple[str, ...],
    boundary: str | None,
    csv: bool,
    kind: str | None,
    options: BrokerOptions,
    as_json: bool,
) -> int:
    """Look up keys in a RocketMQ store, offsets or times in a Kafka partition, and print what the broker answers.

    RocketMQ: PATH is a store's root, a directory of index files, or one index file. Printed is where the messages of
    each KEY are in the commit log, newest first; '-' reads keys from stdin, one a line. Only hashes are compared:
    another key of the same hash is found, too, unless --exact reads the messages. A TIME is ms since the epoch, a date
    and time with its zone (without: UTC), now, or -1h, -2d30m: so long ago. PATH may also be a URL (s3://, gs://, az://,
    hdfs://, https://); of its index only what the look-ups need is read; best after `mqindex optimize`.

    Kafka: PATH is a log dir (--timestamp: the offset of each partition), a partition, one segment's .log, or
    one .index (--offset) or .timeindex (--timestamp), whose entry is printed.

    Exit code 1: nothing was found.
    """
    kind = require_kind(path, kind, *QUERIED)
    question = Question(keys, topic, begin, end, max_num, messages, exact, offsets, timestamps, boundary, csv)
    return 0 if broker_of(kind).query(kind, path, question, options, as_json=as_json) else 1
