"""A JVM of RocketMQ: what its classes want to find."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tests.peer.jvm import Jvm

__all__ = ["start"]

FLAGS = (
    "-Xmx512m",
    "-XX:MaxDirectMemorySize=512m",
    "-Dtls.server.mode=disabled",  # nobody here asks for TLS, and to make its keys takes most of the time of a start
    "-Dcom.rocketmq.remoting.client.logUseSlf4j=true",
    "-Dcom.rocketmq.remoting.client.connect.timeout=60000",  # milliseconds; 3000 are few where all starts at once
)
LOGBACK = '<configuration><root level="OFF"/></configuration>'  # nowhere, unless something is to be found out


def start(version: str, main: Sequence[str], home: Path, *, talks: bool = False) -> Jvm:
    """A JVM with `home` as ROCKETMQ_HOME."""
    conf = home / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    for name in ("logback_broker.xml", "logback_namesrv.xml", "logback_tools.xml", "rmq.logback.xml"):
        (conf / name).write_text(LOGBACK)
    flags = [*FLAGS, f"-Drmq.logback.configurationFile={conf / 'rmq.logback.xml'}"]
    environment = {**os.environ, "ROCKETMQ_HOME": str(home)}
    return Jvm("rocketmq", version, main, home, flags=flags, environment=environment, talks=talks)
