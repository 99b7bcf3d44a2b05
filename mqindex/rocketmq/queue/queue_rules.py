"""How dispatch fills consume queues: the settings of a broker that decide which units there are, and their bytes."""

from __future__ import annotations

from dataclasses import dataclass

from mqindex._native.log_extract import QueueTable
from mqindex._rules import Broker
from mqindex.rocketmq import layout
from mqindex.rocketmq.brokers import SYSTEM_TOPICS_DISPATCHED, follows
from mqindex.rocketmq.options import StoreOptions, parse_delay_levels
from mqindex.rocketmq.settings import MESSAGE_DELAY_LEVEL

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
DELAY_LEVELS = parse_delay_levels(MESSAGE_DELAY_LEVEL)


@dataclass(frozen=True, slots=True)
class QueueRules:
    """Rules of one store. Picklable; sizes in bytes, delays in ms.

    multi_dispatch : a message that names further queues, with its offsets there, gets units in them too.
    lmq : of these further queues, those with names that begin with `%LMQ%` have only queue 0.
    system_topics : multi-dispatch also of retry, system and schedule topics.
    ext_file_size : units hold addresses in extension files of this size; None: no extension files.
    """

    delay_levels: tuple[int, ...] = DELAY_LEVELS
    multi_dispatch: bool = True
    lmq: bool = True
    system_topics: bool = True
    file_size: int = layout.QUEUE_FILE_SIZE
    ext_file_size: int | None = None

    @property
    def message_delay_level(self) -> str:
        """The delay levels as a broker's configuration has them."""
        return " ".join(f"{delay // 1000}s" for delay in self.delay_levels)

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
    ext = options.consume_queue_ext if options.consume_queue_ext is not None else ext_file_size is not None
    return QueueRules(
        delay_levels=options.delay_levels or DELAY_LEVELS,
        multi_dispatch=options.multi_dispatch is not False,
        lmq=options.lmq is not False,
        system_topics=follows(broker, SYSTEM_TOPICS_DISPATCHED),
        file_size=options.consume_queue_file_size or file_size or layout.QUEUE_FILE_SIZE,
        ext_file_size=(options.consume_queue_ext_file_size or ext_file_size or layout.EXT_FILE_SIZE) if ext else None,
    )
