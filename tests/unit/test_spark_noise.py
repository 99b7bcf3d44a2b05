"""What a Java process that Spark starts says on stderr: troubles reach people, its noise does not."""

from __future__ import annotations

import subprocess
import sys

from mqindex.spark.noise import troubles

NOISE = """\
WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
Setting default log level to "WARN".
To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).
26/11/22 17:38:46 WARN NativeCodeLoader: Unable to load native-hadoop library
26/11/22 17:38:46 WARN Utils: it failed
java.io.IOException: connection reset
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.net.SocketException
Setting Spark log level to "ERROR".
26/11/22 17:38:46 ERROR SparkContext: Error initializing SparkContext.
org.apache.spark.SparkException: Could not parse Master URL: 'local[x]'
\tat org.apache.spark.SparkContext$.org$apache$spark$SparkContext$$createTaskScheduler(SparkContext.scala:3269)
"""
TROUBLE = """\
26/11/22 17:38:47 ERROR Executor: Exception in task 0.0
java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.util.Arrays.copyOf(Arrays.java:3537)
Error: Could not find or load main class org.apache.spark.deploy.SparkSubmit
"""


def test_noise_is_told_from_trouble() -> None:
    lines = (NOISE + TROUBLE + NOISE).splitlines(keepends=True)
    assert "".join(troubles(lines)) == TROUBLE


def test_a_launcher_that_gives_up_says_why_without_its_stack() -> None:
    said = 'Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn\n'
    lines = [
        said,
        "\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)\n",
        *TROUBLE.splitlines(True),
    ]
    assert "".join(troubles(lines)) == "Spark's launcher: Master must either be yarn\n" + TROUBLE


def test_only_a_process_that_is_started_meanwhile_is_made_quiet() -> None:
    """It may speak after its start, too; our own stderr is what it was."""
    program = """
import subprocess, sys, threading
from mqindex.spark.noise import quiet_start
with quiet_start():
    say = "import sys; sys.stderr.write(sys.stdin.read())"
    java = subprocess.Popen([sys.executable, "-c", say], stdin=subprocess.PIPE, text=True)
print("WARNING: ours", file=sys.stderr, flush=True)
java.communicate(sys.argv[1])
[thread.join() for thread in threading.enumerate() if thread is not threading.current_thread()]
"""
    command = [sys.executable, "-c", program, NOISE + TROUBLE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "WARNING: ours\n" + TROUBLE)


def test_a_closed_stderr_is_no_trouble() -> None:
    program = (
        "import os\nfrom mqindex.spark.noise import quiet_start\nos.close(2)\nwith quiet_start(): print('went on')"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    assert done.stdout == "went on\n"
