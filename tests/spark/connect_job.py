"""A flow on Spark Connect as a program of its own: a process has one kind of session.

python -m tests.spark.connect_job FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import interpunct as ip
from interpunct.spark.rows import spark_schema
from interpunct.spark.session import settings
from tests.spark.recovery_job import job

BOUNDED = {"availableNow": True}


def connected() -> SparkSession:
    """A session over Connect, with a server of its own."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    for setting in settings(2):
        builder = builder.config(setting.name, setting.value)
    return builder.getOrCreate()


def feeds(spark: SparkSession, flow: ip.Flow, folder: Path) -> dict[str, DataFrame]:
    return {
        n.name: spark.readStream.schema(spark_schema(n.raw))
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / n.name))
        for n in flow.graph.sources
    }


def started(spark: SparkSession, folder: Path) -> list[str]:
    """A flow with two sinks, one of them a function; the operators that blame knows of."""
    flow = job()

    def total(rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").parquet(f"{folder}/out/total/batch={batch:08d}")

    query = flow.start(
        spark, feeds(spark, flow, folder), checkpoint=str(folder / "checkpoint"),
        sinks={"joined": str(folder / "out" / "joined"), "total": total}, trigger=BOUNDED,
    )  # fmt: skip
    query.await_termination()
    return list(query.blame()["operator"])


def to_files(rows: DataFrame, folder: Path, name: str) -> None:
    """A streaming DataFrame to Parquet, as a user would."""
    writer = rows.writeStream.format("parquet").option("path", str(folder / "out" / name))
    checkpointed = writer.option("checkpointLocation", str(folder / f"checkpoint-{name}"))
    checkpointed.trigger(**BOUNDED).start().awaitTermination()


def main(folder: Path) -> None:
    spark = connected()
    told = {"session": type(spark).__module__, "blamed": started(spark, folder)}
    flow = job()
    to_files(flow.to_df(feeds(spark, flow, folder), sink="total"), folder, "to_df")
    a, c = feeds(spark, flow, folder).values()
    released, _ = ip.synchronize(a, c, time="ts", bounds=ip.bounds(skew="40s"))
    to_files(released, folder, "synchronized")
    to_files(ip.replay(spark, str(folder / "a"), rows_per_batch=100), folder, "replayed")
    (folder / "told.json").write_text(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
