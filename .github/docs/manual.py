"""Builds the manual pages from the help of the commands, into `build/docs/man1`. Run by `./dev docs`, by `build.py`.

click-man writes the pages. What it does not take from a command stands here: examples and exit codes, which end its
help, and what groff would read as its own.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import click
from click_man.core import write_man_pages

from mqindex import __version__
from mqindex.cli.group import COMMANDS, root

__all__ = ["write"]


def write(out: Path) -> None:
    """A page for `mqindex` and one for each command; an option that a page lacks is a warning."""
    context = click.Context(root)
    commands = {name: command for name in COMMANDS if (command := root.get_command(context, name)) is not None}
    whole = click.Group("mqindex", commands, help=root.help, epilog=root.epilog, params=root.params)
    for command in [whole, *commands.values()]:
        command.help = _for_groff(f"{command.help}\n\n{command.epilog or ''}")
        command.short_help = command.short_help or "indexes of message queues: verify, repair, rebuild, query"
    out.mkdir(parents=True, exist_ok=True)
    write_man_pages("mqindex", whole, version=f"mqindex {__version__}", target_dir=str(out))
    for name, command in {"mqindex": whole, **{f"mqindex-{name}": one for name, one in commands.items()}}.items():
        _check(out / f"{name}.1", command)


def _for_groff(text: str) -> str:
    escaped = "\n".join(line.strip() for line in text.replace("\\", "\\e").strip().splitlines())
    return escaped.replace("\n.", "\n\\&.").replace("\n'", "\n\\&'")


def _check(page: Path, command: click.Command) -> None:
    text = page.read_text().replace("\\-", "-")
    wanted = [flag for param in command.params if isinstance(param, click.Option) for flag in param.opts]
    wanted += ["Example: mqindex"] if page.stem != "mqindex" else [f"mqindex-{name}(1)" for name in COMMANDS]
    for words in wanted:
        if words not in text:
            warnings.warn(f"{page.name} lacks {words}", stacklevel=1)
