"""Stands between a client and a server of HTTP: counts requests by kind, and makes some of them fail."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

__all__ = ["DONE", "FAULTS", "TIME_OUT", "FaultProxy"]

STATUSES = {403: "AccessDenied", 404: "NoSuchKey", 500: "InternalError", 503: "SlowDown"}
DONE = "500, but done"  # the server did what was asked
FAULTS = (*map(str, STATUSES), "time-out", "cut body", "wrong length", "another etag", DONE)
TIME_OUT = "1s"  # that clients are to have
_SILENCE = 3.0  # seconds; longer than that
_BETWEEN_HOPS = ("connection", "keep-alive", "transfer-encoding", "content-length", "date", "server")


def kind_of(method: str, target: str, headers: dict[str, str]) -> str:
    """What a request to S3 is for.

    >>> kind_of("GET", "/logs?list-type=2&prefix=a", {}), kind_of("PUT", "/logs/a?partNumber=1&uploadId=x", {})
    ('LIST', 'multipart')
    """
    asked = parse_qs(urlsplit(target).query, keep_blank_values=True)
    if "uploadId" in asked or "uploads" in asked:
        return "multipart"
    if "delete" in asked:
        return "DELETE"
    if method == "GET" and ("list-type" in asked or "prefix" in asked):
        return "LIST"
    if method == "GET" and "range" in headers:
        return "GET range"
    if method == "PUT" and "x-amz-copy-source" in headers:
        return "copy"
    return method


@dataclass
class Answer:
    """What a server says. `length`: as it is told, which the body may not have."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes
    length: int

    @classmethod
    def of(cls, response: HTTPResponse) -> Answer:
        body = response.read()
        told = response.getheader("Content-Length")
        headers = [(name, value) for name, value in response.getheaders() if name.lower() not in _BETWEEN_HOPS]
        return cls(response.status, response.reason, headers, body, len(body) if told is None else int(told))

    @classmethod
    def error(cls, status: int) -> Answer:
        code = STATUSES[status]
        body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code} of a proxy</Message></Error>'.encode()
        headers = [("Content-Type", "application/xml")]
        if status == 503:
            headers.append(("Retry-After", "1"))
        return cls(status, code, headers, body, len(body))

    def with_wrong_length(self) -> None:
        """One byte less; of what has a body, half of it."""
        self.body = self.body[: len(self.body) // 2]
        self.length = len(self.body) if self.body else max(self.length - 1, 0)

    def with_another_etag(self) -> None:
        self.headers = [(name, '"another"' if name.lower() == "etag" else value) for name, value in self.headers]
        self.body = re.sub(rb"<ETag>.*?</ETag>", b"<ETag>&quot;another&quot;</ETag>", self.body)
        self.length = len(self.body) or self.length


class FaultProxy:
    """Stands at `url` before the server of a port of this machine, until the end of its block.

    `requests`, and `bytes` of their bodies in both directions, are counted by kind: `GET range`, `HEAD`, `LIST` ...
    The requests of the numbers `failing`, counted from 1, fail as `fault` says, one of `FAULTS`.
    """

    def __init__(self, port: int, fault: str | None = None, failing: Container[int] = ()) -> None:
        self.upstream, self.fault, self.failing = port, fault, failing
        self.requests: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.over = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FaultProxy:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def takes(self, kind: str) -> str | None:
        """Count a request; how it fails."""
        with self._lock:
            self.requests[kind] += 1
            return self.fault if self.requests.total() in self.failing else None

    def moved(self, kind: str, size: int) -> None:
        """Count bytes."""
        with self._lock:
            self.bytes[kind] += size


def _handler_of(proxy: FaultProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            sent = self.rfile.read(int(headers.get("content-length", 0)))
            kind = kind_of(self.command, self.path, headers)
            fault = proxy.takes(kind)
            if fault == "time-out":
                proxy.over.wait(_SILENCE)
                self.close_connection = True
                return
            if fault is not None and fault.isdigit():
                answer = Answer.error(int(fault))
            else:
                answer = self._forwarded(headers, sent)
            if fault == "wrong length":
                answer.with_wrong_length()
            elif fault == "another etag":
                answer.with_another_etag()
            elif fault == DONE:
                answer = Answer.error(500)
            self._send(answer, cut=fault == "cut body")
            proxy.moved(kind, len(sent) + (0 if self.command == "HEAD" else len(answer.body)))

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

        def _forwarded(self, headers: dict[str, str], sent: bytes) -> Answer:
            server = HTTPConnection("127.0.0.1", proxy.upstream)
            try:
                server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in headers.items():  # that of the host too: it is signed
                    server.putheader(name, value)
                server.endheaders(sent)
                return Answer.of(server.getresponse())
            finally:
                server.close()

        def _send(self, answer: Answer, *, cut: bool) -> None:
            self.send_response_only(answer.status, answer.reason)
            for name, value in [*answer.headers, ("Content-Length", str(answer.length))]:
                if answer.status != 204 or name != "Content-Length":
                    self.send_header(name, value)
            if not cut:
                self.end_headers()
            body = b"" if self.command == "HEAD" else answer.body
            if cut:
                self.close_connection = True
                if body:
                    self.end_headers()
                else:  # in the midst of the headers
                    self.flush_headers()
                body = body[: len(body) // 2]
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    return Handler
