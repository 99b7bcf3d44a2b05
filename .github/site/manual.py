"""The commands' own help as pages: `shell` is what zensical.toml takes for the site; run, it writes the manual pages
into `build/docs/man1`. `./dev docs` does both.

click-man writes the manual pages. What neither takes from a command stands here: examples and exit codes, which end
its help, and what groff would read as its own.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import click
from click_man.core import write_man_pages

from mqindex import __version__
from mqindex.cli.group import COMMANDS, root

OUT = Path(__file__).parents[2] / "build" / "docs" / "man1"


def _whole() -> click.Group:
    """`mqindex` with all its commands loaded, each with its examples in its help."""
    context = click.Context(root)
    commands = {name: command for name in COMMANDS if (command := root.get_command(context, name)) is not None}
    whole = click.Group("mqindex", commands, help=root.help, epilog=root.epilog, params=root.params)
    for command in [whole, *commands.values()]:
        command.help = f"{inspect.cleandoc(command.help or '')}\n\n{command.epilog or ''}"
        command.short_help = command.short_help or "indexes of message queues: verify, repair, rebuild, query"
    return whole


shell = _whole()


def main() -> int:
    """A page for `mqindex` and one for each command; an option that a page lacks is an error."""
    every = {"mqindex": shell, **{f"mqindex-{name}": command for name, command in shell.commands.items()}}
    for command in every.values():
        command.help = _for_groff(command.help or "")
    OUT.mkdir(parents=True, exist_ok=True)
    write_man_pages("mqindex", shell, version=f"mqindex {__version__}", target_dir=str(OUT))
    lacking = [f"{name}.1 lacks {words}" for name, one in every.items() for words in _lacking(OUT / f"{name}.1", one)]
    for one in lacking:
        print(f"docs: {one}", file=sys.stderr)
    return 1 if lacking else 0


def _for_groff(text: str) -> str:
    escaped = "\n".join(line.strip() for line in text.replace("\\", "\\e").strip().splitlines())
    return escaped.replace("\n.", "\n\\&.").replace("\n'", "\n\\&'")


def _lacking(page: Path, command: click.Command) -> list[str]:
    text = page.read_text().replace("\\-", "-")
    wanted = [flag for param in command.params if isinstance(param, click.Option) for flag in param.opts]
    wanted += ["Example: mqindex"] if page.stem != "mqindex" else [f"mqindex-{name}(1)" for name in COMMANDS]
    return [words for words in wanted if words not in text]


if __name__ == "__main__":
    sys.exit(main())
