"""The experiments on feedback, small: what must hold however fast the machine is."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from interpunct.lab import desired, imputation
from interpunct.lab.imputation import WAYS, WITH, WITHOUT
from interpunct.lab.speed_archive import QUERY, sensors, speed_archive
from interpunct.operators.databases import open_archive


@pytest.fixture(scope="module")
def result() -> imputation.Imputation:
    setup = imputation.Setup(tuples=120, rate=3000.0, tolerance=0.004, rows=5000, workers=0)
    return imputation.imputation(setup)


def test_the_archive_answers_with_the_mean_speed_around_the_minute() -> None:
    keys = pl.DataFrame({"segment": [3, 4], "minute": [500, 700]})
    with speed_archive(20_000, 1) as path:
        archive = open_archive(path, QUERY)
        speeds = archive.look_up(keys)["speed"].to_list()
        archive.close()
        assert Path(path).exists()
    assert all(30 < speed < 80 for speed in speeds)
    assert not Path(path).exists()


def test_clean_and_dirty_tuples_alternate_and_the_seed_decides_the_rest() -> None:
    stream = sensors(10, 1000, 2, 7)
    assert stream["speed"].is_null().to_list() == [False, True] * 5
    assert stream.equals(sensors(10, 1000, 2, 7))
    assert not stream.equals(sensors(10, 1000, 2, 8))
    assert sensors(3, 1000, 1, 7)["speed"].null_count() == 3


def test_every_imputed_tuple_is_timely_late_or_purged(result: imputation.Imputation) -> None:
    for way in WAYS:
        outcome = result.outcomes[way]
        assert outcome.dirty == 60
        assert outcome.imputed.height + outcome.late.height + outcome.purged == 60
        assert outcome.timely.height - outcome.imputed.height == 60, "every clean tuple is there"
    assert result.outcomes[WITHOUT].purged == 0
    assert result.outcomes[WITHOUT].looked_up == 60
    assert result.outcomes[WITH].looked_up <= 60


def test_the_report_says_what_was_chosen_and_what_came_of_it(
    result: imputation.Imputation, tmp_path: Path
) -> None:
    shown = result.to_json()
    assert shown["rate_per_s"] == 3000.0
    assert shown["tolerance_s"] == 0.004
    assert shown["dropped_pct"].keys() == {"without", "with"}
    imputation.plot_imputation(result, tmp_path / "figures-5-and-6.png")
    assert (tmp_path / "figures-5-and-6.png").stat().st_size > 10_000


def test_what_is_not_given_is_chosen_by_measuring() -> None:
    result = imputation.imputation(imputation.Setup(tuples=20, rows=500, workers=0))
    assert result.rate == pytest.approx(2000 / (imputation.SHARE * result.pair_ms))
    assert result.tolerance == pytest.approx(2 * imputation.TOLERATED / result.rate)


def test_a_wish_changes_when_results_come_and_not_what_they_are() -> None:
    result = desired.desired(desired.Setup(tuples=150, rows=2000, workers=0))
    shown = result.to_json()
    assert shown["expected"]["the_results_are_the_same"]
    assert result.wished.rows.height == 150
    assert result.wished.rows["speed"].null_count() == 0
    assert shown["median_latency_s"].keys() == {"with", "without"}
