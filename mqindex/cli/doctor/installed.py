"""This Python, the kernels, and the extras with their versions."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import re
import struct
import sys
from collections.abc import Iterator

from mqindex import __version__, kernels
from mqindex.cli.doctor.line import Line

FOR = {  # extra -> what does not work without it
    "cli": "the command `mqindex`",
    "spark": "`--engine spark` and `mqindex.spark`",
    "codecs": "compressed bodies and records",
    "html": "`mqindex report`",
    "remote": "look-ups in index files by URL",
}
_NAME = re.compile(r"[\w.-]+")
_LEAST = re.compile(r">=\s*([\d.]+)")
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([\w.-]+)""")


def python() -> Iterator[Line]:
    """The interpreter, its C library and the processor."""
    words = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
    found = f"mqindex {__version__}, {words} {platform.machine()}, {c_library()}"
    if struct.calcsize("P") < 8:
        yield Line("limited", "Python", found, "32 bits: large files cannot be mapped; use a 64-bit Python")
    else:
        yield Line("works", "Python", found)


def c_library() -> str:
    """Name and version of the C library that this Python runs on."""
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    name, version = platform.libc_ver()
    return f"{name} {version}" if name == "glibc" else "musl or another C library"


def of_kernels() -> Iterator[Line]:
    """What was chosen for this processor."""
    yield Line("works", "kernels", ", ".join(f"{name} by {how}" for name, how in sorted(kernels().items())))


def extras() -> Iterator[Line]:
    """Each extra that this version knows: the packages that it needs, imported."""
    for extra, packages in sorted(_required().items()):
        about, without = f"extra {extra}", FOR.get(extra, "what needs it")
        found = {name: _found(name, least) for name, least in packages.items()}
        bad = [f"{name} {words}" for name, (good, words) in found.items() if not good]
        install = f"pip install 'mqindex[{extra}]'"
        if not bad:
            yield Line("works", about, ", ".join(f"{name} {words}" for name, (_, words) in found.items()))
        elif all(words == "is not installed" for _, words in found.values()):
            yield Line("absent", about, "not installed", f"for {without}: {install}")
        else:
            yield Line("limited", about, ", ".join(bad), f"{without} will not work: {install}")


def _required() -> dict[str, dict[str, str]]:
    """Extra -> package -> the least version, as the installed metadata has it."""
    required: dict[str, dict[str, str]] = {}
    for line in importlib.metadata.requires("mqindex") or []:
        package, _, condition = line.partition(";")
        name, extra, least = _NAME.match(package), _EXTRA.search(condition), _LEAST.search(package)
        if name and extra and name[0] != "mqindex":
            required.setdefault(extra[1], {})[name[0]] = least[1] if least else ""
    return required


def _found(name: str, least: str) -> tuple[bool, str]:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False, "is not installed"
    try:
        importlib.import_module(name.replace("-", "_").lower())
    except Exception as error:  # of a binary for another machine, for one
        return False, f"{version} cannot be imported ({type(error).__name__}: {error})".partition("\n")[0]
    if _numbers(version) < _numbers(least):
        return False, f"{version} is too old, expected {least} or newer"
    return True, version


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3]]
