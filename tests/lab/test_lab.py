"""The experiments, small, in scripted time: what the paper says must hold in any length of run."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpunct.lab import bench, ets_latency, ets_memory
from interpunct.lab.isolated import Job, run_jobs
from interpunct.lab.two_streams import Case, Outcome, arrivals, cases, measure

COST = 50  # microseconds a step


@pytest.fixture(scope="module")
def outcomes() -> dict[Case, Outcome]:
    return {case: measure(case, 60, 1, COST) for case in cases((1.0, 100.0))}


def test_arrivals_come_at_the_rates_of_the_paper() -> None:
    fast, sparse = (next(arrivals(name, 3, 4096)) for name in ("fast", "sparse"))
    assert fast["arrival"][-1] / 1e6 == pytest.approx(4096 / 50, rel=0.1)
    assert sparse["arrival"][-1] / 1e6 == pytest.approx(4096 / 0.05, rel=0.1)
    assert set(fast["id"]).isdisjoint(sparse["id"])


def test_on_demand_is_two_steps_slower_than_latent(outcomes: dict[Case, Outcome]) -> None:
    on_demand, latent = outcomes[Case("C")], outcomes[Case("D")]
    assert latent.mean_ms == pytest.approx(2 * COST / 1e3, rel=0.05)
    assert on_demand.mean_ms == pytest.approx(4 * COST / 1e3, rel=0.05)


def test_latency_falls_from_none_over_periodic_to_on_demand(
    outcomes: dict[Case, Outcome],
) -> None:
    order = [Case("A"), Case("B", 1.0), Case("B", 100.0), Case("C"), Case("D")]
    means = [outcomes[case].mean_ms for case in order]
    assert means == sorted(means, reverse=True)
    assert means[0] > 10_000 * means[3]


def test_only_cases_without_demand_idle_wait(outcomes: dict[Case, Outcome]) -> None:
    assert outcomes[Case("A")].idle_waiting_pct > 95
    assert 5 < outcomes[Case("B", 100.0)].idle_waiting_pct < 30
    assert outcomes[Case("C")].idle_waiting_pct < 0.1
    assert outcomes[Case("D")].idle_waiting_pct == 0


def test_every_case_delivers_the_same_tuples_but_those_that_wait(
    outcomes: dict[Case, Outcome],
) -> None:
    assert len({o.entered for o in outcomes.values()}) == 1
    assert len({o.delivered + o.waiting for o in outcomes.values()}) == 1
    assert outcomes[Case("C")].waiting == outcomes[Case("D")].waiting == 0


def test_the_same_seed_simulates_the_same_run() -> None:
    assert measure(Case("C"), 10, 7, COST) == measure(Case("C"), 10, 7, COST)


def test_latency_reports_every_case_on_both_clocks(tmp_path: Path) -> None:
    setup = ets_latency.Setup(0.3, 20, heartbeats=(10.0,), workers=0)
    result = ets_latency.ets_latency(setup)
    shown = result.to_json()
    for part in (shown, shown["simulated"]):
        assert part["mean_ms"].keys() == part["p99_ms"].keys() == {"A", "B", "C", "D"}
        assert part["idle_waiting_pct"].keys() == {"A", "B", "C"}
        assert part["mean_ms"]["B"].keys() == {"10"}
    assert shown["expected"]["simulated_c_idle_waiting_below_0.1_pct"]
    ets_latency.plot_latency(result, tmp_path / "latency.png")
    assert (tmp_path / "latency.png").stat().st_size > 10_000


def test_queues_shrink_with_heartbeats_and_grow_again(tmp_path: Path) -> None:
    setup = ets_memory.Setup(20, heartbeats=(0.1, 100.0, 1300.0), workers=0)
    result = ets_memory.ets_memory(setup)
    peaks = result.to_json()["peak_queue"]
    assert peaks["A"] > 100 * peaks["C"]
    assert peaks["B"]["0.1"] > peaks["B"]["100"] < peaks["B"]["1300"]
    ets_memory.plot_memory(result, tmp_path / "memory.png")
    assert (tmp_path / "memory.png").stat().st_size > 10_000


def test_bench_counts_what_went_in_and_what_came_out(tmp_path: Path) -> None:
    setup = bench.Setup(tuples=2000, page_sizes=(10, 500), repeat=1, workers=0)
    result = bench.bench(setup)
    shown = result.to_json()
    assert shown["tuples_per_s"].keys() == shown["growth"].keys() == set(bench.OPERATORS)
    assert shown["tuples_per_s"]["join"].keys() == {"10", "500"}
    assert result.timings["union", 500].output == 2000
    assert result.timings["union", 10].output == result.timings["union", 10].tuples
    for operator in bench.OPERATORS:
        assert result.timings[operator, 10].output == result.timings[operator, 500].output
    bench.plot_bench(result, tmp_path / "bench.png")
    assert (tmp_path / "bench.png").stat().st_size > 10_000


def test_jobs_in_other_processes_see_their_environment_and_report() -> None:
    seen: list[float] = []
    jobs = [Job("threads", bench.timed, ("select", 100, 100, 1, 1))]
    environment = {"POLARS_MAX_THREADS": "1"}
    (timing,) = run_jobs(jobs, report=lambda done, _: seen.append(done), environment=environment)
    assert timing.threads == 1
    assert seen[-1] == 1
