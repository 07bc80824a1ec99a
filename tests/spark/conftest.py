"""One SparkSession for all tests that need one; one in each process of the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from interpunct.spark.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    spark = session(2)
    yield spark
    spark.stop()
