"""The brokers' own classes, and our drivers over them: fetched and compiled by Maven once, kept below `build/peer`.

python -m tests.peer.maven      # what `./dev` does beforehand, so that the waiting has a name
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["BUILT", "SERVERS", "VERSIONS", "PeerError", "class_path", "exit_code", "java"]

VERSIONS = {"rocketmq": ("4.9.3", "5.5.1"), "kafka": ("3.9.1", "4.4.0")}
SERVERS = {"s3proxy": ("2.9.0",), "hdfs": ("3.4.2",)}  # of files
OTHERS = {"5.5.1": "5.5.0"}  # of the client and what else RocketMQ did not release again
KEEPERS = dict.fromkeys(("2.0.0", "2.2.2", "2.3.0"), "3.4.10")  # of ZooKeeper: their own 3.4.13 needs a Java before 14
PROJECT = Path(__file__).parent
BUILT = PROJECT.parents[1] / "build" / "peer"
CAUSES = re.compile(
    r"Could not (?:transfer|find) artifact|Unknown ?[Hh]ost|[Cc]onnect(?:ion)? (?:refused|timed out|reset)"
)


class PeerError(Exception):
    """A broker, its classes or its client are not there, or did not do what they were told."""


def java() -> str:
    """The `java` to run: that of JAVA_HOME, else the first on PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if found is None:
        raise PeerError("no Java was found; the tests with a real broker need a JDK of version 17 or newer, and Maven")
    return found


def class_path(broker: str, version: str) -> str:
    """The class path of a broker's version and its driver; built at first, without Maven and network later."""
    target = BUILT / f"{broker}-{version}"
    stamp = target / "sources.stamp"
    sources = "".join(path.read_text() for path in _sources(broker))
    if not (stamp.exists() and stamp.read_text() == sources):
        _package(broker, version, target)
        for archive in target.glob("*.jsa"):  # of the classes before
            archive.unlink()
        stamp.write_text(sources)
    return f"{target}/peer-1.jar{os.pathsep}{target}/lib/*"  # no directory: an archive of classes has none


def _sources(broker: str) -> list[Path]:
    packages = PROJECT / "src" / "main" / "java" / "peer"
    return [PROJECT / "pom.xml", *sorted(packages.glob("*.java")), *sorted(packages.glob(f"{broker}/*.java"))]


def _package(broker: str, version: str, target: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise PeerError("Maven (mvn) was not found; it fetches the real brokers, and `./dev test` installs it")
    properties = [f"-P{broker}", f"-Dpeer.version={version}", f"-Dpeer.directory={target}"]
    properties += [f"-Dpeer.others={OTHERS.get(version, version)}"]
    properties += [f"-Dpeer.zookeeper={KEEPERS[version]}"] if version in KEEPERS else []
    command = [maven, "-q", "-B", "-f", str(PROJECT / "pom.xml"), *properties, "package"]
    target.mkdir(parents=True, exist_ok=True)
    for offline in (["-o"], []):  # what an earlier build fetched is enough, whatever the network does
        done = subprocess.run([*command, *offline], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
    log = target / "maven.log"
    log.write_text(done.stdout + done.stderr)
    errors = [line.partition("[ERROR]")[2].strip() for line in done.stdout.splitlines()]  # the first comes in colour
    what = f"{broker} {version}"
    if network := next((line for line in errors if CAUSES.search(line)), None):
        raise PeerError(f"Maven could not fetch {what}; is there a network? ({network[:300]}; all: {log})")
    said = next(filter(None, errors), "it does not say why")
    raise PeerError(f"Maven could not build the driver for {what}: {said[:300]} (all: {log})")


def exit_code(work: Callable[[], None]) -> int:
    """Of a command that does this: 1 where something of a broker is missing, which is said."""
    try:
        work()
    except PeerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def fetch() -> None:
    """Fetches and compiles what is missing."""
    for broker, versions in {**VERSIONS, **SERVERS}.items():
        for version in versions:
            class_path(broker, version)


if __name__ == "__main__":
    sys.exit(exit_code(fetch))
