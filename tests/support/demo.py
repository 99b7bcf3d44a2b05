"""What mqindex is for, in eight steps on real input: `./dev demo`.

The first store is that of a real RocketMQ 4.9.3 broker, twice: as it was before a crash, and as the broker left it at
its next start, when it deleted its only index file and indexed the end of the log again. The second is one that
mqindex writes itself; the third a partition of a real Kafka 4.1.0 broker, with the broker's own answers; the last a
synthetic log of a million messages.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from mqindex import engines, errors, rocketmq
from mqindex._words import plural
from mqindex.cli.printing.progress import progress_line
from tests.support.big_log import BigLog, write_big_log
from tests.support.demo_kafka import lost_time_indexes
from tests.support.demo_steps import heading, show, tell
from tests.support.golden import case
from tests.support.tree import index_paths, queue_bytes

MESSAGES = 1_000_000
NEEDED = 2 << 30  # bytes of scratch
GEOMETRY = {"hash_slot_num": 250_000, "index_num": 1_000_000}


def main() -> None:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mqindex-demo-") as directory:
        if shutil.disk_usage(directory).free < NEEDED:
            sys.exit(f"the demo needs {NEEDED >> 30} GiB in {directory}; set TMPDIR to a larger place")
        os.chdir(directory)
        try:
            crashed_store()
            live_store()
            lost_time_indexes()
            million_messages()
        finally:
            os.chdir("/")
    print(f"\nAll of it in {time.perf_counter() - began:.0f} s; the scratch directory is gone.")


def crashed_store() -> None:
    lost = case("killed-lost-493")
    lost.unpack(Path("before")).rename("before-the-crash")
    lost.unpack_after(Path("after")).rename("store")
    order = next(message["keys"] for message in lost.truth["messages"] if str(message["keys"]).startswith("ORD"))

    heading("1. A real 4.9.3 broker was killed; at its next start it dropped its index file: 208 of 1466 entries left")
    show("ls -l before-the-crash/index store/index")
    show("mqindex verify store", expect=1)

    heading("2. Rebuild index and consume queues from the log on Spark, elsewhere: the bytes from before the crash")
    show("mqindex rebuild store --out elsewhere --engine spark --master 'local[*]'")
    (old,), (new,) = index_paths(Path("before-the-crash")), index_paths(Path("elsewhere"))
    show(f"cmp {old} {new} && diff -r before-the-crash/consumequeue elsewhere/consumequeue && "
         "echo 'the same, byte for byte'", shell=True)  # fmt: skip

    heading("3. Lose a consume queue too, and repair the store in place: good files stay")
    show("rm -r store/consumequeue/LostTopic/1")
    show("mqindex repair store --dry-run", expect=1)
    show("mqindex repair store")
    show("mqindex verify store --deep")

    heading("4. Ask it: where are the messages of these keys?")
    show(f"mqindex query store --topic LostTopic --max-num 5 {order} user-3")
    show("mqindex query store --topic LostTopic no-such-key", expect=1)

    heading("5. Read it as a consumer does: from a queue offset on, with a tag filter; and by key, collisions left out")
    tell(
        "store = rocketmq.MessageStore.open('store')",
        "result = store.get_message('LostTopic', 0, 0, max_msg_nums=32, tags='TagA || pay-success')",
        "result.status.name, result.next_begin_offset, [message.queue_offset for message in result.messages]",
        "[(message.keys, message.tags) for message in result.messages[:2]]",
        "found = store.query_message('LostTopic', 'user-3', exact=True, max_num=4)",
        "[(message.queue_id, message.queue_offset) for message in found.messages]",
        "store.close()",
    )


def live_store() -> None:
    heading("6. A broker at work, here mqindex itself, and a side-car that keeps an index beside its store")
    Path("live").mkdir()
    config = {"maxHashSlotNum": 5000, "maxIndexNum": 20000, "mappedFileSizeCommitLog": 1 << 20}
    with rocketmq.MessageStore.open("live", writable=True, config=config) as store:
        batch = {"topic": "Orders", "body": [b"x" * 100] * 5000, "keys": [f"old-{i}" for i in range(5000)]}
        store.put_messages(batch)
        print("$ mqindex follow live --out beside --hash-slot-num 5000 --index-num 20000 &", flush=True)
        geometry = ["--hash-slot-num", "5000", "--index-num", "20000"]
        follower = subprocess.Popen([sys.executable, "-m", "mqindex", "follow", "live", "--out", "beside", *geometry])
        try:
            wait_for("old-4999")
            delays = []
            for number in range(20):
                store.put_message(rocketmq.NewMessage("Orders", b"new", keys=f"new-{number}"))
                delays.append(wait_for(f"new-{number}"))
            print(f"20 messages put one by one: each found beside after {min(delays) * 1000:.0f} to "
                  f"{max(delays) * 1000:.0f} ms\n")  # fmt: skip
        finally:
            follower.send_signal(signal.SIGTERM)
            status = follower.wait(60)
    assert status == 0, f"the follower's exit code is {status}"
    print()
    show("mqindex query beside --topic Orders old-17 new-19")
    show("mqindex info beside/consumequeue")


def wait_for(key: str) -> float:
    """Seconds until the follower's index has a key."""
    began = time.perf_counter()
    while time.perf_counter() - began < 60:
        try:
            with rocketmq.IndexService.open("beside/index", hash_slot_num=5000, index_num=20000) as index:
                if len(index.query_offset("Orders", key).phy_offsets):
                    return time.perf_counter() - began
        except (FileNotFoundError, errors.MQIndexError):
            pass  # it is only coming
        time.sleep(0.0005)
    sys.exit(f"the follower did not find {key}")


def million_messages() -> None:
    heading(f"8. Rebuild and bulk look-up on a synthetic log of {MESSAGES:,} messages")
    began = time.perf_counter()
    log = write_big_log("big", messages=MESSAGES, body_size=256, mapped_file_size=128 << 20)
    seconds = time.perf_counter() - began
    print(f"a log of {log.max_phy_offset / 1e6:.0f} MB in {log.files} files, written in {seconds:.1f} s\n")

    slots, entries = GEOMETRY.values()
    print(">>> rocketmq.rebuild('big', 'big-local', engine=LocalEngine(progress=show), "
          f"hash_slot_num={slots}, index_num={entries})")  # fmt: skip
    report = rocketmq.rebuild("big", "big-local", engine=engines.LocalEngine(progress=Lines().show), **GEOMETRY)
    print(f"{report.messages:,} messages, {report.entries:,} entries, {len(report.out_files)} files in "
          f"{report.seconds:.2f} s: {report.messages / report.seconds / 1e6:.1f} M messages/s, "
          f"{log.max_phy_offset / report.seconds / 1e9:.1f} GB/s of log\n")  # fmt: skip

    show(f"mqindex rebuild big --out big-spark --engine spark --master 'local[*]' "
         f"--hash-slot-num {slots} --index-num {entries}")  # fmt: skip
    same = [path.read_bytes() for path in index_paths(Path("big-local"))]
    assert same == [path.read_bytes() for path in index_paths(Path("big-spark"))], "the engines disagree"
    assert queue_bytes(Path("big-local")) == queue_bytes(Path("big-spark")), "the engines disagree"
    print("threads and Spark: the same files, byte for byte\n")
    look_up(log)
    consume(log)


def look_up(log: BigLog) -> None:
    """Every message is found by its key."""
    numbers = range(MESSAGES)
    keys = log.keys(numbers)
    print(f">>> service.query_offsets('{log.topic}', keys)    # all {MESSAGES:,} of them")
    with rocketmq.IndexService.open("big-local/index") as service:
        began = time.perf_counter()
        hits = service.query_offsets(log.topic, keys)
        seconds = time.perf_counter() - began
    wanted = log.phy_offsets(numbers)
    missed = sum(offset not in found for offset, found in zip(wanted[::997].tolist(), _some(hits), strict=True))
    print(f"{len(hits.values):,} hits in {seconds:.2f} s: {MESSAGES / seconds / 1e6:.1f} M keys/s; "
          f"checked {len(wanted[::997]):,} of them against the log: {missed} missed")  # fmt: skip
    assert missed == 0


def consume(log: BigLog) -> None:
    """All messages of all queues, in the order of the queues."""
    print(">>> for topic, queue_id in store.queues: "
          "store.get_messages(topic, queue_id, 0, max_msg_nums=10**9, columns=['phy_offset', 'keys'])")  # fmt: skip
    began, found = time.perf_counter(), 0
    with rocketmq.MessageStore.open("big-local", commitlog="big/commitlog") as store:
        for topic, queue_id in store.queues:
            result = store.get_messages(topic, queue_id, 0, max_msg_nums=10**9, columns=["phy_offset", "keys"])
            found += len(result.messages["phy_offset"])
        queues = len(store.queues)
    seconds = time.perf_counter() - began
    rate = f"{found / seconds / 1e6:.1f} M messages/s"
    print(f"{found:,} messages of {plural(queues, 'queue')} in {seconds:.2f} s: {rate}")
    assert found == log.messages


def _some(hits: object) -> list[list[int]]:
    return [hits[i].tolist() for i in range(0, MESSAGES, 997)]  # type: ignore[index]


class Lines:
    """Progress as lines, at most ten a stage: what a log file can hold. On a terminal the shell draws bars."""

    STAGES: Final = ("read the log", "build the index")

    def __init__(self) -> None:
        self.began: dict[str, float] = {}
        self.told: dict[str, int] = {}

    def show(self, progress: engines.Progress) -> None:
        if progress.stage not in self.STAGES:
            return
        now = time.perf_counter()
        began = self.began.setdefault(progress.stage, now)
        tenths = 10 * progress.done // (progress.total or 1)
        if tenths > self.told.get(progress.stage, 0):
            self.told[progress.stage] = tenths
            print(f"    {progress_line(progress, max(now - began, 1e-6))}")


if __name__ == "__main__":
    main()
