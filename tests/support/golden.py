"""The golden stores below `tests/data`: their names, their truth, and a copy to work on."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.archives import unpack

__all__ = ["BASIC", "DATA", "KILLED_CASES", "STORE_CASES", "OracleCase", "StoreCase", "case", "oracle_cases"]

DATA = Path(__file__).resolve().parent.parent / "data" / "rocketmq"
BASIC = (  # the configuration of basic-493
    "brokerName=broker-a", "maxHashSlotNum=100", "maxIndexNum=400", "mappedFileSizeCommitLog=65536",
    "mappedFileSizeConsumeQueue=1000",
)  # fmt: skip
STORE_CASES = sorted(path.parent.name for path in DATA.glob("*/store.tar.gz"))
KILLED_CASES = sorted(path.parent.name for path in DATA.glob("*/store-after.tar.gz"))


@dataclass(frozen=True)
class StoreCase:
    """One store. `truth`: what the broker said of `store.tar.gz`; `truth_after`: of `store-after.tar.gz`."""

    name: str

    @property
    def truth(self) -> dict[str, Any]:
        return _json(self.name, "truth.json.gz")

    @property
    def truth_after(self) -> dict[str, Any]:
        return _json(self.name, "truth-after.json.gz")

    @property
    def geometry(self) -> tuple[int, int]:
        """(hash_slot_num, index_num)."""
        config = self.truth["config"]
        return config["maxHashSlotNum"], config["maxIndexNum"]

    @property
    def version(self) -> str:
        return str(self.truth["version"])

    def unpack(self, directory: Path) -> Path:
        """The store's root, fresh below `directory`."""
        return _unpack(self.name, "store.tar.gz", directory / self.name)

    def unpack_after(self, directory: Path) -> Path:
        """The same store after the broker opened it once more."""
        return _unpack(self.name, "store-after.tar.gz", directory / f"{self.name}-after")


@dataclass(frozen=True)
class OracleCase:
    """One sequence of `putKey` calls and the bytes that they left."""

    name: str
    said: dict[str, Any]

    @property
    def bytes_after_flush(self) -> bytes:
        with gzip.open(DATA / "oracle-493" / self.said["file"]) as file:
            return file.read()


def case(name: str) -> StoreCase:
    """The case of that name.

    >>> case("rolls-493").geometry
    (7, 20)
    """
    if name not in STORE_CASES:
        raise KeyError(name)
    return StoreCase(name)


@cache
def oracle_cases() -> tuple[OracleCase, ...]:
    """Every `putKey` sequence."""
    return tuple(OracleCase(said["case"], said) for said in _json("oracle-493", "oracle.json.gz")["cases"])


@cache
def _json(name: str, file: str) -> dict[str, Any]:
    with gzip.open(DATA / name / file) as stream:
        loaded: dict[str, Any] = json.load(stream)
    return loaded


def _unpack(name: str, archive: str, directory: Path) -> Path:
    unpack(DATA / name / archive, directory)
    return directory / "store"
