"""The rules of RocketMQ's brokers that differ by version: each is one row, and every command asks the same row."""

from __future__ import annotations

import re
from typing import Final

from mqindex._rules import Broker, Rule, numbers_of

REFERENCE: Final = "4.9.3"
"""The version whose rules are taken where nothing shows another; every broker takes its frames."""

_OLDEST: Final = "4.5"
"""Of those before it the rules of a start are not known; their files are read as its own."""

EVERY: Final = Rule("every broker does", None, None, "")

# ---- the configuration

MAPED_NAMES: Final = Rule(
    "sizes are mapedFileSize…, later mappedFileSize…",
    None, "4.5.2", "MessageStoreConfig",
)  # fmt: skip
TEXTS_TRIMMED: Final = Rule("blanks around a text are removed", "5.2", None, "MixAll.properties2Object")
LOG_IN_PLACES: Final = Rule(
    "storePathCommitLog may name several directories",
    "4.9.2", None, "CommitLog, MultiPathMappedFileQueue",
)  # fmt: skip
LOG_IN_ROOT: Final = Rule(
    "the log is in storePathRootDir, if storePathCommitLog is not set",
    "4.9.4", None, "MessageStoreConfig.getStorePathCommitLog",
)  # fmt: skip
ROCKSDB: Final = Rule("the queues may be in RocksDB", "5.2", None, "MessageStoreConfig.storeType")
ROCKSDB_OF_INDEXES: Final = Rule("rocksdbstore/ is made", "5.4", None, "MessageRocksDBStorage")

# ---- what is written

UNSEPARATED: Final = Rule(
    "properties end without a separator",
    "4.9.1", "5.2", "MessageDecoder.messageProperties2String",
)  # fmt: skip
FRAMES_AS_BODIES: Final = Rule(
    "maxMessageSize limits a whole frame and a whole request",
    None, "4.9.4", "CommitLog.MessageExtEncoder",
)  # fmt: skip
FRAMES_LIMITED: Final = Rule(
    "a frame may be 64 KiB longer than maxMessageSize",
    "4.9.5", None, "MessageExtEncoder",
)  # fmt: skip
LONG_TOPICS: Final = Rule("names of topics may have more than 127 bytes", "5.1", None, "MessageVersion")
TAGS_INDEXED: Final = Rule("TAGS give index entries too (RIP-82)", "5.4", None, "IndexService.buildIndex")
RETRY_TOPICS_DISPATCHED: Final = Rule(
    "multi-dispatch is also of retry topics",
    None, "5.1.1", "ConsumeQueue.checkMultiDispatchQueue",
)  # fmt: skip
WAITING_TOPICS_DISPATCHED: Final = Rule(
    "it is also of the schedule topic and of the timer's",
    None, "5.1.3", "ConsumeQueue.checkMultiDispatchQueue",
)  # fmt: skip
SYSTEM_TOPICS_DISPATCHED: Final = Rule(
    "it is also of every other topic that begins with rmq_sys_",
    None, "5.2", "MultiDispatchUtils.isNeedHandleMultiDispatch",
)  # fmt: skip
BATCH_QUEUES: Final = Rule(
    "topics have types, and those of type BatchCQ have batch queues",
    "5.0", None, "ConsumeQueueStore.loadBatchConsumeQueues",
)  # fmt: skip

# ---- the start

DIRECTORIES_STOP: Final = Rule(
    "a directory among the files of a log or queue prevents a start; later it is skipped",
    None, "5.1", "MappedFileQueue.doLoad",
)  # fmt: skip
EMPTY_FILES_STOP: Final = Rule(
    "an empty file prevents a start; later it is deleted, if it is the last by name",
    None, "5.1.3", "MappedFileQueue.doLoad",
)  # fmt: skip
WAITS_FOR_DISPATCH: Final = Rule(
    "a start waits until the log is dispatched to its end",
    None, "5.0", "DefaultMessageStore.start",
)  # fmt: skip
WAITS_IF_TOLD: Final = Rule(
    "it does so only with recheckReputOffsetFromCq",
    "5.0", None, "DefaultMessageStore.start",
)  # fmt: skip
INDEX_FILES_REQUIRED: Final = Rule(
    "a store whose index cannot be loaded is not opened",
    "5.1", None, "DefaultMessageStore.load",
)  # fmt: skip
PROCESS_ID_KEPT: Final = Rule(
    "a start writes its process id into abort, and keeps the last one in abort.bak",
    "5.0", None, "DefaultMessageStore.createTempFile",
)  # fmt: skip
TIMERS: Final = Rule("messages have a time of delivery", "5.0", None, "TimerMessageStore.load")
COMPACTION: Final = Rule("topics may be compacted", "5.1", None, "CompactionStore.load")
CONFIGS_OF_5: Final = Rule(
    "consumerOrderInfo.json, topicQueueMapping.json and timermetrics are loaded",
    "5.0", None, "BrokerController.initialize",
)  # fmt: skip
TIMER_OFFSET_CORRECTED: Final = Rule(
    "config/timercheck beyond the timer's queue is set back to its end",
    "5.3.2", None, "TimerMessageStore.recover",
)  # fmt: skip
FASTJSON_2: Final = Rule("blanks or [] are no configuration", "5.4", None, "RemotingSerializable.fromJson")
OFFSETS_NOT_BLANK: Final = Rule(
    "a table of consumers' offsets that is blank is not taken", "5.0", None, "ConsumerOffsetManager.decode"
)
GROUPS_NOT_BLANK: Final = Rule(
    "a table of groups that is blank is not taken", None, "5.1", "SubscriptionGroupManager.decode"
)
BLANK_ENDS_STOP: Final = Rule(
    "a queue whose last file begins without a unit is not loaded", "5.0", "5.5", "ConsumeQueue.recover"
)

# ---- the recovery

RECOVERS_FROM_QUEUES: Final = Rule(
    "after a clean end it begins at the newest file to which the queues reach, not at the third-last one",
    "5.3.2", None, "CommitLog.recoverNormally",
)  # fmt: skip
RECOVERS_FEW_FILES: Final = Rule(
    "it goes back over commitLogRecoverMaxNum files at most, empty ones counted; one whose first record is bad does "
    "not match",
    "5.4", None, "CommitLog.recoverAbnormally",
)  # fmt: skip
RECOVERS_FROM_OFFSET: Final = Rule(
    "the checkpoint's logicsPhysicalOffset counts, if there is one",
    "5.5", None, "ConsumeQueueStore.isMappedFileMatchedRecover",
)  # fmt: skip
CONFIRMED_DISPATCHED: Final = Rule(
    # a broker is fenced (BrokerController.initialize) until a controller gave it its role; what is not confirmed is
    # written once it is
    "with enableControllerMode a start goes on at the checkpoint's confirmPhyOffset, wherever the recovery began",
    "5.1.1", None, "DefaultMessageStore.start",
)  # fmt: skip
LARGE_BLANK_CUTS: Final = Rule(
    "a file's blank is a bad record if its size is more than what is left of the file",
    "5.3.2", None, "CommitLog.checkMessageAndReturnSize",
)  # fmt: skip
NEGATIVE_BLANK_CUTS: Final = Rule(
    "it is one too if its size is negative",
    "5.5.1", None, "CommitLog.checkMessageAndReturnSize",
)  # fmt: skip

# ---- reading

BACK_TO_MIN: Final = Rule(
    "a request beyond the end of a queue that begins at 0 is sent to its beginning, not to its end",
    None, "4.9.4", "DefaultMessageStore.getMessage",
)  # fmt: skip

RULES: Final = tuple(rule for rule in globals().values() if isinstance(rule, Rule) and rule.thresholds)


def broker_of(broker_version: str | None) -> Broker:
    """The broker of a version that was given, None: of any. `ValueError` for what is no version, or too old.

    >>> broker_of("4.9.3").does(TAGS_INDEXED), broker_of("v5.4-SNAPSHOT").does(TAGS_INDEXED)
    (False, True)
    """
    if broker_version is None:
        return Broker()
    if not isinstance(broker_version, str):
        raise TypeError(f"broker_version: expected a version like '4.9.3', got {broker_version!r:.80}")
    numbers = re.match(r"^[vV]?(\d{1,9}\.\d{1,9}(?:\.\d{1,9})?)(?:\.\d+)*(?:[-.].*)?$", broker_version)
    if numbers is None:
        raise ValueError(f"broker_version: expected a version like '4.9.3', got {broker_version!r:.80}")
    if numbers_of(numbers[1]) < numbers_of(_OLDEST):
        raise ValueError(
            f"broker_version: expected {_OLDEST} or later, got {broker_version}: how older brokers start is not known; "
            f"the files are those of {_OLDEST}.0, so give that"
        )
    return Broker.of(numbers[1])


def follows(broker: Broker, rule: Rule) -> bool:
    """Whether it does what a rule says; where that depends on a version that nothing shows, as 4.9.3 does."""
    done = broker.does(rule)
    return bool(Broker.of(REFERENCE).does(rule)) if done is None else done
