"""Files are opened, listed and looked at in `mqindex.files` alone: there a path may be of this machine or elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import mqindex
from tests.support.each import for_each

PACKAGE = Path(mqindex.__file__).parent
ROOMS = ("rocketmq", "kafka")
ASKS = {
    "os": {"stat", "lstat", "scandir", "listdir", "walk", "open", "pread", "readlink", "access", "statvfs"},
    "os.path": {
        "exists", "lexists", "isdir", "isfile", "islink", "ismount", "getsize", "getmtime", "realpath", "samefile",
        "join", "basename", "dirname", "abspath", "split", "relpath",
    },
    "": {"open"},
    "mmap": {"mmap"},
    "np": {"fromfile", "memmap", "load"},
    "glob": {"glob", "iglob"},
}  # fmt: skip
OF_THIS_MACHINE = {  # what is written is looked at where it is
    "rocketmq/log/writing/log_recovery.py",
    "rocketmq/log/writing/log_writer.py",
    "rocketmq/queue/old_queue.py",
}


def asked(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call):
            home, _, name = ast.unparse(node.func).rpartition(".")
            if name in ASKS.get(home, ()):
                yield f"{module.relative_to(PACKAGE)}:{node.lineno} {home}.{name}".replace(" .", " ")


@for_each(
    module
    for room in ROOMS
    for module in sorted((PACKAGE / room).rglob("*.py"))
    if str(module.relative_to(PACKAGE)) not in OF_THIS_MACHINE
)
def test_no_room_of_a_broker_asks_the_system_for_a_path(module: Path) -> None:
    assert not list(asked(module))


def test_the_exceptions_are_there() -> None:
    assert all(list(asked(PACKAGE / name)) for name in OF_THIS_MACHINE)
