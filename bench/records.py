"""Records: bench/records/<machine>/<date>.json, written by a run case by case and never edited by hand."""

from __future__ import annotations

import datetime as dt
import json
import os
from typing import Any

from bench import machine

__all__ = ["Record", "newest"]

FOLDER = os.path.join(machine.ROOT, "bench", "records")


class Record:
    """The record of today on this machine. Each case of each scale is a part of its own, so a run can be resumed."""

    def __init__(self) -> None:
        today = dt.datetime.now(dt.UTC).date().isoformat()
        self.path = os.path.join(FOLDER, machine.slug(), f"{today}.json")
        self.data: dict[str, Any] = {"machine": {}, "date": today, "parts": {}}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                self.data = json.load(file)
        self.data["machine"] = machine.describe()

    def has(self, scale: str, case: str, commit: str) -> bool:
        """Whether the case was measured today at this very commit."""
        part = self.data["parts"].get(scale, {}).get(case)
        return bool(part) and part["commit"] == commit and not commit.endswith("+")

    def put(self, scale: str, case: str, commit: str, part: dict[str, Any]) -> None:
        """Store a case's part, at once and as a whole."""
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        self.data["parts"].setdefault(scale, {})[case] = {"commit": commit, "measured_at": now, **part}
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path + ".part", "w", encoding="utf-8") as file:
            json.dump(self.data, file, indent=1)
            file.write("\n")
        os.replace(self.path + ".part", self.path)


def newest() -> list[dict[str, Any]]:
    """The newest figures of each machine, that with the most cases at full size first; none: nothing was measured.

    Each is the machine's youngest record, with what only older ones have of cases and sizes.
    """
    found = []
    for folder in sorted(os.listdir(FOLDER)) if os.path.isdir(FOLDER) else []:
        names = sorted(name for name in os.listdir(os.path.join(FOLDER, folder)) if name.endswith(".json"))
        parts: dict[str, dict[str, Any]] = {}
        data: dict[str, Any] = {}
        for name in names:
            with open(os.path.join(FOLDER, folder, name), encoding="utf-8") as file:
                data = json.load(file)
            for scale, cases in data["parts"].items():
                parts[scale] = parts.get(scale, {}) | cases
        if names:
            found.append(data | {"parts": parts})
    return sorted(found, key=_extent, reverse=True)


def _extent(data: dict[str, Any]) -> tuple[int, str]:
    """How many cases were measured at full size, and when the last of them was."""
    full = data["parts"].get("full", {}).values()
    return len(full), max((part["measured_at"] for part in full), default="")
