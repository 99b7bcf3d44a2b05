"""What holds for the catalogue of findings of every broker; which kinds are in it, the tests of each say."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from mqindex.kafka.checks import catalogue as of_kafka
from mqindex.report import Kind
from mqindex.rocketmq.checks import catalogue as of_rocketmq

KINDS = {**of_rocketmq.CATALOGUE, **of_kafka.CATALOGUE}
EACH = [(name, kind) for module in (of_rocketmq, of_kafka) for name, kind in sorted(module.CATALOGUE.items())]


@pytest.mark.parametrize(("name", "kind"), EACH, ids=[name for name, _ in EACH])
def test_a_kind_is_said_in_a_plain_sentence(name: str, kind: Kind) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", name)
    assert kind.meaning[0].isupper()
    assert kind.meaning.endswith(".")
    assert kind.severity != "error" or kind.hint, "what is to be done?"
    assert kind.hint is None or not kind.hint.endswith(".")


@pytest.mark.parametrize("module", [of_rocketmq, of_kafka], ids=["rocketmq", "kafka"])
def test_the_table_has_a_row_for_each_and_the_errors_first(module: object) -> None:
    rows: Callable[[], list[tuple[str, str, str, str]]] = module.rows  # type: ignore[attr-defined]
    assert {row[0] for row in rows()} == set(module.CATALOGUE)  # type: ignore[attr-defined]
    severities = [row[1] for row in rows()]
    assert severities == sorted(severities, key=("error", "warning", "info").index)
