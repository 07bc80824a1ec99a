"""A job of which replicas are run, killed and replaced: counts and sums in windows of ten seconds.

Each replica reads its own presentation of the same rows: `input/<first letter of its name>`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import interpunct as ip
from interpunct.spark.rows import spark_schema

DDL = "ts timestamp, k bigint, v bigint"


def flow() -> ip.Flow:
    made = ip.Flow("windows")
    rows = made.source("rows", DDL, time=ip.external("ts", ip.bounds(skew="30s"), ets="never"))
    made.sink("totals", rows.aggregate(by="k", every="10s", n="count(*)", total="sum(v)"))
    return made


def feeds(spark: Any, replica: str) -> Mapping[str, Any]:
    schema = spark_schema(ip.Schema.of(DDL))
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return {"rows": stream.parquet(f"{os.environ['INTERPUNCT_TEST_INPUT']}/{replica[0]}")}
