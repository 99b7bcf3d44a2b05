"""Ports of this machine that brokers listen on."""

from __future__ import annotations

import random
import socket
from contextlib import closing
from pathlib import Path

__all__ = ["accepts", "free_ports"]

FIRST = 10_000
STEP = 4  # a port, and the second below it
SYSTEMS_OWN = Path("/proc/sys/net/ipv4/ip_local_port_range")
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, none of them given before by this process; RocketMQ takes the second below too.

    They are none of those from which the system itself gives one to whoever connects, or names no port: a broker binds
    its port seconds after it was found to be free, and binds it again after each of its ends.
    """
    found: list[int] = []
    choice = random.SystemRandom()  # other processes choose too, and a test may have set the seed of the common one
    while len(found) < count:
        port = choice.randrange(FIRST, _systems_first(), STEP)
        if port not in _given and _is_free(port) and _is_free(port - 2):
            _given.add(port)
            found.append(port)
    return found


def accepts(port: int) -> bool:
    """Whether somebody listens."""
    with closing(socket.socket()) as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


def _systems_first() -> int:
    return int(SYSTEMS_OWN.read_text().split()[0]) if SYSTEMS_OWN.exists() else 32_768
