"""The code that Spark generates for a flow is the same in every batch, and compiled once."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tests.spark.scenario import write_files
from tests.spark.test_one_job import arrivals, flow
from tests.spark.test_parity import files_of

SETTLED = 3  # batches after which every kind of code has been met


def test_later_batches_compile_nothing(spark: SparkSession, tmp_path: Path) -> None:
    write_files(arrivals()[: 2 * SETTLED], tmp_path)
    (source,) = flow().graph.sources
    assert spark._jvm is not None
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    counts: list[int] = []

    def look(rows: DataFrame, batch: int) -> None:
        assert rows.count() > 0, f"batch {batch}"
        counts.append(compiled.getCount())

    query = flow().start(
        spark, {"rows": files_of(spark, source, tmp_path)}, checkpoint=str(tmp_path / "checkpoint"),
        sinks={"sums": look}, trigger={"availableNow": True},
    )  # fmt: skip
    query.await_termination()
    assert len(counts) == 2 * SETTLED
    assert counts[-1] == counts[SETTLED - 1], counts
