"""Object stores and web servers, by obstore."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

from mqindex._needs import needing
from mqindex.files.few_threads import for_each
from mqindex.files.places.storage import OfClient, Stat, is_unanswered

_WEB = ("http", "https")
_OF_CLIENT = re.compile(r"allow_\w+|(connect_)?timeout|proxy_url|user_agent|(http[12]|pool)_\w+")
_S3 = ("s3", "s3a", "s3n")
_REMOVALS = 16  # at once
_SMALL = 4 << 20
_PART, _PARTS = 64 << 20, 4  # bytes of one request of an upload, and how many at once
_TRIES = 3
_FIRST = "15s"
_BEHIND = re.compile("status code: 416|416 Range Not Satisfiable")
_VARIABLE = re.compile("(?:AWS|AZURE|GOOGLE)_(.+)")
_ENDPOINT = re.compile(r"(aws_)?endpoint(_url)?(_s3)?", re.IGNORECASE)
_SERVER = re.compile(r"(https?)://[^/\s]", re.IGNORECASE)
_CUT = re.compile("list response|response body")

Result = TypeVar("Result")


class ObjectStorage(OfClient):
    """A bucket or container, or a web server, as obstore's `from_url` takes it."""

    _answered = False

    def __reduce__(self) -> tuple[Any, ...]:
        return (*super().__reduce__(), self._answered)

    def __setstate__(self, answered: bool) -> None:
        self._answered, self._client = answered, None  # what was made without knowing is not kept

    @property
    def lists(self) -> bool:  # type: ignore[override]
        """See `Storage.lists`."""
        return self._scheme not in _WEB

    def _connect(self) -> Any:
        with needing(f"{self._root} needs obstore: pip install 'mqindex[remote]'", "obstore"):
            importlib.import_module("obstore")
            stores: Any = importlib.import_module("obstore.store")
        options = _with_client_options({**self._options, **({} if self._answered else _hasty(self._options))})
        if self._scheme in _WEB:
            return stores.HTTPStore.from_url(self._root + self._query, **options)
        if self._scheme in _S3:
            _require_endpoints(options)
            options = {**_of_s3(options), **options}
        return stores.from_url(self._root, **options)

    def _asked(self, ask: Callable[[Any], Result]) -> Result:
        """What the client answers. Until the server has answered for the first time it is not waited for for long."""
        if self._answered:
            return ask(self.client())
        try:
            found = ask(self.client())
        except Exception as error:
            if is_unanswered(error):
                raise
            self._know_that_it_answers()
            if isinstance(error, _exceptions().GenericError):  # it is too busy, for now
                return ask(self.client())
            raise
        self._know_that_it_answers()
        return found

    def _know_that_it_answers(self) -> None:
        with self._lock:  # other threads may be taking the client
            self._answered, self._client = True, None

    def stat(self, path: str) -> Stat:
        """See `Storage.stat`. What ends as directories do, or has something below it, is one."""
        try:
            if not path:
                raise FileNotFoundError
            return _stat(self._asked(lambda client: client.head(path)))
        except FileNotFoundError:
            if self._scheme in _WEB or not self._has(path):
                raise
            return Stat(-1, directory=True)

    def _has(self, path: str) -> bool:
        below = f"{path}/" if path else None
        return _again(lambda: self._asked(lambda client: any(map(len, client.list(below, chunk_size=1)))))

    def entries(self, path: str) -> dict[str, Stat]:
        """See `Storage.entries`."""
        below = f"{path}/" if path else None
        found = _again(lambda: self._asked(lambda client: client.list_with_delimiter(below)))
        own = {one["path"].rpartition("/")[2]: _stat(one) for one in found["objects"] if one["path"] != path}
        own |= {one.rpartition("/")[2]: Stat(-1, directory=True) for one in found["common_prefixes"]}
        if not own and path:
            raise FileNotFoundError
        return {name: own[name] for name in sorted(own) if name}

    def tree(self, path: str) -> dict[str, Stat]:
        """See `Storage.tree`."""
        return dict(self._below(path, lambda one: (one["path"], _stat(one))))

    def read(self, path: str, start: int, stop: int, etag: str = "") -> memoryview | None:
        """See `Storage.read`. What a server without `If-Match` sends tells its etag too."""
        asked = {"range": (start, stop), **({"if_match": etag} if etag else {})}
        try:
            found = self.client().get(path, options=asked)
        except _exceptions().PreconditionError:
            return None
        except _exceptions().GenericError as error:
            if etag and _BEHIND.search(str(error)):  # some servers ask for the etag after that
                return None
            raise
        if etag and found.meta["e_tag"] not in (None, etag):
            return None
        return memoryview(found.bytes())

    renames = False

    def put(self, path: str, data: bytes, *, new: bool = False) -> None:
        """See `Storage.put`."""
        self.client().put(path, data, mode="create" if new else "overwrite")

    def upload(self, path: str, local: str) -> None:
        """See `Storage.upload`. A failed one leaves no object. Of a large file no part is copied into memory."""
        from mqindex.files.reading.mapped_file import MappedFile  # here: it asks for a mapping's guard

        size = os.path.getsize(local)
        if size <= _SMALL:
            with open(local, "rb") as small:
                self.client().put(path, small.read())
            return
        with MappedFile.open(local) as file:
            whole = memoryview(file.map)
            if size <= _PART:
                self.client().put(path, whole, use_multipart=False)
            else:
                parts = (whole[at : at + _PART] for at in range(0, size, _PART))
                self.client().put(path, parts, chunk_size=_PART, max_concurrency=_PARTS)
            file.check()

    def move(self, path: str, target: str) -> None:
        """See `Storage.move`: the server copies it."""
        _again(lambda: self.client().copy(path, target))

    def remove(self, path: str, *, whole: bool = True) -> None:
        """See `Storage.remove`. It is listed until nothing is left, as a request may be lost."""
        below = self._below(path, lambda one: str(one["path"])) or [path]
        for _ in range(_TRIES):
            for_each(self._remove, below, _REMOVALS)
            if below == [path] or not (below := self._below(path, lambda one: str(one["path"]))):
                return

    def _below(self, path: str, what: Callable[[Any], Result]) -> list[Result]:
        """Something of each object below a directory."""
        return _again(lambda: [what(one) for some in self.client().list(f"{path}/") for one in some])

    def _remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.client().delete(path)

    def newest(self, path: str) -> float:
        """See `Storage.newest`."""
        return max(self._below(path, lambda one: float(one["last_modified"].timestamp())), default=0.0)

    def make_directory(self, path: str) -> None:
        """See `Storage.make_directory`."""


def _again(call: Callable[[], Result]) -> Result:
    """A request that may be made again, and is where its answer came cut: the client tries such ones once."""
    for _ in range(_TRIES - 1):
        try:
            return call()
        except _exceptions().GenericError as error:
            if not _CUT.search(str(error)):
                raise
    return call()


def _exceptions() -> Any:
    return importlib.import_module("obstore.exceptions")


def _with_client_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options, those of its client apart: obstore panics where it meets them among the others.

    Where there are some it takes none from the environment, so these are added.
    """
    client = {_name(name): value for name, value in options.items() if _OF_CLIENT.fullmatch(_name(name))}
    if not client:
        return options
    rest = {name: value for name, value in options.items() if _name(name) not in client}
    around = {} if "client_options" in options else _of_environment()
    return {**rest, "client_options": {**around, **client, **rest.get("client_options", {})}}


def _of_environment() -> dict[str, Any]:
    """The options of a client that a provider's variables give, such as AWS_ALLOW_HTTP."""
    named = {found[1].lower(): value for name, value in os.environ.items() if (found := _VARIABLE.fullmatch(name))}
    return {name: value for name, value in named.items() if _OF_CLIENT.fullmatch(name)}


def _hasty(options: dict[str, Any]) -> dict[str, Any]:
    """A server whose name is wrong, or that a firewall hides, is told soon; what is given stays."""
    own = {"retry_config": {"max_retries": 1}, "timeout": _FIRST}
    return {name: value for name, value in own.items() if name not in _names(options)}


def _require_endpoints(options: dict[str, Any]) -> None:
    """`ValueError` for the address of a server that is no URL, for which obstore panics, or that it would not ask."""
    around = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    named = {**around, **options, **options.get("config", {})}
    for name, value in named.items():
        if not _ENDPOINT.fullmatch(name) or not isinstance(value, str):
            continue
        found = _SERVER.match(value)
        if found is None:
            raise ValueError(f"{name}: expected a URL, as https://host:port")
        if found[1] == "http" and not _allows_http(options):
            raise ValueError(
                f"{name} begins with http://, which is not encrypted: where this is meant, set "
                "AWS_ALLOW_HTTP=true, or the storage option allow_http=true"
            )


def _allows_http(options: dict[str, Any]) -> bool:
    return "allow_http" in _names(options) or "AWS_ALLOW_HTTP" in os.environ


def _names(options: dict[str, Any]) -> set[str]:
    given = (*options, *options.get("config", {}), *options.get("client_options", {}))
    return set(map(_name, given))


def _name(option: str) -> str:
    return option.lower().removeprefix("aws_")


def _of_s3(options: dict[str, Any]) -> dict[str, Any]:
    """What is so for S3, unless the options say otherwise.

    Not every server has a request that removes many. A signature that covers the bytes makes an upload three times as
    slow; where the connection is encrypted nothing can change them.
    """
    given = _names(options)
    own = {"disable_bulk_delete": True, "unsigned_payload": not _allows_http(options)}
    return {name: value for name, value in own.items() if name not in given}


def _stat(meta: Any) -> Stat:
    """A weak etag is none: two files with other bytes may have the same one."""
    changed, etag = meta.get("last_modified"), meta.get("e_tag") or ""
    return Stat(meta["size"], changed.isoformat() if changed else "", "" if etag.startswith("W/") else etag)
