"""The experiments on feedback on Spark, small."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from interpunct.lab import demanded_spark
from interpunct.lab import feedback_speed_map_spark as speed_map
from interpunct.lab.demanded import recorded
from interpunct.lab.detectors import freeway
from interpunct.lab.zooming import Drive


def test_what_is_viewed_on_spark_is_identical_and_the_rest_is_spared(
    spark: SparkSession, tmp_path: Path
) -> None:
    setup = speed_map.Setup(hours=0.2, batch_minutes=4, folder=tmp_path)
    recording = freeway(setup.hours)
    recording.frame.write_parquet(tmp_path / "sensors.parquet")
    drive = Drive(recording.segments, 2, *recording.span)
    plain, told = (
        speed_map.run_query(spark, recording, setup, views, tmp_path / f"{len(views)}")
        for views in ([], list(drive.views()))
    )
    assert speed_map.same(drive.seen(told.results), drive.seen(plain.results))
    assert (plain.pictures, plain.skipped) == (36 * 9, {})
    assert told.messages == 6
    assert told.pictures < plain.pictures
    assert told.skipped["sensors"] >= setup.batch_rows * 8 // 9, "at last it is not even taken in"


def test_a_demand_on_spark_is_answered_in_the_next_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    recording = recorded(1, 1)
    asked, plain = (
        demanded_spark.run_query(spark, recording, tmp_path / f"{demanding}", demanding)
        for demanding in (True, False)
    )
    found = demanded_spark.SparkDemands(asked, asked.finals.equals(plain.finals))
    assert all(found.expected().values()), found.expected()
    assert found.to_json()["answers"] == 2
