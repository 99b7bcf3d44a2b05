"""An S3 server and an HDFS, each in a JVM that ends with this process, and how files get there."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Self

import hdfs_native
from obstore.store import S3Store

from tests.peer.conversation import Conversation
from tests.peer.jvm import Jvm
from tests.peer.maven import SERVERS

IDENTITY, CREDENTIAL = "identity", "credential"
BUCKET = "logs"


class Server:
    """A server of files. `url`: its root; `options`: the `storage_options` that it takes."""

    url: str
    options: dict[str, Any]
    within = ""  # the room's directory

    def __init__(self, kind: str, home: Path, *arguments: str) -> None:
        (home / "data" / BUCKET).mkdir(parents=True)  # a directory is a bucket
        words = [f"peer.{kind}.Server", str(home / "data"), *arguments, str(home / "log")]
        self.jvm = Jvm(kind, SERVERS[kind][0], words, home, talks=True)
        conversation = Conversation(self.jvm)
        conversation.wait_until_ready()
        self.port = int(conversation.ask(["port"])[0][0])

    def close(self) -> None:
        self.jvm.kill()

    def room(self, name: str) -> Self:
        """The same server, for those who have all of theirs below one directory."""
        found = copy.copy(self)
        found.url, found.within = f"{self.url}/{name}", f"{self.within}{name}/"
        return found

    def upload(self, directory: Path, name: str) -> str:
        """The URL of a copy of all files below a directory."""
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                self.put(f"{name}/{path.relative_to(directory)}", path.read_bytes())
        return f"{self.url}/{name}"

    def put(self, name: str, data: bytes) -> None:
        self._put(self.within + name, data)

    def files(self, below: str) -> dict[str, bytes]:
        """All files below a directory, by their names from there."""
        return self._files(self.within + below)

    def _put(self, name: str, data: bytes) -> None:
        raise NotImplementedError

    def _files(self, below: str) -> dict[str, bytes]:
        raise NotImplementedError


class S3(Server):
    """One bucket."""

    def __init__(self, home: Path) -> None:
        super().__init__("s3proxy", home, IDENTITY, CREDENTIAL)
        self.url = f"s3://{BUCKET}"
        self.options = {
            "endpoint": f"http://127.0.0.1:{self.port}",
            "access_key_id": IDENTITY,
            "secret_access_key": CREDENTIAL,
            "region": "us-east-1",
            "client_options": {"allow_http": True},
        }
        self.store = S3Store(BUCKET, **self.options)

    def _put(self, name: str, data: bytes) -> None:
        self.store.put(name, data)

    def _files(self, below: str) -> dict[str, bytes]:
        names = [one["path"] for some in self.store.list(f"{below}/") for one in some]
        return {name.removeprefix(f"{below}/"): bytes(self.store.get(name).bytes()) for name in names}


class Hdfs(Server):
    """A name node with one data node."""

    def __init__(self, home: Path) -> None:
        super().__init__("hdfs", home)
        self.url, self.options = f"hdfs://127.0.0.1:{self.port}", {}
        self.client = hdfs_native.Client(self.url)

    def _put(self, name: str, data: bytes) -> None:
        self.client.mkdirs(f"/{name}".rpartition("/")[0] or "/", 0o755, True)
        with self.client.create(f"/{name}", hdfs_native.WriteOptions(overwrite=True)) as file:
            file.write(data)

    def _files(self, below: str) -> dict[str, bytes]:
        found = {}
        for one in self.client.list_status(f"/{below}", recursive=True):
            if not one.isdir:
                with self.client.read(one.path) as file:
                    found[one.path.removeprefix(f"/{below}/")] = file.read()
        return found
