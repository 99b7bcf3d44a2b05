"""The index: how full its files are, how long look-ups take in them, which keys there are most of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mqindex.files.paths import base_name
from mqindex.health import Histogram, Share, Text
from mqindex.rocketmq.checks.check import Checked
from mqindex.rocketmq.checks.store_diagnosis import StoreDiagnosis
from mqindex.rocketmq.health.samples import Named
from mqindex.rocketmq.tally.index_shape import LONGEST, IndexShape
from mqindex.rocketmq.tally.split_tally import Frequent, KeyCounts, SplitCounts, together

_FILES = 200
_KEYS = 20
_SHOWN_CHAIN = 16
_HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class IndexFileHealth:
    """One good index file.

    Attributes
    ----------
    name : str
    entries, capacity : int
    begin_timestamp, end_timestamp : int, ms since the epoch, of its header
    slots, slots_used : int; slots_expected : float, slots in use if as many entries, all of other keys, fell at random
    heat : tuple of int, slots in use in each of 256 equal stretches of the slots
    chains : Histogram, slots by the length of their chain; the last bin: that, or longer
    chains_expected : tuple of float, the same if entries fell at random (Poisson)
    sampled : Share, of how many slots `chains` and the means are made; chains are then those of all slots
    longest : int, of these the longest chain, 1000: that, or longer
    cold_reads : float, pages that a look-up of a key that is there reads when none is in memory: its slot's, and one
        for each entry of the chain, or for all of them where they are side by side. Mean over the entries, so that
        frequent keys count more
    cold_reads_expected : float, the same if entries fell at random
    other_keys : float, entries of other keys in a chain, mean over the slots in use
    """

    name: str
    entries: int
    capacity: int
    begin_timestamp: int
    end_timestamp: int
    slots: int
    slots_used: int
    slots_expected: float
    heat: tuple[int, ...]
    chains: Histogram
    chains_expected: tuple[float, ...]
    sampled: Share
    longest: int
    cold_reads: float
    cold_reads_expected: float
    other_keys: float


@dataclass(frozen=True, slots=True)
class FrequentKey:
    """A key with many messages, or several keys of one hash.

    Attributes
    ----------
    key_hash : int
    entries : int, about how many; it is not counted in a stretch of 128 MiB that has it only once, or has 64 keys that
        are more frequent. An estimate where keys were sampled
    phy_offset : int, of one such message
    topic, key : Text or None, as that message has them; None: it cannot be read any more, or keys were not asked for
    property : str or None, KEYS, UNIQ_KEY or TAGS
    """

    key_hash: int
    entries: int
    phy_offset: int
    topic: Text | None
    key: Text | None
    property: str | None


@dataclass(frozen=True, slots=True)
class IndexHealth:
    """The index of a store.

    Attributes
    ----------
    hash_slot_num, index_num : int
    entries, capacity : int, of all good files
    files : tuple of IndexFileHealth, the newest 200, oldest first; more_files : int, good ones that are not listed
    entries_per_hour : int or None, over the newest file; None: the time is too short
    rolls_at : int or None, ms since the epoch, when the newest file will be full at this rate
    log_entries : int, those that the log gives
    keys_per_message : Histogram, messages by their number of index entries; the last bin: 16 or more
    mean_keys : float, of all messages
    frequent : tuple of FrequentKey, at most 20, those with two entries or more
    sampled : Share, of how many entries the keys were counted
    cold_reads : float or None, mean over the files, by their entries; None: there are none
    cold_reads_ordered : float, what it would be if a slot's entries were side by side: the slot's page, and one more
    """

    hash_slot_num: int
    index_num: int
    entries: int
    capacity: int
    files: tuple[IndexFileHealth, ...]
    more_files: int
    entries_per_hour: int | None
    rolls_at: int | None
    log_entries: int
    keys_per_message: Histogram
    mean_keys: float
    frequent: tuple[FrequentKey, ...]
    sampled: Share
    cold_reads: float | None
    cold_reads_ordered: float = 2.0


def frequent_keys(counts: Iterable[SplitCounts]) -> list[Frequent]:
    """The hashes of the most frequent keys."""
    return together((split.keys.frequent for split in counts), _KEYS)


def index_of(
    diagnosis: StoreDiagnosis, counts: Iterable[SplitCounts], named: Mapping[int, Named], *, show_keys: bool
) -> IndexHealth:
    """The index of a store that was checked."""
    counts = list(counts)
    slots, index_num = diagnosis.index.survey.geometry.value
    good = diagnosis.index.good
    files = [_file(one, one.shape, slots, index_num) for one in good if one.shape is not None]
    runs = diagnosis.walked.runs
    entries, messages = sum(run.entries for run in runs), diagnosis.walked.messages
    share = Share("keys", "index entries", sum(one.keys.seen for one in counts), entries)
    per_hour, rolls_at = _growth(good)
    weight = sum(one.entries for one in files)
    return IndexHealth(
        hash_slot_num=slots,
        index_num=index_num,
        entries=sum(one.entries for one in good),
        capacity=len(good) * (index_num - 1),
        files=tuple(files[-_FILES:]),
        more_files=max(len(good) - _FILES, 0),
        entries_per_hour=per_hour,
        rolls_at=rolls_at,
        log_entries=entries,
        keys_per_message=_keys_per_message([one.keys for one in counts], share, messages),
        mean_keys=entries / messages if messages else 0.0,
        frequent=tuple(_frequent(one, share, named, show_key=show_keys) for one in frequent_keys(counts)),
        sampled=share,
        cold_reads=sum(one.cold_reads * one.entries for one in files) / weight if weight else None,
    )


def _file(one: Checked, shape: IndexShape, slots: int, index_num: int) -> IndexFileHealth:
    followed = Share("chains", "slots", shape.followed, slots)
    chains: Counter[int] = Counter()
    for length, count in shape.chains.items():
        chains[min(length, _SHOWN_CHAIN)] += followed.estimate(count)
    in_chains = sum(length * count for length, count in shape.chains.items())
    squares = sum(length * length * count for length, count in shape.chains.items())
    with_chain = sum(count for length, count in shape.chains.items() if length)
    chain = squares / in_chains if in_chains else 0.0  # of an entry
    mean = one.entries / slots
    return IndexFileHealth(
        name=base_name(one.path),
        entries=one.entries,
        capacity=index_num - 1,
        begin_timestamp=shape.header.begin_timestamp,
        end_timestamp=shape.header.end_timestamp,
        slots=slots,
        slots_used=shape.slots_used,
        slots_expected=-slots * math.expm1(one.entries * math.log1p(-1 / slots)) if slots > 1 else float(bool(mean)),
        heat=shape.heat,
        chains=Histogram.of({length: chains[length] for length in range(_SHOWN_CHAIN + 1)}),
        chains_expected=_poisson(mean, slots),
        sampled=followed,
        longest=min(max(shape.chains, default=0), LONGEST),
        cold_reads=1 + (min(chain, 1.0) if one.moved else chain),  # `optimize` brings its entries side by side
        cold_reads_expected=2 + mean if one.entries else 1.0,
        other_keys=shape.other_keys / with_chain if with_chain else 0.0,
    )


def _poisson(mean: float, slots: int) -> tuple[float, ...]:
    """Slots with chains of 0, 1, 2 and so on, the last: that, or longer."""
    logs = [length * math.log(mean) - mean - math.lgamma(length + 1) if mean else 0.0 for length in range(_SHOWN_CHAIN)]
    shares = [math.exp(one) for one in logs] if mean else [1.0] + [0.0] * (_SHOWN_CHAIN - 1)
    return (*(slots * share for share in shares), slots * max(1 - sum(shares), 0.0))


def _growth(good: tuple[Checked, ...]) -> tuple[int | None, int | None]:
    """Entries an hour in the newest file, and when it is full."""
    newest = next((one for one in reversed(good) if one.entries > 1 and one.shape is not None), None)
    if newest is None or newest.shape is None:
        return None, None
    header = newest.shape.header
    span = header.end_timestamp - header.begin_timestamp
    if span < _HOUR:
        return None, None
    rolls = header.end_timestamp + newest.room * span // newest.entries if newest.room and newest is good[-1] else None
    return newest.entries * _HOUR // span, rolls


def _keys_per_message(parts: Iterable[KeyCounts], share: Share, messages: int) -> Histogram:
    seen: Counter[int] = Counter()
    for part in parts:
        seen.update(part.messages)
    counts = {keys: share.estimate(count) for keys, count in seen.items()}
    without = max(messages - sum(counts.values()), 0)
    return Histogram.of({0: without, **counts})


def _frequent(one: tuple[int, int, int], share: Share, named: Mapping[int, Named], *, show_key: bool) -> FrequentKey:
    value, count, place = one
    message = named.get(place)
    topic, key, name = message.keys.get(value, (None, None, None)) if message else (None, None, None)
    return FrequentKey(value, share.estimate(count), place, topic, key if show_key else None, name)
