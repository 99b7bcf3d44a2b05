"""Runs examples of Python in a process of its own: Spark has one session a process, and one Java process for all.

A Java process takes most of a session's time to begin, so the sessions of a run share it, one after the other.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType

__all__ = ["FLAGS", "Examples"]

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ROOT = Path(__file__).parents[2]
SESSION = "session.txt"


class Examples:
    """The process, in a directory of its own; `with` ends it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.said = place.with_name(f"{place.name}.log")

    def __enter__(self) -> Examples:
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path}
        with self.said.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.examples"], cwd=self.place, env=environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()

    def run(self, session: str, files: Path) -> None:
        """A session that begins with a copy of these files around it, as a process of its own would."""
        for left in self.place.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        shutil.copytree(files, self.place, dirs_exist_ok=True)
        (self.place / SESSION).write_text(session)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, f"the process ended: {self.said.read_text()[-5000:]}"
        failed, words = json.loads(answer)
        assert failed == 0, words + self.said.read_text()[-5000:]


def main() -> None:
    """A line of standard input is a session to run."""
    for _ in sys.stdin:
        with contextlib.redirect_stdout(io.StringIO()) as words:
            failed, _ = doctest.testfile(SESSION, module_relative=False, optionflags=FLAGS)
            if "pyspark" in sys.modules:
                from pyspark.sql import SparkSession

                if (spark := SparkSession.getActiveSession()) is not None:
                    spark.stop()
        print(json.dumps([failed, words.getvalue()]), flush=True)


if __name__ == "__main__":
    main()
