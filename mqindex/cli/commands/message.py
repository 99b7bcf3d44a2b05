"""`mqindex message`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from mqindex._words import plural
from mqindex.cli.keys import argument_text
from mqindex.cli.kinds import require_store
from mqindex.cli.options import json_option, out_file_option, store_options, subcommand
from mqindex.cli.places import appearing, require_no_broker_file, require_outside
from mqindex.cli.printing.output import command_line, print_json, print_line
from mqindex.cli.rocketmq.actions import require_log
from mqindex.cli.rocketmq.messages import (
    MOST_OF_AN_ID,
    Body,
    absence,
    find_messages,
    message_fields,
    print_message,
)
from mqindex.cli.trouble import TROUBLE, Trouble, say, true_from_here

if TYPE_CHECKING:
    from mqindex.rocketmq import Message, MessageStore
    from mqindex.rocketmq.options import StoreArguments


@subcommand(
    "message",
    "mqindex message /data/store 124833 0A00000200002A9F000000000001E7A1",
    "mqindex message /data/store C0A8010A1F902B193F2DE290F33C0213 --out body.bin",
)
@click.argument("store", metavar="STORE")
@click.argument("ids", nargs=-1, required=True, metavar="PHY_OFFSET|MSGID...")
@click.option(
    "--body", "form", type=click.Choice(["text", "hex"]), help="Print the whole body so.  [default: its beginning]"
)
@out_file_option("Write the body, decompressed, to a new file; of one message.")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option("--topic", metavar="T", help="Look for a UNIQ_KEY in this topic.  [default: in all that have queues]")
@store_options
@json_option
def command(
    *,
    store: str,
    ids: tuple[str, ...],
    form: str | None,
    out: str | None,
    force: bool,
    topic: str | None,
    options: StoreArguments,
    as_json: bool,
) -> int:
    """Show messages whole: every field, the properties, and the body.

    A message is named by its physical offset in the commit log, by its offset message id (32 hex digits, with IPv6
    56), or by the id that its producer made, its UNIQ_KEY, which the index finds. A body is shown as text, where it
    is none in hex; control characters are escaped. Exit code 1: a message was not found; 2: one is damaged, or its
    body cannot be decompressed.
    """
    from mqindex.files.results.whole_file import require_new_file
    from mqindex.rocketmq import MessageStore

    if out is not None and len(ids) > 1:
        raise click.UsageError("--out takes the body of one message", click.get_current_context())
    require_store(store)
    if out is not None:
        require_outside(out, store)
        require_no_broker_file(out)
        require_new_file(os.path.abspath(out), overwrite=force)
        true_from_here(appearing(out))
    require_log(store, options)
    statuses, shown = [], 0
    with MessageStore.open(store, **options) as opened:
        for name in (argument_text(text, "message id") for text in ids):
            found, status = _look(opened, name, topic)
            statuses.append(status)
            for message in found:
                body = Body.of(message)
                if as_json:
                    print_json("message", {"id": name, **message_fields(message, body, form)})
                else:
                    print_line() if shown else None
                    print_message(message, body, form, brief=out is not None)
                shown += 1
                if body.problem:
                    say(f"{name}: {body.problem}")
                    statuses.append(TROUBLE)
            if not found and as_json:
                print_json("message", {"id": name, "phy_offset": None})
            if out is not None and found:
                _write(found, out, force=force)
    return max(statuses)


def _look(opened: MessageStore, name: str, topic: str | None) -> tuple[list[Message], int]:
    """The messages of one name, and its exit code."""
    from mqindex.errors import FormatError

    try:
        found = find_messages(opened, name, topic)
    except (FormatError, Trouble) as error:
        say(f"{name}: {error}")
        return [], TROUBLE
    if not found:
        say(absence(opened, name, topic))
    if len(found) > MOST_OF_AN_ID:
        every = command_line("messages", opened.root, "--key", name)
        say(f"{name}: only the newest {plural(MOST_OF_AN_ID, 'message')} of this id are shown; all: {every}")
    return found[-MOST_OF_AN_ID:], 0 if found else 1


def _write(found: list[Message], out: str, *, force: bool) -> None:
    from mqindex.files.results.whole_file import publish_content

    if len(found) > 1:
        places = ", ".join(str(message.phy_offset) for message in found)
        raise Trouble(f"--out takes the body of one message, got {len(found)}: name one by its phy offset: {places}")
    body = Body.of(found[0])
    if body.data is not None:
        publish_content(out, body.data, overwrite=force)
        say(f"wrote {plural(len(body.data), 'byte')} to {out}")
