"""The Java contenders: built once by Maven, run with the flags of every Java figure in this project."""

from __future__ import annotations

import os
import shutil
import subprocess

from bench.machine import ROOT

__all__ = ["available", "broker_of", "build", "command"]

PROJECT = os.path.join(ROOT, "bench", "java")
FLAGS = [
    "-XX:+UseSerialGC",
    "-Xms2g",
    "-Xmx2g",
    "-XX:+AlwaysPreTouch",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
]


def broker_of(runs: str) -> str | None:
    """Whose classes a contender needs; None: it is no Java contender.

    >>> broker_of("kafka:recover"), broker_of("commit_log.rebuild")
    ('kafka', None)
    """
    broker, colon, _ = runs.partition(":")
    return broker if colon else None


def available(broker: str) -> bool:
    """Whether Java and Maven are here."""
    return bool(shutil.which("java") and (_built(broker) or shutil.which("mvn")))


def build(broker: str) -> None:
    """Compile, unless the classes are younger than their sources."""
    if not _built(broker):
        subprocess.run(["mvn", "-q", "-B", f"-P{broker}", "package"], cwd=PROJECT, check=True)


def command(broker: str, what: str, arguments: dict[str, object], home: str) -> list[str]:
    """The command line of one contender; whatever Java writes to a user's home goes to `home`."""
    target = _target(broker)
    path = f"{target}/classes{os.pathsep}{target}/lib/*"
    pairs = [f"{name}={value}" for name, value in arguments.items()]
    return ["java", *FLAGS, f"-Duser.home={home}", "-cp", path, f"bench.{broker}.Main", what, *pairs]


def _target(broker: str) -> str:
    return os.path.join(PROJECT, "target", broker)


def _built(broker: str) -> bool:
    main = os.path.join(_target(broker), "classes", "bench", broker, "Main.class")
    if not (os.path.exists(main) and os.path.isdir(os.path.join(_target(broker), "lib"))):
        return False
    return os.path.getmtime(main) >= max(os.path.getmtime(path) for path in _sources(broker))


def _sources(broker: str) -> list[str]:
    folder = os.path.join(PROJECT, "src", "main", "java", "bench")
    found = [os.path.join(PROJECT, "pom.xml")]
    for room in (folder, os.path.join(folder, broker)):
        found += [os.path.join(room, name) for name in os.listdir(room) if name.endswith(".java")]
    return found
