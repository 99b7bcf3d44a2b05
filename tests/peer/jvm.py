"""One JVM with a broker or a client in it: started, stopped as an operator would, or killed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.peer.maven import BUILT, PeerError, class_path, java

__all__ = ["PATIENCE", "Jvm"]

PATIENCE = 600.0  # seconds; only a machine that does much else, or a defect, comes near

FLAGS = (
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # they live for seconds
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",  # RocketMQ 4.9.3 cannot unmap a file without these two
)


def archive(broker: str, version: str, main: Sequence[str]) -> Path:
    """Where `tests.peer.archives` keeps the classes that such a process has loaded: half of what a start costs."""
    made_for = Path(java()).resolve().stat().st_mtime_ns
    return BUILT / f"{broker}-{version}" / f"{main[0]}-{made_for:x}.jsa"


class Jvm:
    """A process that ends with this one, however this one ends: it reads its standard input, and halts at the end.

    `broker` and `version` say whose classes it has; `talks`: its standard output is ours to read.
    """

    makes_archives = False  # at a clean end

    def __init__(
        self, broker: str, version: str, main: Sequence[str], home: Path, *, flags: Sequence[str] = (),
        environment: Mapping[str, str] = os.environ, talks: bool = False,
    ) -> None:  # fmt: skip
        self.log = home / f"{main[0].rpartition('.')[2]}.log"
        (home / "tmp").mkdir(parents=True, exist_ok=True)
        system = [f"-Duser.home={home}", f"-Djava.io.tmpdir={home / 'tmp'}"]
        kept = archive(broker, version, main)
        option = "ArchiveClassesAtExit" if self.makes_archives else "SharedArchiveFile"
        if self.makes_archives or kept.exists():
            system += [f"-XX:{option}={kept}", "-Xlog:disable"]  # what Java says of it would be among the answers
        command = [java(), *FLAGS, *flags, *system, "-cp", class_path(broker, version), *main]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if talks else log,
                stderr=log,
                env=environment,
                cwd=home,
                process_group=0,  # Ctrl-C is for pytest, which then stops us; in its session, so that `nice` counts
            )

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def stop(self) -> None:
        """What an operator's stop script does: SIGTERM, and wait for the end."""
        self.ask_to_stop()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise PeerError(f"it did not stop within {PATIENCE:.0f} s: {self.tail()}") from None
        self._close_pipes()

    def ask_to_stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL. Does nothing to one that has ended."""
        self.process.kill()
        self.process.wait()
        self._close_pipes()

    def tail(self) -> str:
        """The end of what it logged."""
        return self.log.read_text(errors="replace")[-2000:]

    def _close_pipes(self) -> None:
        pipes: list[IO[bytes] | None] = [self.process.stdin, self.process.stdout]
        for pipe in pipes:
            if pipe is not None:
                pipe.close()
