"""Options of a storage that it does not know, or that are no values of theirs: a `ValueError` that shows no value."""

from __future__ import annotations

import pickle
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mqindex.files.places import object_storage
from mqindex.files.places.place import Place, place_of
from mqindex.rocketmq import IndexService

pytest.importorskip("obstore")

SECRET = "guessed"
WRONG = {
    "s3": [
        {"sekret": SECRET},
        {"secret_access_key": SECRET.encode()},
        {"virtual_hosted_style_request": SECRET},
        {"client_options": {"timeout": SECRET}},
        {"client_options": {"nothing": SECRET}},
        {"retry_config": {"max_retries": SECRET}},
    ],
    "gs": [{"service_account_key": SECRET}],
    "az": [{"account_key": SECRET}],
}


@pytest.mark.parametrize(("scheme", "options"), [(scheme, one) for scheme, some in WRONG.items() for one in some])
def test_wrong_options_are_one_sentence_without_their_values(scheme: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"^storage_options of {scheme}://bucket: \S") as refused:
        IndexService.open(f"{scheme}://bucket/index", storage_options=options)
    assert SECRET not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__suppress_context__


@pytest.mark.parametrize("own", ["unsigned_payload", "AWS_DISABLE_BULK_DELETE", "aws_unsigned_payload"])
def test_an_option_wins_over_what_is_usual_here(own: str) -> None:
    assert _config({own: "false"})[own.lower().removeprefix("aws_")] == "false"


def test_uploads_are_signed_with_their_bytes_where_nothing_else_guards_them() -> None:
    assert _config({})["unsigned_payload"] == "true"
    for plain in ({"allow_http": True}, {"client_options": {"allow_http": True}}):
        assert _config(plain)["unsigned_payload"] == "false"


@pytest.mark.parametrize("name", ["endpoint", "aws_endpoint_url", "AWS_ENDPOINT"])
@pytest.mark.parametrize("value", ["", "localhost:9000", "http://", "minio"])
def test_a_server_is_named_by_a_url(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Obstore panicked at the first request, with a stack of its own."""
    said = rf"^storage_options of s3://bucket: {name}: expected a URL, as https://host:port$"
    with pytest.raises(ValueError, match=said):
        place_of("s3://bucket/index", {name: value})
    monkeypatch.setenv("AWS_ENDPOINT_URL", value)
    with pytest.raises(ValueError, match="AWS_ENDPOINT_URL: expected a URL"):
        place_of("s3://bucket/index")


def test_a_server_that_does_not_encrypt_is_asked_only_where_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was an "HTTP error: builder error"."""
    endpoint = {"endpoint": "http://127.0.0.1:1"}
    with pytest.raises(
        ValueError,
        match=r"endpoint begins with http://.* AWS_ALLOW_HTTP=true, .* allow_http=true$",
    ):
        place_of("s3://bucket/index", endpoint)
    for allowed in ({"allow_http": True}, {"client_options": {"allow_http": True}}, {"aws_allow_http": "true"}):
        place_of("s3://bucket/index", {**endpoint, **allowed})
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    place_of("s3://bucket/index", endpoint)


@pytest.mark.parametrize("scheme", ["s3", "https", "hdfs"])
def test_a_url_holds_no_password(scheme: str) -> None:
    """It was shown in every report."""
    with pytest.raises(ValueError, match=rf"^{scheme}://\.\.\.@bucket/index: expected no user and password") as refused:
        place_of(f"{scheme}://user:{SECRET}@bucket/index")
    assert SECRET not in str(refused.value)


def test_a_server_that_never_answered_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took three minutes; once it has answered it is waited for so long."""
    monkeypatch.setattr(object_storage, "_FIRST", "0.3s")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {"endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}", "allow_http": True, "region": "x"}
        place = place_of("s3://bucket/index", {**options, "skip_signature": True})
        assert isinstance(place, Place)
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            place.stat()
        assert time.monotonic() - started < 10
        assert not place.storage._answered  # type: ignore[attr-defined]


@pytest.mark.parametrize("answer", ["404 Not Found", "403 Forbidden", "503 Busy"])
def test_a_server_that_has_answered_is_waited_for(answer: str) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(int(answer[:3]))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever).start()
        options = {"endpoint": f"http://127.0.0.1:{server.server_port}", "allow_http": True, "region": "x"}
        place = place_of("s3://bucket/index", {**options, "skip_signature": True, "retry_config": {"max_retries": 0}})
        assert isinstance(place, Place)
        with pytest.raises(OSError):
            place.entries()
        server.shutdown()
        assert place.storage._answered  # type: ignore[attr-defined]
        assert pickle.loads(pickle.dumps(place)).storage._answered
        assert pickle.loads(pickle.dumps(place)).storage == place.storage


def test_the_first_client_has_the_environments_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request of a Spark worker was an "HTTP error: builder error"."""
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_USER_AGENT", "mine")
    monkeypatch.setenv("AWS_PROXY", "no option")
    assert _client_options({}) == {"allow_http": "true", "user_agent": "mine", "timeout": object_storage._FIRST}
    assert _client_options({"timeout": "3s"}) == {"allow_http": "true", "user_agent": "mine", "timeout": "3s"}
    given = {"allow_http": "false"}
    assert _client_options({"client_options": given}) == {**given, "timeout": object_storage._FIRST}


def test_a_worker_takes_along_that_a_server_has_answered() -> None:
    place = place_of("s3://bucket/index", {"skip_signature": True})
    assert isinstance(place, Place)
    place.storage._answered = True  # type: ignore[attr-defined]
    client = pickle.loads(pickle.dumps(place)).storage.client()
    assert (client.client_options, client.retry_config) == (None, None)


def test_a_name_node_that_is_not_there_is_given_up_soon() -> None:
    """It took three minutes."""
    pytest.importorskip("hdfs_native")
    place = place_of("hdfs://127.0.0.1:1/store")
    assert isinstance(place, Place)
    started = time.monotonic()
    with pytest.raises(OSError, match="Connection refused"):
        place.stat()
    assert time.monotonic() - started < 20


def _client_options(options: dict[str, Any]) -> dict[str, Any]:
    place = place_of("s3://bucket/index", options)
    assert isinstance(place, Place)
    return dict(place.storage.client().client_options)  # type: ignore[attr-defined]


def _config(options: dict[str, Any]) -> dict[str, Any]:
    place = place_of("s3://bucket/index", options)
    assert isinstance(place, Place)
    return dict(place.storage.client().config)  # type: ignore[attr-defined]
