"""One JVM with a broker or a client in it: started, stopped as an operator would, or killed."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import IO

from tests.peer.maven import PeerError, class_path, java

__all__ = ["Jvm"]

FLAGS = (
    "-Xmx512m",
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # they live for seconds
    "-XX:MaxDirectMemorySize=512m",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",  # 4.9.3 cannot unmap a file without these two
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "-Dcom.rocketmq.remoting.client.logUseSlf4j=true",
)
LOGBACK = '<configuration><root level="{level}"/></configuration>'
STOP_SECONDS = 60


class Jvm:
    """A process that ends with this one, however this one ends: it reads its standard input, and halts at the end."""

    def __init__(self, version: str, main: list[str], home: Path, *, talks: bool = False) -> None:
        self.log = home / f"{main[0].rpartition('.')[2]}.log"
        environment = {**os.environ, "ROCKETMQ_HOME": str(rocketmq_home(home))}
        system = {
            "user.home": home,
            "java.io.tmpdir": _made(home / "tmp"),
            "rmq.logback.configurationFile": home / "conf" / "rmq.logback.xml",
        }
        command = [java(), *FLAGS, *(f"-D{name}={value}" for name, value in system.items())]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*command, "-cp", class_path(version), *main],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if talks else log,
                stderr=log,
                env=environment,
                cwd=home,
                start_new_session=True,  # Ctrl-C is for pytest, which then stops us
            )

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def stop(self) -> None:
        """What `mqshutdown` does: SIGTERM, and wait for the end."""
        self.ask_to_stop()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise PeerError(f"it did not stop within {STOP_SECONDS} s: {self.tail()}") from None
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


def rocketmq_home(home: Path) -> Path:
    """What every tool of a broker wants to find: where logs go. Nowhere, unless something is to be found out."""
    conf = _made(home / "conf")
    for name in ("logback_broker.xml", "logback_namesrv.xml", "logback_tools.xml", "rmq.logback.xml"):
        (conf / name).write_text(LOGBACK.format(level="OFF"))
    return home


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory
