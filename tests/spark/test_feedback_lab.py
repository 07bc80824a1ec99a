"""The experiments on feedback on Spark, small."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from interpunct.lab import demanded_spark
from interpunct.lab import feedback_speed_map_spark as speed_map
from interpunct.lab.demanded import recorded
from interpunct.lab.detectors import freeway
from interpunct.lab.schemes import cases


def test_what_is_viewed_on_spark_is_identical_and_each_scheme_spares_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    setup = speed_map.Setup(hours=0.2, batch_minutes=4, minutes=(2,), folder=tmp_path)
    recording = freeway(setup.hours)
    recording.frame.write_parquet(tmp_path / "sensors.parquet")
    runs = {
        case: speed_map.run_query(spark, recording, setup, case, tmp_path / case.scheme)
        for case in cases(setup.minutes)
    }
    plain, output, lanes, source = runs.values()
    assert all(speed_map.alike(recording, case, run, plain) for case, run in runs.items())
    assert (plain.pictures, plain.messages, plain.skipped) == (36 * 9, 0, {})
    assert output.messages == lanes.messages == source.messages == 6
    assert plain.pictures > output.pictures == lanes.pictures >= source.pictures
    assert set(output.skipped) == set(lanes.skipped) == {"average"}
    assert source.skipped["sensors"] >= setup.batch_rows * 8 // 9, "at last it is not even taken in"


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
