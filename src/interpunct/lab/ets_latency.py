"""Output latency and idle-waiting with and without enabling timestamps (ETS section 6, Figure 7).

Every case runs on the real clock, one after another, each in a process of its own; C and D share
one, in turns. Then every case
runs for an hour of scripted time, in which a step costs what one has been measured to cost here;
only there are there sparse tuples enough for case A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from interpunct.lab.isolated import Job, Report, run_jobs, silent
from interpunct.lab.two_streams import (
    RATES,
    SELECTIVITY,
    Case,
    Outcome,
    cases,
    measure,
    measure_in_turns,
    step_cost,
)

HEARTBEATS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # per second, case B
MEASURE = (
    "from the driver's handing a tuple's page to its source until the sink is given the tuple, on "
    "one clock; tuples still waiting at the end count with the age they have reached"
)
_START_UP = 2.0  # seconds a process takes to begin
_SIMULATION = 60.0  # simulated seconds in a second, about


@dataclass(frozen=True)
class Setup:
    """`workers` processes simulate at a time; with none, everything runs in this process. `asleep`
    lets the process sleep between tuples on the real clock. C and D, which differ by microseconds,
    take `turns` there."""

    seconds: float = 60.0
    simulated_seconds: float = 3600.0
    seed: int = 1
    heartbeats: tuple[float, ...] = HEARTBEATS
    workers: int = 2
    turns: int = 12
    asleep: bool = False


@dataclass(frozen=True)
class EtsLatency:
    setup: Setup
    step_cost_us: int
    real: dict[Case, Outcome] = field(repr=False)
    simulated: dict[Case, Outcome] = field(repr=False)

    def expected(self) -> dict[str, bool]:
        """What the paper leads one to expect, and whether it came out so."""
        real, simulated = _by_letter(self.real), _by_letter(self.simulated)
        return {
            "c_within_0.1_ms_of_d": abs(real["C"].mean_ms - real["D"].mean_ms) <= 0.1,
            "c_idle_waiting_below_0.1_pct": real["C"].idle_waiting_pct < 0.1,
            "simulated_c_idle_waiting_below_0.1_pct": simulated["C"].idle_waiting_pct < 0.1,
            "simulated_a_at_least_10000_times_c": (
                simulated["A"].mean_ms >= 10_000 * simulated["C"].mean_ms
            ),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "ets-latency",
            "seed": self.setup.seed,
            "seconds": self.setup.seconds,
            "rates_per_s": RATES,
            "selectivity": SELECTIVITY,
            "measure": MEASURE,
            "between_tuples": "asleep" if self.setup.asleep else "at work on a twin of the query",
            **_measures(self.real),
            "simulated": {
                "seconds": self.setup.simulated_seconds,
                "step_cost_us": self.step_cost_us,
                **_measures(self.simulated),
            },
            "expected": self.expected(),
        }


def ets_latency(setup: Setup, report: Report = silent) -> EtsLatency:
    """Run the experiment."""
    compared = cases(setup.heartbeats)
    real_time = len(compared) * (setup.seconds + _START_UP)
    simulating = len(compared) * (setup.simulated_seconds / _SIMULATION + _START_UP)
    share = real_time / (real_time + simulating / max(1, setup.workers))

    def first(done: float, doing: str) -> None:
        report(share * done, f"real clock: {doing}")

    def second(done: float, doing: str) -> None:
        report(share + (1 - share) * done, f"simulated: {doing}")

    close = [case for case in compared if case.letter in "CD"]
    others = [case for case in compared if case not in close]
    jobs = [Job("one step", step_cost, (), 2 * _START_UP)]
    jobs += [
        Job(
            str(case),
            partial(measure, asleep=setup.asleep),
            (case, setup.seconds, setup.seed),
            setup.seconds + _START_UP,
        )
        for case in others
    ]
    in_turns = partial(measure_in_turns, turns=setup.turns, asleep=setup.asleep)
    expected = len(close) * setup.seconds + _START_UP
    jobs.append(Job("C and D", in_turns, (close, setup.seconds, setup.seed), expected))
    cost, *alone, together = run_jobs(jobs, workers=min(1, setup.workers), report=first)
    real = dict(zip([*others, *close], [*alone, *together], strict=True))
    simulated = simulate(compared, setup.simulated_seconds, setup.seed, cost, setup.workers, second)
    return EtsLatency(setup, cost, real, simulated)


def simulate(
    compared: Sequence[Case], seconds: float, seed: int, cost: int, workers: int, report: Report
) -> dict[Case, Outcome]:
    """Cases in scripted time, those with the most heartbeats first since they take longest."""
    order = sorted(compared, key=lambda c: -(c.rate or 0.0))
    jobs = [
        Job(
            str(case), measure, (case, seconds, seed, cost),
            _START_UP + seconds / _SIMULATION * (1 + (case.rate or 0.0) / 300),
        )
        for case in order
    ]  # fmt: skip
    outcomes = dict(zip(order, run_jobs(jobs, workers=workers, report=report), strict=True))
    return {case: outcomes[case] for case in compared}


def _by_letter(outcomes: dict[Case, Outcome]) -> dict[str, Outcome]:
    return {case.letter: outcome for case, outcome in outcomes.items()}


def by_case(outcomes: dict[Case, Outcome], attribute: str, without: str = "") -> dict[str, Any]:
    """One measure of every case: by letter, and for B by rate."""
    values: dict[str, Any] = {}
    for case, outcome in outcomes.items():
        value = getattr(outcome, attribute)
        if case.letter in without:
            continue
        if case.rate is None:
            values[case.letter] = value
        else:
            values.setdefault("B", {})[f"{case.rate:g}"] = value
    return values


def _measures(outcomes: dict[Case, Outcome]) -> dict[str, Any]:
    return {
        "mean_ms": by_case(outcomes, "mean_ms"),
        "median_ms": by_case(outcomes, "median_ms"),
        "p99_ms": by_case(outcomes, "p99_ms"),
        "idle_waiting_pct": by_case(outcomes, "idle_waiting_pct", without="D"),
        "held_back_pct": by_case(outcomes, "held_back_pct", without="D"),
        "delivered": by_case(outcomes, "delivered"),
        "still_waiting": by_case(outcomes, "waiting"),
    }


def plot_latency(result: EtsLatency, path: Path) -> None:
    """Figure 7: (a) mean latency over the heartbeat rate, (b) C and D alone; and idle-waiting."""
    from interpunct.lab.figures import NAMES, colour, figure, saved

    drawing, (left, middle, right) = figure(3, "Enabling timestamps: output latency")
    runs = (("real clock", result.real, "-"), ("simulated", result.simulated, "--"))
    for name, outcomes, style in runs:
        single = _by_letter(outcomes)
        rates = [case.rate for case in outcomes if case.rate is not None]
        series = {
            axes: [getattr(o, attribute) for c, o in outcomes.items() if c.rate is not None]
            for axes, attribute in ((left, "mean_ms"), (right, "idle_waiting_pct"))
        }
        for axes, attribute, letters in (
            (left, "mean_ms", "ACD"),
            (right, "idle_waiting_pct", "AC"),
        ):
            axes.plot(rates, series[axes], style, marker="o", color=colour("B"),
                      label=f"{NAMES['B']}, {name}")  # fmt: skip
            for letter in letters:
                axes.axhline(getattr(single[letter], attribute), linestyle=style,
                             color=colour(letter), label=f"{NAMES[letter]}, {name}")  # fmt: skip
    left.set(
        title="(a) all cases", xscale="log", yscale="log",
        xlabel="heartbeats per second (B)", ylabel="mean latency, ms",
    )  # fmt: skip
    right.set(
        title="idle-waiting of the union", xscale="log",
        xlabel="heartbeats per second (B)", ylabel="percent of the time",
    )  # fmt: skip
    lines, labels = left.get_legend_handles_labels()
    drawing.legend(lines, labels, loc="outside lower center", ncols=len(runs) * 2)
    bars, heights, colours = [], [], []
    for name, outcomes, _ in runs:
        for letter in "CD":
            bars.append(f"{letter}\n{name}")
            heights.append(_by_letter(outcomes)[letter].mean_ms)
            colours.append(colour(letter))
    middle.bar_label(middle.bar(bars, heights, color=colours), fmt="%.3f")
    middle.set(title="(b) C and D alone", ylabel="mean latency, ms")
    saved(drawing, path)
