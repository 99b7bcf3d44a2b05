"""The root command. A subcommand's module is imported when it is run, so that `mqindex --help` starts at once."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Sequence
from typing import Final

import click

from mqindex import __version__

COMMANDS: Final = {  # in the order in which people meet them
    "info": "Say what a file or directory is, and what is in it.",
    "query": "Look keys up in a store, or offsets and times in a Kafka partition.",
    "messages": "Print the messages of a store, the records of a partition: of a topic, a time, a key.",
    "sql": "Ask messages, records and indexes in SQL.",
    "message": "Show messages of a RocketMQ store whole: fields, properties and body.",
    "verify": "Check a store's or partition's indexes against themselves and the log.",
    "report": "Make one page with pictures of a store's or partition's health.",
    "repair": "Bring back in place what the indexes of a store or partition lack.",
    "rebuild": "Build the indexes of a store or partition anew, elsewhere.",
    "optimize": "Write a store's index files anew for look-ups that read fewer pages.",
    "follow": "Keep an index beside a live RocketMQ broker's store, message by message.",
    "dump": "Print every entry of an index, message or batch of a log, or unit of a queue.",
    "hash": "Print RocketMQ's hashes, and slots, of keys.",
    "doctor": "Say what of mqindex works on this machine, and what to do where it does not.",
    "sample": "Unpack a crashed store and a damaged partition to try everything on.",
}

GREETING: Final = f"""\
mqindex {__version__} reads, checks and mends what message brokers keep on disk: RocketMQ's stores, Kafka's partitions.

  mqindex sample .       unpacks a crashed store and a damaged partition, to try everything on
  mqindex verify PATH    says what is missing or wrong, and whether a broker would start
  mqindex repair PATH    brings it back in place, and prints the line that undoes it

`mqindex --help` lists all commands; after a command, `--help` explains it. `mqindex doctor` says what works here."""


class _OnDemand(click.Group):
    """A group that knows its commands' names and one-line helps before it imports any of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"mqindex.cli.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS:
            import difflib  # only needed for a misspelt name

            for near in difflib.get_close_matches(args[0], COMMANDS, 1):
                raise click.UsageError(f"no such command: {args[0]}; did you mean {near}?", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    name="mqindex",
    cls=_OnDemand,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 yes, clean or done; 1 no, or findings; 2 trouble. Results go to stdout, the rest to stderr.",
)
@click.option(
    "--install-completion", is_flag=False, flag_value="", metavar="[bash|zsh|fish]", is_eager=True, expose_value=False,
    callback=lambda context, option, value: _install_completion(context, value),
    help="Complete commands, options and paths in this shell, or the one named, by a line in its start file.",
)  # fmt: skip
@click.version_option(__version__, "--version", prog_name="mqindex", message="%(prog)s %(version)s")
def root() -> None:
    """Read, verify, repair, rebuild and query the indexes of message queues: RocketMQ's stores, Kafka's partitions."""


def _install_completion(context: click.Context, shell: str | None) -> None:
    if shell is not None and not context.resilient_parsing:
        from mqindex.cli.completion import install

        click.echo(install(shell))
        context.exit()


def run(arguments: Sequence[str]) -> int:
    """Run one command line; exceptions pass through: `root.main()` would handle Ctrl-C and closed pipes differently."""
    if "_MQINDEX_COMPLETE" in os.environ:
        from mqindex.cli.completion import answer

        return answer(root)
    try:
        with root.make_context("mqindex", list(arguments)) as context:
            if not arguments:
                click.echo(GREETING)
                return 0
            _require_rich()
            status = root.invoke(context)
    except click.exceptions.Exit as exit_:  # --help, --version
        return exit_.exit_code
    return status if isinstance(status, int) else 0


def _require_rich() -> None:
    # Checked now, and not after hours of work, when their report is printed.
    try:
        found = importlib.util.find_spec("rich")
    except ValueError:
        found = None
    if found is None:
        raise ModuleNotFoundError("rich is missing", name="rich")
