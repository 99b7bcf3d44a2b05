"""A store whose broker was replaced by one of the other rule for TAGS, from 5.4 on or before: all it wrote is right."""

from __future__ import annotations

import errno
import random
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import MQIndexError
from mqindex.rocketmq import IndexService, optimize, rebuild, repair, verify
from mqindex.rocketmq.index import shown_tags
from mqindex.rocketmq.pipeline.surveys import tags_survey
from tests.reference.commit_log import index_strings, scan_log
from tests.reference.dispatch import Rules
from tests.reference.index_service import IndexService as Twin
from tests.reference.java import key_hash
from tests.reference.queue_files import build_queues
from tests.reference.rebuild import log_files
from tests.support.failing_calls import FailingCall
from tests.support.index_entries import entries_of
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter
from tests.support.nightly import NIGHTLY, one_of, some
from tests.support.tree import index_bytes

COUNT = 600
ONE = LocalEngine(1)


def make(root: Path, changes: list[int], geometry: tuple[int, int], tagged: range = range(COUNT)) -> list[Path]:
    """From the messages of these numbers on TAGS are indexed, and not indexed, in turn. Returns the index files."""
    messages = [
        LogMessage("T", keys=f"k{n}", tags="TagA" if n in tagged else None, separator=True,
                   store_timestamp=FIRST_TIME + n * 10, queue_offset=n)
        for n in range(COUNT)
    ]  # fmt: skip
    return write_store(root, messages, changes, geometry)


def write_store(root: Path, written: list[LogMessage], changes: list[int], geometry: tuple[int, int]) -> list[Path]:
    log = LogWriter(root / "commitlog", mapped_file_size=1 << 14)
    log.write(*written)
    messages = scan_log(log_files(root / "commitlog"))[0]
    service, tags_too = Twin(*geometry), False
    for n, message in enumerate(messages):
        tags_too ^= n in changes
        service.build_index(index_strings(message, tags=tags_too), message.phy_offset, message.store_timestamp)
    (root / "index").mkdir()
    paths = [root / "index" / str(20231114221320000 + n) for n in range(len(service.files))]
    for path, file in zip(paths, service.files, strict=True):
        path.write_bytes(file.flush())
    for name, data in build_queues(messages, Rules([1000]), 400).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return paths


def errors(root: Path, geometry: tuple[int, int], version: str | None) -> list[str]:
    given: dict[str, Any] = {"hash_slot_num": geometry[0], "index_num": geometry[1], "broker_version": version}
    return [
        str(one)
        for deep in (False, True)
        for one in verify(root, deep=deep, engine=ONE, **given).findings
        if one.severity == "error"
    ]


CHANGES = [[300], [0, 300], [595], [0, 595], [120], [], [200, 400], [0, 200, 400], [0, 100, 110], [50, 150, 400, 500]]
GEOMETRIES = [(50, 120), (500, 4000)]  # many files, one file
VERSIONS = [None, "4.9.3", "5.3.0", "5.5.0"]


@pytest.mark.parametrize(("changes", "geometry", "version"), one_of(len(VERSIONS), CHANGES, GEOMETRIES, VERSIONS))
def test_every_entry_is_right(
    tmp_path: Path, changes: list[int], geometry: tuple[int, int], version: str | None
) -> None:
    paths = make(tmp_path, changes, geometry)
    assert errors(tmp_path, geometry, version) == []
    before = [path.read_bytes() for path in paths]
    assert repair(tmp_path, hash_slot_num=geometry[0], index_num=geometry[1], broker_version=version).actions == []
    optimize(tmp_path / "index", tmp_path, hash_slot_num=geometry[0], index_num=geometry[1], overwrite=True)
    assert errors(tmp_path, geometry, version) == []
    assert before


def some_messages(r: random.Random, count: int) -> list[LogMessage]:
    uniq, most_keys, tagged = r.choice([True, True, False]), r.choice([0, 1, 2, 3]), r.choice([1.0, 0.7, 0.2])
    return [
        LogMessage(
            "T",
            keys=" ".join(f"k{r.randrange(10**6)}" for _ in range(r.randint(0, most_keys))) or None,
            tags=r.choice(["TagA", f"t{n}"]) if r.random() < tagged else None,
            uniq_key=f"C0A8010A1F902B193F2D{n:012X}" if uniq else None,
            separator=True,
            store_timestamp=FIRST_TIME + n * 700,
            queue_offset=n,
        )
        for n in range(count)
    ]


# Of the first 16 some are of large files and some not, from older to newer and back, at either end and in between.
@pytest.mark.parametrize("seed", some(range(60), lambda seed: seed < 16))
def test_a_change_at_any_message_is_found(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the oldest file, among its first entries, and where two files hold the message."""
    r = random.Random(seed)
    if seed % 2:  # as in large files
        monkeypatch.setattr(shown_tags, "_BLOCK", 50)
        monkeypatch.setattr(shown_tags, "_SAMPLES", 20)
        monkeypatch.setattr(tags_survey, "_SAMPLES", (20, 150))
    count, upgrade = r.choice([30, 220, 900]), r.random() < 0.5
    change = r.choice([r.randrange(1, 9), r.randrange(1, count), count - r.randrange(1, 9)])
    geometry = r.choice([7, 1000, 100_000]), r.choice([40, 150, 4000])
    paths = write_store(tmp_path, some_messages(r, count), [change] if upgrade else [0, change], geometry)
    versions = [None, "5.5.0"] if upgrade else ["4.9.3"]  # what TAGS would give after the last entry may be lost
    before = [path.read_bytes() for path in paths]
    for version in versions:
        assert errors(tmp_path, geometry, version) == []
        assert repair(tmp_path, hash_slot_num=geometry[0], index_num=geometry[1], broker_version=version).actions == []
    assert [path.read_bytes() for path in paths] == before
    optimize(tmp_path / "index", tmp_path, hash_slot_num=geometry[0], index_num=geometry[1], overwrite=True)
    for version in versions:
        assert errors(tmp_path, geometry, version) == []


@pytest.mark.parametrize("seed", some(range(12), lambda seed: seed < 5))  # both versions, either rule first
def test_changes_there_and_back_are_found(tmp_path: Path, seed: int) -> None:
    """A broker was replaced for a while, often; what is lost comes back by the rule of its time."""
    r = random.Random(seed)
    changes = [at * 23 for at in sorted(r.sample(range(1, 38), r.randrange(2, 5)))]
    changes = changes if seed % 3 else [0, *changes]
    messages = [
        LogMessage("T", keys=f"k{n}", tags=f"t{n % 7}" if r.random() < 0.7 else None, separator=True,
                   store_timestamp=FIRST_TIME + n * 700, queue_offset=n)
        for n in range(900)
    ]  # fmt: skip
    geometry, version = (100, r.choice([80, 300])), "5.5.0" if len(changes) % 2 else "4.9.3"
    given: dict[str, Any] = {"hash_slot_num": geometry[0], "index_num": geometry[1], "broker_version": version}
    paths = write_store(tmp_path, messages, changes, geometry)
    assert errors(tmp_path, geometry, version) == []
    good = index_bytes(tmp_path)
    paths[-1].unlink()
    if repair(tmp_path, **given).actions:
        assert errors(tmp_path, geometry, version) == []
    if changes[-1] < 700:  # what was lost is all of one rule
        assert index_bytes(tmp_path) == good


@pytest.mark.parametrize("changes", [[0, 200, 400], [200, 400], [50, 150, 400, 500]], ids=str)
def test_a_rebuild_keeps_the_rule_of_each_time(tmp_path: Path, changes: list[int]) -> None:
    """All of it was written by one rule, and nothing said."""
    make(tmp_path, changes, (50, 120))
    version = "5.5.0" if len(changes) % 2 else "4.9.3"
    report = rebuild(tmp_path, tmp_path / "out", hash_slot_num=50, index_num=120, broker_version=version, engine=ONE)
    assert index_bytes(tmp_path / "out") == index_bytes(tmp_path)
    assert "whether TAGS are indexed changes" in report.settings["broker_version"].source


def test_a_file_whose_ends_are_of_one_rule_may_have_another_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ends refuted the rule around it, and all of it was taken to be by the other one."""
    monkeypatch.setattr(tags_survey, "_SAMPLES", (20, 20))  # as in large files
    make(tmp_path, [0, 198, 260, 360, 520], (500, 400))
    for version in (None, "5.5.0"):
        assert errors(tmp_path, (500, 400), version) == []


def test_a_file_of_which_the_log_has_not_all_shows_the_rest(tmp_path: Path) -> None:
    """Its first messages had expired: nothing up to the next block was read of the log, and it showed nothing."""
    make(tmp_path, [160, 240, 300, 360], (500, 400))
    min((tmp_path / "commitlog").iterdir()).unlink()
    assert errors(tmp_path, (500, 400), "4.9.3") == []


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("first", [[], [0]], ids=["old", "new"])
def test_another_broker_may_have_written_a_few_messages(tmp_path: Path, first: list[int], count: int) -> None:
    """Less than four were called damage, though nothing is where their entries of TAGS might have gone."""
    make(tmp_path, [*first, 200, 200 + count], (500, 4000))
    assert errors(tmp_path, (500, 4000), "5.5.0" if first else "4.9.3") == []


def test_a_few_messages_of_a_time_that_is_lost_else_keep_their_file(tmp_path: Path) -> None:
    """The first messages after the change are the last ones of a good file, which was written anew with their TAGS."""
    geometry = (50, 418)
    paths = make(tmp_path, [0, 207, 400], geometry)
    before = paths[0].read_bytes()
    paths[1].write_bytes(b"")
    repair(tmp_path, hash_slot_num=geometry[0], index_num=geometry[1], broker_version="5.5.0")
    assert paths[0].read_bytes() == before
    assert errors(tmp_path, geometry, "5.5.0") == []


@pytest.mark.parametrize("version", [None, "5.5.0"])
def test_the_last_entries_of_a_message_show_that_it_lacks_tags(tmp_path: Path, version: str | None) -> None:
    """The first ones are in a file that is lost, and nothing else here shows its rule: the file was written anew."""
    geometry = (50, 102)
    messages = [
        LogMessage("T", keys=f"a{n} b{n} c{n}", tags=None if 33 < n < 60 else "TagA", separator=True,
                   store_timestamp=FIRST_TIME + n * 10, queue_offset=n)
        for n in range(200)
    ]  # fmt: skip
    paths = write_store(tmp_path, messages, [60], geometry)
    before = [path.read_bytes() for path in paths]
    paths[0].unlink()
    repair(tmp_path, hash_slot_num=geometry[0], index_num=geometry[1], broker_version=version)
    assert [path.read_bytes() for path in paths[1:]] == before[1:]
    assert errors(tmp_path, geometry, version) == []


@pytest.mark.parametrize("optimised", [False, True])
@pytest.mark.parametrize("version", [None, "5.5.0"])
@pytest.mark.parametrize("message", [0, 300, 598])
def test_an_entry_of_tags_gone_astray_shows_no_broker(
    tmp_path: Path, message: int, version: str | None, optimised: bool
) -> None:
    """Its message lacks it, as if an older broker had written it: it was lost by a repair, and the newest rule too."""
    geometry: dict[str, Any] = {"hash_slot_num": 500, "index_num": 4000, "broker_version": version, "engine": ONE}
    (path,) = make(tmp_path, [0], (500, 4000), tagged=range(COUNT - 1))
    good = entries_of(tmp_path, (500, 4000))
    if optimised:
        optimize(tmp_path / "index", tmp_path, hash_slot_num=500, index_num=4000, overwrite=True)
    of_tags = key_hash("T#T#TagA")
    data = bytearray(path.read_bytes())
    entries = range(40 + 4 * 500 + 20, len(data), 20)
    at = sorted(
        (phy_offset, at)
        for at in entries
        for hashed, phy_offset in [struct.unpack_from(">iq", data, at)]
        if hashed == of_tags
    )[message][1]
    struct.pack_into(">q", data, at + 4, struct.unpack_from(">q", data, at + 4)[0] + 1)
    path.write_bytes(data)
    repair(tmp_path, deep=True, **geometry)
    assert errors(tmp_path, (500, 4000), version) == []
    assert entries_of(tmp_path, (500, 4000)) == good


def test_an_entry_gone_astray_ends_no_time_of_another_broker(tmp_path: Path) -> None:
    """The rule around was taken for its message, where it refuted the one that was expected of all the file."""
    geometry: dict[str, Any] = {"hash_slot_num": 50, "index_num": 120, "broker_version": "4.9.3", "engine": ONE}
    paths = make(tmp_path, [100, 500], (50, 120))
    good = index_bytes(tmp_path)
    data = bytearray(paths[4].read_bytes())
    number = next(n for n in range(50, 60) if struct.unpack_from(">i", data, 240 + 20 * n)[0] == key_hash("T#T#TagA"))
    struct.pack_into(">q", data, 240 + 20 * number + 4, 1 << 40)
    paths[4].write_bytes(data)
    repair(tmp_path, deep=True, **geometry)
    assert index_bytes(tmp_path) == good


@pytest.mark.parametrize("optimised", [False, True])
@pytest.mark.parametrize("changes", [[310], [0, 310]], ids=str)
def test_a_damaged_file_hides_no_change(tmp_path: Path, changes: list[int], optimised: bool) -> None:
    """Files of one part of the store count too few entries, so that they lack those of TAGS."""
    paths = make(tmp_path, changes, (50, 120))
    good = entries_of(tmp_path, (50, 120))
    if optimised:
        optimize(tmp_path / "index", tmp_path, hash_slot_num=50, index_num=120, overwrite=True)
    for path in (paths[1], paths[-2]):
        data = bytearray(path.read_bytes())
        struct.pack_into(">i", data, 36, 60)
        path.write_bytes(data)
    version = "5.5.0" if len(changes) == 1 else "4.9.3"
    assert repair(tmp_path, hash_slot_num=50, index_num=120, broker_version=version).actions
    assert errors(tmp_path, (50, 120), version) == []
    assert entries_of(tmp_path, (50, 120)) == good


@pytest.mark.parametrize("keys", [1, 2])
@pytest.mark.parametrize("changes", [[600], [0, 600], [20], [0, 20]], ids=str)
def test_a_change_within_the_oldest_file_is_reported(tmp_path: Path, changes: list[int], keys: int) -> None:
    for seed in range(8 if NIGHTLY else 2):
        root = tmp_path / str(seed)
        messages = [
            LogMessage(
                "Orders",
                keys=" ".join(f"order-{n + seed * 7919}-{i}" for i in range(keys)),
                tags="TagA",
                uniq_key=f"C0A8010A1F902B193F2D{seed * 65536 + n:012X}",
                separator=True,
                store_timestamp=FIRST_TIME + n * 700,
                queue_offset=n,
            )
            for n in range(1000)
        ]
        write_store(root, messages, changes, (100_000, 4000))
        assert errors(root, (100_000, 4000), None) == []
        found = verify(root, hash_slot_num=100_000, index_num=4000, engine=ONE).settings["broker_version"]
        assert "whether TAGS are indexed changes at phy offset" in found.source


def test_messages_of_tags_alone_before_the_first_file(tmp_path: Path) -> None:
    """A broker before 5.4 gave them no entry; where a file is lost the next one's first time shows it."""
    messages = [LogMessage("T", tags=f"t{n}", store_timestamp=FIRST_TIME + n * 2000, queue_offset=n) for n in range(60)]
    write_store(tmp_path / "upgraded", messages, [20], (50, 40))
    assert errors(tmp_path / "upgraded", (50, 40), "5.5.0") == []
    paths = write_store(tmp_path / "lost", messages, [0], (50, 40))
    paths[0].unlink()
    assert "expected 39 entries from phy offset 0 on" in str(errors(tmp_path / "lost", (50, 40), "5.5.0"))


@pytest.mark.parametrize("version", [None, "5.5.0"])
def test_a_file_that_is_damaged_by_itself_shows_no_rule(tmp_path: Path, version: str | None) -> None:
    """Of an optimised file whose header counts too few entries those of TAGS may be what is not counted."""
    geometry: dict[str, Any] = {"hash_slot_num": 1000, "index_num": 4000, "engine": ONE}
    low = min(key_hash(f"T#T#t{n}") % 1000 for n in range(100))
    key = next(f"job{n}" for n in range(10**6) if key_hash(f"T#job{n}") % 1000 < low)
    messages = [LogMessage("T", keys=key, tags=f"t{n}", queue_offset=n, separator=True) for n in range(100)]
    (path,) = write_store(tmp_path, messages, [0], (1000, 4000))
    optimize(tmp_path / "index", tmp_path, hash_slot_num=1000, index_num=4000, overwrite=True)
    assert verify(tmp_path, **geometry).settings["broker_version"].value == "5.4 or newer"
    data = bytearray(path.read_bytes())
    struct.pack_into(">i", data, 36, 51)
    path.write_bytes(data)
    if version is None:
        with pytest.raises(MQIndexError, match="broker-version"):
            repair(tmp_path, **geometry)
        return
    repair(tmp_path, broker_version=version, **geometry)
    report = verify(tmp_path, broker_version=version, **geometry)
    assert (report.ok, report.entries) == (True, 200)
    assert "changes" not in report.settings["broker_version"].source


@pytest.mark.parametrize("lost", [0, 1, 3, -1])
def test_what_is_lost_comes_back_by_the_rule_of_its_time(tmp_path: Path, lost: int) -> None:
    geometry = (50, 120)
    paths = make(tmp_path, [310], geometry)
    with IndexService.open(tmp_path / "index", hash_slot_num=50, index_num=120) as index:
        tagged = len(index.query_offsets("T", ["T#TagA"], max_num=10_000).values)
    assert tagged == COUNT - 310
    good = {path.name: path.read_bytes() for path in paths}
    paths[lost].unlink()
    assert repair(tmp_path, hash_slot_num=50, index_num=120, broker_version="5.5.0").actions
    assert [path.read_bytes() for path in sorted((tmp_path / "index").iterdir())] == list(good.values())
    assert errors(tmp_path, geometry, None) == []
    rebuild(tmp_path, tmp_path / "out", hash_slot_num=50, index_num=120, broker_version="5.5.0")
    assert [path.read_bytes() for path in sorted((tmp_path / "out" / "index").iterdir())] == list(good.values())


@pytest.mark.parametrize(
    ("changes", "lost", "version", "said"),
    [
        ([310], 2, "5.5.0", "writes no entries of TAGS there"),
        ([0, 280], 4, "4.9.3", "writes no entries of TAGS there"),
        ([598], -1, "5.5.0", "what the broker's version says"),
        ([310], 0, "5.5.0", None),
        ([310], 5, "5.5.0", None),
        ([310], None, "5.5.0", None),
        ([0], 3, "5.5.0", None),
    ],
)
def test_where_a_change_is_lost_it_is_said(
    tmp_path: Path, changes: list[int], lost: int | None, version: str, said: str | None
) -> None:
    """The place of the change that was taken was reported as if it were known."""
    paths = make(tmp_path, changes, (50, 120))
    good = entries_of(tmp_path, (50, 120))
    if lost is not None:
        paths[lost].unlink()
    given: dict[str, Any] = {"hash_slot_num": 50, "index_num": 120, "broker_version": version, "engine": ONE}
    reports = [verify(tmp_path, **given), repair(tmp_path, dry_run=True, **given), repair(tmp_path, **given)]
    for report in reports:
        hints = [one.hint for one in report.findings if one.kind == "tags-unknown"]
        assert len(hints) == (said is not None)
        assert all(said in str(hint) for hint in hints)
        assert {one.severity for one in report.findings if one.kind == "tags-unknown"} <= {"warning"}
    assert reports[-1].ok
    assert errors(tmp_path, (50, 120), version) == []
    assert said is not None or entries_of(tmp_path, (50, 120)) == good


@pytest.mark.parametrize("failure", ["EMFILE", "EIO"])
def test_a_file_that_cannot_be_read_for_once_decides_nothing(tmp_path: Path, failure: str, rng: random.Random) -> None:
    """A repair, or a rebuild, by the rule that the other files show would write good entries anew, and others."""
    options: dict[str, Any] = {"hash_slot_num": 50, "index_num": 120, "broker_version": "5.5.0", "engine": ONE}
    paths = make(tmp_path / "broken", [310], (50, 120))
    good = index_bytes(tmp_path / "broken")
    paths[3].unlink()
    ended = {"well": 0, "error": 0}
    step = 3 if NIGHTLY else 50  # from one of some 600 calls that fails to the next
    for at in range(1 + rng.randrange(step), 10_000, step):
        store, out = tmp_path / "store", tmp_path / "out"
        shutil.copytree(tmp_path / "broken", store)
        with FailingCall((str(store / "index"),), at, failure) as failing:
            try:
                rebuild(store, out, **options)
                repair(store, **options)
                assert index_bytes(store) == index_bytes(out) == good
                ended["well"] += 1
            except OSError:
                ended["error"] += 1
        if not failing.struck:
            break
        repair(store, **options)
        assert index_bytes(store) == good
        shutil.rmtree(store)
        shutil.rmtree(out, ignore_errors=True)
    assert ended["well"] >= 1
    assert ended["error"] > 5


def test_a_file_that_cannot_be_asked_again_is_not_taken_for_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where too many files were open at this moment a repair wrote good files anew, by the rule of the others."""
    make(tmp_path, [200, 300], (50, 120))
    good, again = index_bytes(tmp_path), tags_survey.IndexedTags.again

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files", "index")

    def asked(self: tags_survey.IndexedTags, *given: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(tags_survey.IndexFile, "_open_known", fails)
            return again(self, *given)

    monkeypatch.setattr(tags_survey.IndexedTags, "again", asked)
    with pytest.raises(OSError, match="Too many open files"):
        repair(tmp_path, hash_slot_num=50, index_num=120, broker_version="4.9.3", engine=ONE)
    assert index_bytes(tmp_path) == good


def test_damage_is_no_change_of_the_broker(tmp_path: Path) -> None:
    (path,) = make(tmp_path, [], (500, 4000))
    data = bytearray(path.read_bytes())
    data[40 + 4 * 500 + 20 * 300 + 7] ^= 1
    path.write_bytes(data)
    report = verify(tmp_path, deep=True, engine=ONE)
    assert not report.ok
    assert "changes" not in str(report.settings["broker_version"])
