"""A storage may be told that its server answers while other threads take its client."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("obstore")

from mqindex.files.places.object_storage import ObjectStorage


def test_no_thread_takes_a_client_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ObjectStorage, "_connect", lambda self: self)
    storage, interval = ObjectStorage("memory", "", "", {}), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def asked(times: int) -> int:
        for _ in range(times):
            storage._answered = False
            assert storage._asked(lambda client: client) is storage
        return times

    try:
        with ThreadPoolExecutor(8) as threads:
            assert sum(threads.map(asked, [4000] * 8)) == 32000
    finally:
        sys.setswitchinterval(interval)
