"""The session's settings, and what workers do with their memory between tasks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from interpunct.spark.replay import replay
from interpunct.spark.session import JAVA_OPTIONS, MACHINE

STARTED = """
import json, sys
import interpunct as ip
spark = ip.session(1, log=sys.argv[1], spark__driver__extraJavaOptions="-Dmine=1")
told = {name: spark.conf.get(name) for name in json.loads(sys.argv[2])}
machine = spark.sparkContext._jvm.java.lang.System
told["mine"] = machine.getProperty("mine")
told["arrow"] = machine.getProperty("arrow.enable_unsafe_memory_access")
spark.stop()
print(json.dumps(told))
"""


def test_options_for_java_join_those_of_the_session(tmp_path: Path) -> None:
    arguments = [str(tmp_path / "spark.log"), json.dumps(JAVA_OPTIONS)]
    run = subprocess.run(
        [sys.executable, "-c", STARTED, *arguments], capture_output=True, text=True, check=True
    )
    told = json.loads(run.stdout.splitlines()[-1])
    assert told["mine"] == "1"
    assert told["arrow"] == "true"
    driver, executor = (told[name] for name in JAVA_OPTIONS)
    assert driver == f"{MACHINE} -Dmine=1"
    assert executor == MACHINE


def test_sources_of_ours_are_read_by_the_python_that_opened_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a session of one's own, too, whose choice is the first `python3` on the path."""
    pl.DataFrame({"n": [1]}).write_parquet(tmp_path / "rows.parquet")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "python3")
    replay(spark, str(tmp_path / "rows.parquet"))
    assert spark.sparkContext.pythonExec == sys.executable


def frozen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many objects the collector of this worker passes over."""
    import gc

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()]})


def test_workers_that_have_read_for_us_collect_no_libraries(
    spark: SparkSession, tmp_path: Path
) -> None:
    """PySpark's workers collect after each task; whoever has read a recording of ours has set
    aside what it had loaded, whatever else it is asked to do later."""
    pl.DataFrame({"n": range(1_000)}).write_parquet(tmp_path / "rows.parquet")
    rows = replay(spark, str(tmp_path / "rows.parquet"), rows_per_batch=250, partitions=4)
    query = (
        rows.mapInArrow(frozen, "frozen bigint")
        .writeStream.format("memory")
        .queryName("frozen")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    counts = [row.frozen for row in spark.table("frozen").collect()]
    assert max(counts) > 10_000, "libraries are tens of thousands of objects"
