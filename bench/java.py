"""The Java contenders: built once by Maven, run with the flags of every Java figure in this project."""

from __future__ import annotations

import os
import shutil
import subprocess

from bench.machine import ROOT

__all__ = ["available", "build", "command"]

PROJECT = os.path.join(ROOT, "bench", "java")
TARGET = os.path.join(PROJECT, "target")
FLAGS = [
    "-XX:+UseSerialGC",
    "-Xms2g",
    "-Xmx2g",
    "-XX:+AlwaysPreTouch",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
]


def available() -> bool:
    """Whether Java and Maven are here."""
    return bool(shutil.which("java") and (_built() or shutil.which("mvn")))


def build() -> None:
    """Compile, unless the classes are younger than their sources."""
    if not _built():
        subprocess.run(["mvn", "-q", "-B", "package"], cwd=PROJECT, check=True)


def command(what: str, arguments: dict[str, object], home: str) -> list[str]:
    """The command line of one contender; whatever Java writes to a user's home goes to `home`."""
    path = f"{TARGET}/classes{os.pathsep}{TARGET}/lib/*"
    pairs = [f"{name}={value}" for name, value in arguments.items()]
    return ["java", *FLAGS, f"-Duser.home={home}", "-cp", path, "bench.Main", what, *pairs]


def _built() -> bool:
    main = os.path.join(TARGET, "classes", "bench", "Main.class")
    if not (os.path.exists(main) and os.path.isdir(os.path.join(TARGET, "lib"))):
        return False
    return os.path.getmtime(main) >= max(os.path.getmtime(path) for path in _sources())


def _sources() -> list[str]:
    folder = os.path.join(PROJECT, "src", "main", "java", "bench")
    return [os.path.join(PROJECT, "pom.xml"), *(os.path.join(folder, name) for name in os.listdir(folder))]
