"""An archive of the classes that Spark's Java process has loaded when a session is there: a third of its start.

python -m tests.support.spark_archive      # what `./dev` does beforehand, once for a Java and a PySpark

Java compares the archive with its class path, and does without it where something else is there now.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

__all__ = ["java_options"]

BUILT = Path(__file__).parents[2] / "build" / "spark"
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # half of Spark's time here went to compiling for a long life
QUIET = "-Xlog:disable"  # what Java says of an archive that does not fit would be in the answers of a command
# Connect's server has a classic session's classes too. It ends after Python, and waits for nobody; we wait for it.
SESSION = """
import os
from pyspark import SparkContext
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[2]").getOrCreate()
batches = spark.range(0, 8, 1, 2).mapInArrow(lambda batches: batches, "id bigint")
assert batches.groupBy("id").count().where("id > 2").orderBy("id").count() == 5
batches.write.parquet(os.path.abspath("rows"))
assert spark.read.parquet(os.path.abspath("rows")).count() == 8
java = SparkContext._gateway
spark.stop()
java.shutdown()
java.proc.stdin.close()
java.proc.wait()
"""


def java_options() -> str:
    """The options of a Java process of Spark that lives for one test, or for all of them."""
    path = archive()
    return f"{BRIEF} {QUIET} -XX:SharedArchiveFile={path}" if path and path.exists() else BRIEF


def archive() -> Path | None:
    """Where the archive is, or would be. None: there is no PySpark, or no Java."""
    spark = find_spec("pyspark")
    java = which("java", path=f"{os.environ['JAVA_HOME']}/bin") if "JAVA_HOME" in os.environ else which("java")
    if spark is None or spark.origin is None or java is None:
        return None
    parts = [Path(java).resolve(), Path(spark.origin).with_name("jars")]
    known = "".join(f"{part} {part.stat().st_mtime_ns}\n" for part in parts if part.exists())
    return BUILT / f"{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"


def main() -> None:
    """Makes it where it is missing. Without it everything goes on, but more slowly."""
    path = archive()
    if path is None or path.exists():
        return
    print("making an archive of Spark's classes (once; a start takes less afterwards) ...", file=sys.stderr)
    BUILT.mkdir(parents=True, exist_ok=True)
    for old in BUILT.glob("*.jsa"):
        old.unlink()
    with TemporaryDirectory(dir=BUILT) as work:
        made = Path(work) / path.name
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SUBMIT_OPTS": f"{BRIEF} {QUIET} -XX:ArchiveClassesAtExit={made}",
        }
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SESSION],
            cwd=work, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0 and made.exists():
            made.rename(path)
        else:
            print(f"there is none: {done.stderr[-2000:]}", file=sys.stderr)


if __name__ == "__main__":
    main()
