"""Look-ups in remote index files where any one request fails, in each way: the right answer or one clear sentence."""

from __future__ import annotations

import errno
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from obstore.store import S3Store

from mqindex.errors import FileStateError, MQIndexError
from mqindex.files.places.place import Place, place_of
from mqindex.files.places.remote_file import RemoteFile
from mqindex.rocketmq import IndexService, optimize
from tests.peer.places.servers import BUCKET, CREDENTIAL, S3
from tests.support.fault_proxy import DONE, FAULTS, TIME_OUT, FaultProxy
from tests.unit.test_remote_index import ENTRIES, KEYS, SLOTS, make

GIVEN = {"hash_slot_num": SLOTS, "index_num": ENTRIES}
RETRIES, AT_ONCE, ALL = 2, 8, 1000
# What is nobody's to read: the credential, and what a client signs with it.
SECRETS = (CREDENTIAL, "Signature", "Authorization", "AWS4")
PAGES = ("<?xml", "<Error>", "Error {", "{ ", "http://", "\n")  # of a server, and what a client prints of itself


def options_at(server: S3, endpoint: str) -> dict[str, Any]:
    """Of a client that soon gives up."""
    return {
        **server.options,
        "endpoint": endpoint,
        "client_options": {"allow_http": True, "timeout": TIME_OUT},
        "retry_config": {"max_retries": RETRIES, "backoff": {"init_backoff": timedelta(milliseconds=10)}},
    }


def clear(error: Exception | str | None) -> str:
    """What an error says: one sentence with the URL, and nothing that is nobody's to read."""
    said = str(error)
    assert said.count(f"s3://{BUCKET}/") == 1, said
    assert not [word for word in (*SECRETS, *PAGES) if word in said], said
    return said


@dataclass
class Remote:
    """Index files on a server, and what a look-up in them gives."""

    server: S3
    url: str
    expected: list[list[int]]

    def ask(self, endpoint: str) -> list[list[int]]:
        with IndexService.open(self.url, storage_options=options_at(self.server, endpoint), **GIVEN) as there:
            return there.query_offsets("T", KEYS).to_pylist()

    def requests(self) -> Counter[str]:
        """Of a look-up in which none fails, by kind."""
        with FaultProxy(self.server.port) as proxy:
            assert self.ask(proxy.url) == self.expected
            return proxy.requests

    def said(self, fault: str, first: int, last: int) -> str | None:
        """What the look-up says where it fails; None: it gave the right answer."""
        with FaultProxy(self.server.port, fault, range(first, last + 1)) as proxy:
            try:
                found = self.ask(proxy.url)
            except (MQIndexError, OSError) as error:
                return clear(error)
        assert found == self.expected
        return None


@pytest.fixture(scope="module", params=["ordinary", "optimised"])
def remote(request: pytest.FixtureRequest, s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Remote:
    directory = tmp_path_factory.mktemp("files")
    index = make(directory / "store", count=6000)
    with IndexService.open(index, **GIVEN) as here:
        expected = here.query_offsets("T", KEYS).to_pylist()
    if request.param == "optimised":
        optimize(index, directory / "out", **GIVEN)
        index = directory / "out" / "index"
    return Remote(s3, f"{s3.upload(index.parent, f'faults/{request.param}')}/index", expected)


# What a look-up says of a fault that goes on, where it is no sentence of another error.
SENTENCES = {
    "403": "[Errno 13] Permission denied",
    "404": "[Errno 2] No such file or directory: ",
    "500": "[Errno 5] the server answered 500 Internal Server Error: ",
    "503": "[Errno 5] the server answered 503 Service Unavailable: ",
    "time-out": f"[Errno {errno.ETIMEDOUT}] {os.strerror(errno.ETIMEDOUT)}: ",
    "cut body": "[Errno 5] ",
    DONE: "[Errno 5] the server answered 500 Internal Server Error: ",
}
RETRIED = ("500", "503", "time-out", "cut body", DONE)


@pytest.mark.parametrize("fault", FAULTS)
def test_any_request_fails_once(remote: Remote, fault: str) -> None:
    numbers = range(1, remote.requests().total() + 1)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        said = list(filter(None, threads.map(lambda n: remote.said(fault, n, n), numbers)))
    assert not said if fault in RETRIED else said
    assert all(sentence.startswith(SENTENCES.get(fault, "")) for sentence in said)


@pytest.mark.parametrize("fault", FAULTS)
def test_all_requests_fail_from_one_on(remote: Remote, fault: str) -> None:
    number = remote.requests().total()
    firsts = (1, 2, 4, number // 2, number)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        said = list(filter(None, threads.map(lambda n: remote.said(fault, n, ALL), firsts)))
    assert said
    assert all(sentence.startswith(SENTENCES.get(fault, "")) for sentence in said)


def test_requests_and_bytes_are_counted_by_kind(s3: S3) -> None:
    part, size = 5 << 20, 12 << 20
    with FaultProxy(s3.port) as proxy:
        store = S3Store(BUCKET, **{**s3.options, "endpoint": proxy.url})
        store.put("counted/a", b"0123456789", use_multipart=False)
        store.copy("counted/a", "counted/b")
        assert len(store.get_range("counted/b", start=2, end=6)) == 4
        assert store.head("counted/b")["size"] == 10
        assert len(store.list_with_delimiter("counted/")["objects"]) == 2
        store.put("counted/c", bytes(size), use_multipart=True, chunk_size=part)
    once = dict.fromkeys(("PUT", "copy", "GET range", "HEAD", "LIST"), 1)
    assert proxy.requests == {**once, "multipart": 5}  # the begin, three parts, the end
    assert (proxy.bytes["PUT"], proxy.bytes["GET range"], proxy.bytes["HEAD"]) == (10, 4, 0)
    assert proxy.bytes["multipart"] >= size


def test_a_look_up_lists_and_reads_and_writes_nothing(remote: Remote) -> None:
    assert set(remote.requests()) == {"LIST", "GET range"}  # lists tell what files are there, and of which version


@pytest.mark.parametrize("size", [40, 1 << 20])
def test_a_file_that_is_replaced_between_two_ranges_is_told(s3: S3, size: int) -> None:
    """By one that does not reach to the second range, or as long as it was."""
    s3.put("replaced", bytes(1 << 20))
    place = place_of(f"{s3.url}/replaced", s3.options)
    assert isinstance(place, Place)
    with RemoteFile(place) as file:
        file.window(0, 10)
        s3.put("replaced", b"1" * size)
        with pytest.raises(FileStateError, match=f"the file was replaced while it was read: .* got {size} bytes"):
            file.window(1 << 19, (1 << 19) + 10)
