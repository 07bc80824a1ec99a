"""What a terminal is spared: what Spark's processes print, and the page of Java after a stop."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from interpunct.spark.session import _printing_to
from interpunct.spark.stopping import InterruptedBatch, cut_short, interruptible

# As Spark looks for it (StreamExecution.isInterruptionException).
LOOKED_FOR = re.compile(
    r"py4j.protocol.Py4JJavaError: An error occurred while calling((.|\r\n|\r|\n)*)"
    r"(java.lang.InterruptedException|java.io.InterruptedIOException)"
)


@pytest.mark.parametrize("said", ["java.lang.InterruptedException", "part of cancelled job group"])
def test_an_interruption_is_told_in_few_words_that_spark_knows(said: str) -> None:
    with pytest.raises(InterruptedBatch) as raised, interruptible():
        raise RuntimeError(f"o1.save: {'a long plan ' * 10_000} {said} 7b3e")
    assert LOOKED_FOR.search(str(raised.value))
    assert len(str(raised.value)) < 200


def test_any_other_failure_is_told_as_it_is() -> None:
    with pytest.raises(OSError, match="disk full"), interruptible():
        raise OSError("disk full")


# As a Ctrl-C in the middle of a batch was told, in parts.
CANCELLED = """An exception was raised by the Python Proxy. Return Message: Traceback
  File "interpunct/spark/writers.py", line 47, in __call__
    rows.write.format("noop").mode("overwrite").save()
py4j.protocol.Py4JJavaError: An error occurred while calling o14864.save.
: org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 259 cancelled as part of cancellation \
of all jobs SQLSTATE: XXKDA
\tat org.apache.spark.errors.SparkCoreErrors$.sparkJobCancelled(SparkCoreErrors.scala:222)"""


def test_a_query_that_was_stopped_in_a_batch_has_not_failed() -> None:
    assert cut_short(StreamingQueryException(CANCELLED))
    assert cut_short(InterruptedBatch())
    starting = "[STREAMING_PYTHON_RUNNER_INITIALIZATION_COMMUNICATION_FAILURE] Streaming Runner"
    assert cut_short(StreamingQueryException(starting))
    crashed = "[STREAM_FAILED] Query terminated with exception: Python worker exited unexpectedly"
    assert not cut_short(StreamingQueryException(crashed))
    assert not cut_short(OSError("disk full"))


def test_what_processes_print_goes_to_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "out" / "spark.log"
    with _printing_to(log):
        subprocess.run(["sh", "-c", "echo from a worker >&2"], check=True)
    subprocess.run(["sh", "-c", "echo from us >&2"], check=True)
    assert log.read_text() == "from a worker\n"
    assert capfd.readouterr().err == "from us\n"


def test_why_a_machine_did_not_start_is_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(subprocess.CalledProcessError), _printing_to(tmp_path / "spark.log"):
        subprocess.run(["sh", "-c", "echo no Java >&2; exit 1"], check=True)
    assert capfd.readouterr().err == "no Java\n"
