"""A bounded job as a program of its own, to be killed: files in, files out.

python -m tests.spark.recovery_job FOLDER [MASTER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import interpunct as ip
from interpunct.spark.rows import spark_schema

DDL = "k bigint, ts timestamp, v double, tag string"


def job() -> ip.Flow:
    """Windows, a join behind them, and a total over all groups: state in two stages."""
    flow = ip.Flow("recovery")
    a = flow.source("a", DDL, time=ip.external("ts", ordered=True, ets="never"))
    c = flow.source("c", DDL, time=ip.external("ts", ip.bounds(skew="4s"), ets="never"))
    means = c.aggregate(by="k", every="5s", n="count(*)", mean="avg(v)")
    flow.sink("joined", a.join(means, on="k", within="5s", how="left"))
    flow.sink("total", means.aggregate(every="10s", groups="count(*)", n="sum(n)"))
    return flow


def main(folder: Path, master: str | None = None) -> None:
    spark = ip.session(2, master=master)
    flow = job()
    feeds = {
        n.name: spark.readStream.schema(spark_schema(n.raw))
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / n.name))
        for n in flow.graph.sources
    }
    sinks = {n.name: str(folder / "out" / n.name) for n in flow.graph.sinks}
    query = flow.start(
        spark, feeds,
        checkpoint=str(folder / "checkpoint"), sinks=sinks, trigger={"availableNow": True},
    )  # fmt: skip
    query.await_termination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
