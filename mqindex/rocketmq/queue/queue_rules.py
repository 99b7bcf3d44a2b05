"""How dispatch fills consume queues: the settings of a broker that decide which units there are, and their bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mqindex._native.log_extract import QueueTable
from mqindex._rules import Broker
from mqindex._settings import Setting
from mqindex.rocketmq import layout
from mqindex.rocketmq.brokers import (
    RETRY_TOPICS_DISPATCHED,
    SYSTEM_TOPICS_DISPATCHED,
    WAITING_TOPICS_DISPATCHED,
    follows,
)
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.settings import (
    CONSUME_QUEUE_EXT,
    EXT_FILE_SIZE,
    LMQ,
    MESSAGE_DELAY_LEVEL,
    MULTI_DISPATCH,
    QUEUE_FILE_SIZE,
)

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
DELAY_LEVELS = MESSAGE_DELAY_LEVEL.parsed(MESSAGE_DELAY_LEVEL.default)
_SYSTEM_TOPICS = RETRY_TOPICS_DISPATCHED, WAITING_TOPICS_DISPATCHED, SYSTEM_TOPICS_DISPATCHED


@dataclass(frozen=True, slots=True)
class QueueRules:
    """Rules of one store. Picklable; sizes in bytes, delays in ms.

    multi_dispatch : a message that names further queues, with its offsets there, gets units in them too.
    lmq : of these further queues, those with names that begin with `%LMQ%` have only queue 0.
    system_topics : multi-dispatch also of these: a bit each for retry topics, those where messages wait, other ones.
    ext_file_size : units hold addresses in extension files of this size; None: no extension files.
    """

    delay_levels: tuple[int, ...] = DELAY_LEVELS
    multi_dispatch: bool = True
    lmq: bool = True
    system_topics: int = 0b111
    file_size: int = layout.QUEUE_FILE_SIZE
    ext_file_size: int | None = None

    @property
    def message_delay_level(self) -> str:
        """The delay levels as a broker's configuration has them."""
        return " ".join(f"{delay // 1000}s" for delay in self.delay_levels)

    def settings(self) -> dict[Setting[Any], Any]:
        """The settings of a broker that has these lengths and levels."""
        ext = {} if self.ext_file_size is None else {EXT_FILE_SIZE: self.ext_file_size}
        return {QUEUE_FILE_SIZE: self.file_size, MESSAGE_DELAY_LEVEL: self.delay_levels, **ext}

    def table(self) -> QueueTable:
        """A fresh numbering of queues for one `Extractor`."""
        return QueueTable(
            self.delay_levels, multi_dispatch=self.multi_dispatch, lmq=self.lmq, system_topics=self.system_topics
        )


def queue_rules(
    options: StoreOptions, *, broker: Broker, file_size: int | None = None, ext_file_size: int | None = None
) -> QueueRules:
    """The rules that were given, then those that the files show (`file_size`, `ext_file_size`), then the defaults.

    Multi-dispatch counts as on unless it was switched off: a message has further units only if it has offsets for them,
    which only a broker with multi-dispatch writes.
    """
    switch = options.known(CONSUME_QUEUE_EXT)
    ext = ext_file_size is not None if switch is None else switch
    return QueueRules(
        delay_levels=options.given(MESSAGE_DELAY_LEVEL) or DELAY_LEVELS,
        multi_dispatch=options.given(MULTI_DISPATCH) is not False,
        lmq=options.given(LMQ) is not False,
        system_topics=sum(follows(broker, rule) << bit for bit, rule in enumerate(_SYSTEM_TOPICS)),
        file_size=options.known(QUEUE_FILE_SIZE) or file_size or QUEUE_FILE_SIZE.default,
        ext_file_size=(options.known(EXT_FILE_SIZE) or ext_file_size or EXT_FILE_SIZE.default) if ext else None,
    )
