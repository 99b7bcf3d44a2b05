"""Ports of this machine that brokers listen on."""

from __future__ import annotations

import socket
from contextlib import ExitStack, closing

__all__ = ["accepts", "free_ports"]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, each another."""
    with ExitStack() as held:
        sockets = [held.enter_context(closing(socket.socket())) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def accepts(port: int) -> bool:
    """Whether somebody listens."""
    with closing(socket.socket()) as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
