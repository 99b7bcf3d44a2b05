"""What a broker of a version, with its settings, writes into a commit log, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass

from mqindex._native.pieces import hosts_of, pieces_of_sequence
from mqindex._settings import Setting
from mqindex.files.paths import absolute
from mqindex.rocketmq import settings
from mqindex.rocketmq.broker_conf import blamed_on
from mqindex.rocketmq.brokers import FRAMES_AS_BODIES, FRAMES_LIMITED, LONG_TOPICS, UNSEPARATED, follows
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.settings import FLUSH_DISK_TYPES, LOG_FOR_READING, whole

_MARGIN = 64 << 10  # what a whole frame may have beyond the largest body
_MAX_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class WriteRules:
    """How messages become frames. `max_batch`: bytes of all frames of one request; `store_host`: as in a frame.

    Source: RocketMQ `MessageExtEncoder`, `MessageDecoder.messageProperties2String`, `CommitLog.asyncPutMessage`.
    """

    separator: bool = False
    append_crc: bool = False
    long_topics: bool = False
    max_body: int = 4 << 20
    max_frame: int = 4 << 20
    max_batch: int = 4 << 20
    store_host: bytes = b"\x7f\0\0\1\0\0\x2a\x9f"


@dataclass(frozen=True, slots=True)
class FlushRules:
    """When written bytes go to the disk. `sync`: before an append returns; times in seconds.

    Source: RocketMQ 4.9.3 `CommitLog.FlushRealTimeService`, `GroupCommitService`, `MappedFile.isAbleToFlush`.
    """

    sync: bool = False
    interval: float = 0.5
    least_pages: int = 4
    thorough_interval: float = 10.0


def write_rules(options: StoreOptions) -> WriteRules:
    """The rules of `options.broker_version` (not given: 4.9.3, whose frames every broker takes) and its settings.

    >>> from mqindex.rocketmq.options import store_options
    >>> write_rules(store_options("/store", broker_version="5.5.0")).separator
    True
    """
    broker = options.broker
    max_message = _whole(options, settings.MAX_MESSAGE_SIZE)
    as_bodies = follows(broker, FRAMES_AS_BODIES)
    limit = max_message + _MARGIN if follows(broker, FRAMES_LIMITED) else _MAX_INT
    return WriteRules(
        separator=not follows(broker, UNSEPARATED),
        append_crc=options.value(settings.PROPERTIES_CRC),
        long_topics=follows(broker, LONG_TOPICS) and options.value(settings.LONG_TOPIC_FRAMES),
        max_body=max_message,
        max_frame=max_message if as_bodies else min(limit, _MAX_INT),
        max_batch=max_message if as_bodies else _MAX_INT,
        store_host=_store_host(options),
    )


def flush_rules(options: StoreOptions, flush: str | None = None) -> FlushRules:
    """`flush` "sync" or "async"; None: flushDiskType, else async."""
    chosen = FLUSH_DISK_TYPES[options.value(settings.FLUSH_DISK_TYPE)] if flush is None else flush
    if chosen not in ("sync", "async"):
        raise ValueError(f"flush: expected sync or async, got {flush!r}")
    return FlushRules(
        sync=chosen == "sync",
        interval=_whole(options, settings.FLUSH_INTERVAL) / 1000,
        least_pages=_whole(options, settings.FLUSH_LEAST_PAGES),
        thorough_interval=_whole(options, settings.FLUSH_THOROUGH_INTERVAL) / 1000,
    )


def host_bytes(name: str, host: str) -> bytes:
    """`address:port` as in a frame; IPv6 as `[address]:port`.

    >>> host_bytes("store_host", "10.0.0.2:10911").hex()
    '0a00000200002a9f'
    """
    return hosts_of(name, pieces_of_sequence(name, [host])).to_bytes(0)


def _store_host(options: StoreOptions) -> bytes:
    address, port = options.value(settings.BROKER_ADDRESS), _whole(options, settings.BROKER_PORT)
    with blamed_on(options.broker_conf):
        try:
            return host_bytes("brokerIP1", f"[{address}]:{port}" if ":" in address else f"{address}:{port}")
        except ValueError:
            raise ValueError(f"brokerIP1: expected an IP address, got {address!r:.60}") from None


def _whole(options: StoreOptions, setting: Setting[int]) -> int:
    with blamed_on(options.broker_conf):
        return whole(setting.name, options.value(setting), 0)


def places_of_new_files(options: StoreOptions) -> list[str]:
    """Where new files go: every directory that is not for reading only."""
    frozen = options.value(LOG_FOR_READING).split(",")
    frozen = [absolute(path.strip()) for path in frozen if path.strip()]
    return [directory for directory in options.commitlog if directory not in frozen] or list(options.commitlog)
