"""The parts of a partition's health: plain data, as `kafka.report` gives it."""

from __future__ import annotations

from dataclasses import dataclass

from mqindex.health import Histogram, Text


@dataclass(frozen=True, slots=True)
class Totals:
    """A number of partitions, and what is in them. `unread`: their segments whose logs could not be read."""

    partitions: int = 0
    segments: int = 0
    unread: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0


@dataclass(frozen=True, slots=True)
class CodecShare:
    """What is compressed with one codec.

    Attributes
    ----------
    codec : str, "none", "gzip", "snappy", "lz4", "zstd"; "5" to "7": unknown to every broker
    batches, records, bytes : int
    sampled : int, batches that were decompressed
    ratio : float or None, how many times as long their records are as what is stored; None: none was decompressed
    """

    codec: str
    batches: int
    records: int
    bytes: int
    sampled: int
    ratio: float | None


@dataclass(frozen=True, slots=True)
class BatchSpan:
    """Batches that follow each other in the log, from `offset` to `last_offset`.

    `min_timestamp`, `max_timestamp`: the least and the greatest of the batches' timestamps, ms since the epoch; None:
    they have none.
    """

    offset: int
    last_offset: int
    min_timestamp: int | None
    max_timestamp: int | None
    batches: int
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """It began at `first_offset`, and no marker ends it: readers of committed records wait there."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class Transactions:
    """What the log shows of transactions.

    Attributes
    ----------
    committed, aborted, open : int
    listed : tuple of OpenTransaction, the oldest 20 of those that are open
    batches, control_batches : int, of records in transactions, of markers
    whole : bool, False: a segment cannot be read to its end, and there may be more
    """

    committed: int
    aborted: int
    open: int
    listed: tuple[OpenTransaction, ...]
    batches: int
    control_batches: int
    whole: bool


@dataclass(frozen=True, slots=True)
class LeaderEpoch:
    """The batches from `base_offset` on have this epoch, up to the next one's."""

    epoch: int
    base_offset: int


@dataclass(frozen=True, slots=True)
class Producer:
    """What the producer with this id wrote."""

    producer_id: int
    batches: int
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Producers:
    """Producers with an id: idempotent and transactional ones.

    `count`: how many ids there are, or at least are, where `whole` is False. `biggest`: the 20 with the most bytes.
    `batches`: of all of them; the other batches name no producer.
    """

    count: int
    whole: bool
    batches: int
    biggest: tuple[Producer, ...]


@dataclass(frozen=True, slots=True)
class IndexHealth:
    """One index of a segment.

    Attributes
    ----------
    state : "good", "differs" (sound, but not what a rebuild writes), "wrong" (`repair` writes it anew), "missing"
        (`repair` makes it), "none" (there is nothing to be in it), "unknown" (the log cannot be read)
    bytes : int or None, the length of the file; None: there is none
    entries : int or None, in use; None: not known
    """

    state: str
    bytes: int | None
    entries: int | None


@dataclass(frozen=True, slots=True)
class SegmentHealth:
    """One segment.

    Attributes
    ----------
    base_offset : int
    last_offset : int or None; None: it has no batch, or cannot be read
    bytes, batches, records : int; of the good batches the last two
    min_timestamp, max_timestamp : int or None, ms since the epoch, of its batches
    retention_timestamp : int or None, ms since the epoch: what a broker's retention by time uses: the greatest
        timestamp where the time index has entries, else `modified`
    modified : int or None, ms since the epoch: when the log file was written to
    cut : int, bytes that a broker's recovery cuts
    refusal : str or None, why the log cannot be read
    offset_index, time_index, transaction_index : IndexHealth
    """

    base_offset: int
    last_offset: int | None
    bytes: int
    batches: int
    records: int
    min_timestamp: int | None
    max_timestamp: int | None
    retention_timestamp: int | None
    modified: int | None
    cut: int
    refusal: str | None
    offset_index: IndexHealth
    time_index: IndexHealth
    transaction_index: IndexHealth


@dataclass(frozen=True, slots=True)
class PartitionHealth:
    """One partition.

    Attributes
    ----------
    name : Text, its directory's. path : str
    errors, warnings, infos : int, findings
    totals : Totals
    first_offset, next_offset : int or None; None: there is no batch
    log_start_offset, recovery_point, high_watermark : int or None, by the checkpoints of the log dir; None: they do not
        say
    min_timestamp, max_timestamp : int or None, ms since the epoch, of its batches
    codecs : tuple of CodecShare
    magics : tuple of int, batches of format 0, 1 and 2
    wrapped : int, compressed messages of formats 0 and 1: each counts as one record
    batch_bytes, batch_records : Histogram, of the batches
    offset_entries_per_mib, time_entries_per_mib : float or None; None: there is no log
    append_time_batches : int, with the broker's time; untimed_batches : int, without any
    late_batches : int, below the greatest timestamp before them in their segment
    furthest_back : int, ms: at most so much below the greatest timestamp before them in the partition
    stretches : tuple of BatchSpan, at most 200: time against offset
    transactions : Transactions
    leader_epochs : tuple of LeaderEpoch, the newest 100 in the log; leader_epoch_count : int, all of them
    checkpoint_epochs : int, entries of `leader-epoch-checkpoint`
    producers : Producers
    time_indexes_lost : int, segments with records whose time index is missing, or wrong and without an entry
    segments : tuple of SegmentHealth, the newest 200
    """

    name: Text
    path: str
    errors: int
    warnings: int
    infos: int
    totals: Totals
    first_offset: int | None
    next_offset: int | None
    log_start_offset: int | None
    recovery_point: int | None
    high_watermark: int | None
    min_timestamp: int | None
    max_timestamp: int | None
    codecs: tuple[CodecShare, ...]
    magics: tuple[int, ...]
    wrapped: int
    batch_bytes: Histogram
    batch_records: Histogram
    offset_entries_per_mib: float | None
    time_entries_per_mib: float | None
    append_time_batches: int
    untimed_batches: int
    late_batches: int
    furthest_back: int
    stretches: tuple[BatchSpan, ...]
    transactions: Transactions
    leader_epochs: tuple[LeaderEpoch, ...]
    leader_epoch_count: int
    checkpoint_epochs: int
    producers: Producers
    time_indexes_lost: int
    segments: tuple[SegmentHealth, ...]
