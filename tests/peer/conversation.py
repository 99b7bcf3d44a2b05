"""A partner in a JVM, told what to do by lines on its standard input: `Conversation.java` is the other end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable
from typing import IO
from urllib.parse import quote_plus, unquote_plus

from tests.peer.jvm import PATIENCE, Jvm
from tests.peer.maven import PeerError

__all__ = ["Conversation"]

ANSWER_SECONDS = PATIENCE + 60  # the other side has patience too


class Conversation:
    """A line of words asks, rows of words answer; an answer `error` is a `PeerError`."""

    def __init__(self, jvm: Jvm) -> None:
        self.jvm = jvm
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._lock = threading.Lock()
        assert jvm.process.stdout is not None
        threading.Thread(target=self._read, args=(jvm.process.stdout,), daemon=True).start()

    def wait_until_ready(self) -> None:
        """Until the partner is there."""
        self._answer()

    def ask(self, *requests: Iterable[str]) -> list[list[str]]:
        """A request, and the lines that belong to it; its rows."""
        lines = "".join(" ".join(quote_plus(word) for word in words) + "\n" for words in requests)
        with self._lock:
            assert self.jvm.process.stdin is not None
            self.jvm.process.stdin.write(lines.encode())
            self.jvm.process.stdin.flush()
            return self._answer()

    def _answer(self) -> list[list[str]]:
        rows = []
        while True:
            try:
                line = self._lines.get(timeout=ANSWER_SECONDS)
            except queue.Empty:
                raise PeerError(f"the client has been silent for {ANSWER_SECONDS:.0f} s: {self.jvm.tail()}") from None
            if line is None:
                raise PeerError(f"the client has ended: {self.jvm.tail()}")
            kind, _, rest = line.partition(" ")
            if kind == "ok":
                return rows
            words = [unquote_plus(word) for word in rest.split(" ")]
            if kind == "error":
                raise PeerError(words[0])
            rows.append(words)

    def _read(self, answers: IO[bytes]) -> None:
        try:
            for line in answers:
                self._lines.put(line.decode().rstrip("\n"))
        except ValueError:  # closed by `kill`
            pass
        self._lines.put(None)
