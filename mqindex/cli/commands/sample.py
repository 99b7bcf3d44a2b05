"""`mqindex sample`."""

from __future__ import annotations

import os
from importlib import resources

import click

from mqindex.cli.options import json_option, subcommand
from mqindex.cli.places import appearing, require_outside
from mqindex.cli.printing.output import command_line, print_json, print_line
from mqindex.cli.trouble import true_from_here
from mqindex.files.results.unpacking import unpack

ARCHIVE = ("sample", "sample.tar.gz")  # of the package `mqindex.cli`


@subcommand("sample", "mqindex sample .", here="unpack it here, and copy it")
@click.argument("directory", metavar="DIR")
@json_option
def command(*, directory: str, as_json: bool) -> int:
    """Unpack two small examples into DIR: `store`, of a RocketMQ broker that lost its index in a crash, and
    `orders-0`, a Kafka partition that lost its time indexes.

    Real brokers wrote them: RocketMQ 4.9.3 and Kafka 4.1.0. DIR is made if it is not there. Nothing in it is
    overwritten, and both appear complete, or neither. Exit code 0: they are there.
    """
    last = os.path.join(directory, "store")  # of the two
    require_outside(last)
    true_from_here(appearing(last))
    with resources.files("mqindex.cli").joinpath(*ARCHIVE).open("rb") as archive:
        partition, store = unpack(archive, os.path.abspath(directory))
    true_from_here(f"{last} and {os.path.join(directory, os.path.basename(partition))} are complete")
    if as_json:
        print_json("sample", {"store": store, "partition": partition})
        return 0
    store, partition = (
        os.path.normpath(os.path.join(directory, os.path.basename(each))) for each in (store, partition)
    )
    print_line(f"{store}: of a RocketMQ 4.9.3 broker that lost its index in a crash")
    print_line(f"{partition}: of a Kafka 4.1.0 broker, without its time indexes")
    print_line(f"-> `{command_line('verify', store)}`")
    return 0
