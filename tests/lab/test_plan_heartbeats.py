"""The experiment on Figure 5's plan, small: what section 7 says must hold in any length of run."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpunct.lab.plan_heartbeats import (
    PlanHeartbeats,
    Setup,
    measure,
    plan_heartbeats,
    plot_plan,
    tuples,
)

SETUP = Setup(seconds=20, lag=8, workers=0)


@pytest.fixture(scope="module")
def result() -> PlanHeartbeats:
    return plan_heartbeats(SETUP)


def test_the_paper_s_expectations_hold(result: PlanHeartbeats) -> None:
    assert all(result.expected().values()), result.expected()


def test_memory_aware_is_query_level_or_operator_level_as_o1_is(result: PlanHeartbeats) -> None:
    labels = result.by_mode("label")
    for case, same in (("proliferative", "query"), ("selective", "operator")):
        assert labels[case]["memory"] == labels[case][same]
        assert result.by_mode("steps")[case]["memory"] == result.by_mode("steps")[case][same]


def test_o1_proliferates_with_few_keys_and_selects_with_many(result: PlanHeartbeats) -> None:
    measured = result.to_json()["selectivity"]
    assert measured["proliferative"]["O1"] > 1 > measured["selective"]["O1"]


def test_latency_is_counted_in_steps_from_when_a_result_could_be_made(
    result: PlanHeartbeats,
) -> None:
    operator = result.outcomes["proliferative"]["operator"]
    assert SETUP.step_cost_ms <= operator.mean_ms < 2 * SETUP.step_cost_ms


def test_only_the_third_stream_lags() -> None:
    for name, lag in (("S1", 0), ("S2", 0), ("S3", 8)):
        sent = tuples(name, 4, SETUP)
        behind = sent["arrival"] - sent["ts"].to_physical()
        assert behind.unique().to_list() == [lag * 1_000_000]


def test_the_same_seed_simulates_the_same_run() -> None:
    short = Setup(seconds=3, lag=1)
    assert measure("selective", "query", short) == measure("selective", "query", short)


def test_the_figure_is_drawn(result: PlanHeartbeats, tmp_path: Path) -> None:
    plot_plan(result, tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 10_000
