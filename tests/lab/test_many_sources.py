"""Many sources, few pages: the numbers are there, and groups cost what groups cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpunct.lab.many_sources import ManySources, Setup, many_sources, plot_many


@pytest.fixture(scope="module")
def result() -> ManySources:
    counts = (10, 300, 3_000)
    setup = Setup(counts, pages=12, page_tuples=500, each_up_to=300, repeat=1, workers=0)
    return many_sources(setup)


def test_every_number_of_sources_is_measured_in_groups_and_few_each_alone(
    result: ManySources,
) -> None:
    shown = result.to_json()
    assert shown["experiment"] == "many-sources"
    for key in ("tuples_per_s", "state_bytes", "lag_ms"):
        assert shown[key]["grouped"].keys() == {"10", "300", "3000"}
        assert shown[key]["each"].keys() == {"10", "300"}
    assert shown["expected"].keys() == {
        "grouped_cost_a_tuple_at_3000_at_most_twice_the_least",
        "grouped_a_million_tuples_per_s_at_3000",
    }


def test_state_grows_with_the_square_of_sources_but_hardly_in_groups(result: ManySources) -> None:
    size = result.to_json()["state_bytes"]
    assert size["each"]["300"] > 8 * 300 * 300
    assert size["grouped"]["3000"] < 4 * 3000 + 16 * size["each"]["10"]
    assert result.measured["grouped", 3_000].groups <= 16


def test_groups_lag_no_less_than_their_members_and_not_much_more(result: ManySources) -> None:
    lag = result.to_json()["lag_ms"]
    assert lag["each"]["300"] <= lag["grouped"]["300"] <= lag["each"]["300"] + 50


def test_the_figure_is_drawn(result: ManySources, tmp_path: Path) -> None:
    plot_many(result, tmp_path / "many.png")
    assert (tmp_path / "many.png").stat().st_size > 10_000
