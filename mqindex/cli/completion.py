"""Completion in the shell: the answers of `mqindex` while a user types, and the line by which a shell calls it.

click has the scripts of bash, zsh and fish, and knows commands and options. That line is in the file that the shell
reads when it starts; it ends with a mark, by which it is found again.
"""

from __future__ import annotations

import os
from typing import Any, Final

import click
from click.shell_completion import CompletionItem, shell_complete

from mqindex.cli.trouble import Trouble, true_from_here
from mqindex.files.places.place import is_url, without_scheme
from mqindex.wording.text import shell_command

ASKED: Final = "_MQINDEX_COMPLETE"  # set by the scripts
MARK: Final = "# mqindex completion"
SHELLS: Final = {
    "bash": f'if command -v mqindex >/dev/null; then eval "$({ASKED}=bash_source mqindex)"; fi',
    "zsh": "if (( $+commands[mqindex] )); then (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }; "
    f'eval "$({ASKED}=zsh_source mqindex)"; fi',
    "fish": f"if command -q mqindex; {ASKED}=fish_source mqindex | source; end",
}
_DIRECTORIES = ("DIR", "STORE", "BACKUP")
_PATHS = (*_DIRECTORIES, "PATH", "FILE", "INDEX")
_ELSEWHERE = ("PATH", "STORE", "INDEX", "DIR")
_HERE = "choose a place here, and copy it"


class GivenPath(click.types.StringParamType):
    """A path, as it is given; existing names are completed. `here`: what to do instead of a URL; None: give one."""

    def __init__(self, item: str, here: str | None) -> None:
        self.item, self.here = item, here

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """An empty one is a shell's variable that is not set; `file://` is a path."""
        if value == "":
            self.fail("expected a path, got an empty one", param, ctx)
        if is_url(value) and self.here is not None:
            self.fail(f"expected a path on this machine, got {value}; {self.here}", param, ctx)
        return without_scheme(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=self.item)]


class Completed(click.Command):
    """A command whose parameters that are called PATH, STORE, DIR, FILE and so on are completed as paths.

    `here`: of one that needs a disk, what to do instead of giving it a URL.
    """

    def __init__(
        self, name: str | None, *, params: list[click.Parameter], here: str | None = None, **rest: Any
    ) -> None:
        if here is not None:
            params = [param for param in params if param.name != "storage_options"]
        for param in params:
            word = (param.metavar or "").strip("[.]").partition(".")[0]
            if word in _PATHS and type(param.type) is click.types.StringParamType:
                instead = here if word in _ELSEWHERE else here or _HERE
                param.type = GivenPath("dir" if word in _DIRECTORIES else "file", instead)
        super().__init__(name, params=params, **rest)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options for files of one broker are under its name: their words begin with it."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "For RocketMQ": [], "For Kafka": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                flags, text = record
                owner = next((broker for broker in ("RocketMQ", "Kafka") if text.startswith(broker)), None)
                title = "Options" if owner is None else f"For {owner}"
                shown = text.removeprefix(f"{owner}: ")
                sections[title].append((flags, shown[:1].upper() + shown[1:]))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """A path that begins with - is taken for options: the error says how to write it."""
        words = list(args)  # the parser empties the other list
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            for path in (word for word in words if word.startswith("-") and os.path.lexists(word)):
                hint = f"the path that begins with - is written {shell_command([os.path.join('.', path)])}"
                raise click.UsageError(f"{error.format_message().rstrip('.')}; {hint}", ctx) from error
            raise


def answer(root: click.Command) -> int:
    """The answer for the scripts: the script itself, or what is possible at the cursor."""
    try:
        return shell_complete(root, {}, "mqindex", ASKED, os.environ[ASKED])
    except (KeyError, ValueError) as error:  # of the variables that only those scripts set
        raise Trouble(f"{ASKED} is for a shell's completion: expected COMP_WORDS and COMP_CWORD with it") from error


def install(shell: str) -> str:
    """Let `shell` ('' for the one of $SHELL) complete from its next start on, and say what was written, and where.

    A line of an earlier version is replaced; if the line is there already, nothing is written. Every other byte of the
    file stays, and so do its owner, its mode, and a link that leads to it.
    """
    from mqindex.files import disk
    from mqindex.files.results.whole_file import replace_content

    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    if name not in SHELLS:
        got = f"expected bash, zsh or fish, got {name or 'no SHELL in the environment'}"
        raise Trouble(f"--install-completion: {got}; name the shell, as in `mqindex --install-completion bash`")
    path = os.path.realpath(_start_file(name))
    line = f"{SHELLS[name]} {MARK}"
    old = _content(path)
    lines = old.split(b"\n")
    kept = [one for one in lines if not one.endswith(MARK.encode())]
    if len(lines) - len(kept) == 1 and line.encode() in lines:
        return f"{path} has the line already; nothing was written"
    rest = b"\n".join(kept)
    new = rest + (b"\n" if rest and not rest.endswith(b"\n") else b"") + line.encode() + b"\n"
    disk.make_directories(os.path.dirname(path))
    true_from_here(f"{path} has the line, or is as it was")
    replace_content(path, new)
    return f"the last line of {path} is now: {line}\nit works in every new {name}; to take it back, remove that line"


def _start_file(shell: str) -> str:
    home = os.path.expanduser("~")
    if shell == "bash":
        return os.path.join(home, ".bashrc")
    if shell == "zsh":
        return os.path.join(os.environ.get("ZDOTDIR") or home, ".zshrc")
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return os.path.join(config, "fish", "completions", "mqindex.fish")


def _content(path: str) -> bytes:
    from mqindex.files.reading.regular import reading

    try:
        with reading(path) as file:  # it may be a link to /dev/null
            return file.read()
    except FileNotFoundError:
        return b""
