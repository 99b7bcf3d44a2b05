"""Which topics brokers keep for themselves, and what decodes the records of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mqindex.columns.columns import Columns
from mqindex.kafka.internal.commits import decode_commits
from mqindex.kafka.internal.metadata import decode_metadata
from mqindex.kafka.internal.transaction_states import decode_transactions

DECODERS: Final[Mapping[str, Callable[[Columns], Columns]]] = {
    "__consumer_offsets": decode_commits,
    "__transaction_state": decode_transactions,
    "__cluster_metadata": decode_metadata,
}
