"""Asks released brokers the questions, and keeps what they answer in `tests/data/rocketmq/thresholds.json`.

python -m tests.peer.thresholds.ask [ROW...]      # Maven fetches about twenty releases
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.peer.jvm import FLAGS, PATIENCE
from tests.peer.maven import class_path, exit_code, java
from tests.peer.thresholds.questions import QUESTIONS, SIZES, Question
from tests.support.golden import DATA, case

__all__ = ["ANSWERS", "answer"]

ANSWERS = DATA / "thresholds.json"
MARK = "answer: "
OPENED = "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"  # 5.0 and later cannot unmap a file without


def answer(question: Question, release: str, home: Path) -> str:
    """What the broker of a release says, or what is in its store afterwards."""
    if question.harm is None:
        return ", ".join(_said(release, question.words, home))
    store = case("basic-493").unpack(home)
    question.harm(store)
    settings = (*SIZES, f"storePathRootDir={store}", f"storePathCommitLog={store / 'commitlog'}")
    said = _said(release, ("store", *settings, *question.words), home)
    if question.seen is not None:
        return question.seen(store)
    return ", ".join(line for line in said if re.match(f"{question.picked}|threw ", line)) or "nothing"


def _said(release: str, words: Sequence[str], home: Path) -> list[str]:
    command = [java(), *FLAGS, OPENED, f"-Duser.home={home}", "-cp", class_path("thresholds", release)]
    command += ["peer.thresholds.Asked", *words]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False, timeout=PATIENCE)
    lines = done.stdout.replace(str(home), "~").splitlines()
    return [line.removeprefix(MARK) for line in lines if line.startswith(MARK)]


def entry(name: str) -> dict[str, object]:
    """A row of the data."""
    question, said = QUESTIONS[name], {}
    for release in question.releases:
        with TemporaryDirectory() as home:
            said[release] = answer(question, release, Path(home))
    return {"asked": question.asked, "does": question.does, "answers": said}


def main() -> None:
    """Asks about the rows that are named, or about all."""
    kept = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {"rows": {}}
    for name in sys.argv[1:] or QUESTIONS:
        kept["rows"][name] = entry(name)
        print(name, json.dumps(kept["rows"][name]), flush=True)
        kept["rows"] = dict(sorted(kept["rows"].items()))
        ANSWERS.write_text(json.dumps({"rows": kept["rows"]}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(exit_code(main))
