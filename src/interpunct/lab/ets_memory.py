"""Peak queue size with and without enabling timestamps (ETS section 6, Figure 8).

The cost model: an operator that consumes a page (of one tuple or one punctuation) takes
`step_cost`, and nothing else takes time. What arrives meanwhile, data or heartbeat, enters when the
step is over and queues. The queue counts tuples and punctuations in the buffers of all arcs, and
tuples that wait in the union.

A heartbeat is worth two steps, one in the selection and one in the union. At 0.4 ms a step the
machine can thus serve 1,250 heartbeats per second and no data: the rates of the experiment come
close to that, where punctuation queues behind bursts of data, and pass it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interpunct.lab.ets_latency import by_case, simulate
from interpunct.lab.isolated import Report, silent
from interpunct.lab.two_streams import RATES, Case, Outcome, cases

HEARTBEATS = (0.1, 1.0, 10.0, 100.0, 1000.0, 1100.0, 1200.0)  # per second, case B
STEP_COST_MS = 0.4  # what a step has been seen to take when caches are cold between tuples


@dataclass(frozen=True)
class Setup:
    seconds: float = 1200.0
    step_cost_ms: float = STEP_COST_MS
    seed: int = 1
    heartbeats: tuple[float, ...] = HEARTBEATS
    workers: int = 2


@dataclass(frozen=True)
class EtsMemory:
    setup: Setup
    outcomes: dict[Case, Outcome] = field(repr=False)

    @property
    def peaks(self) -> dict[str, Any]:
        return by_case(self.outcomes, "peak_queue", without="D")

    def expected(self) -> dict[str, bool]:
        """What the paper leads one to expect, and whether it came out so."""
        peaks = self.peaks
        periodic = list(peaks["B"].values())
        least = periodic.index(min(periodic))
        return {
            "c_at_least_100_times_below_a": peaks["A"] >= 100 * peaks["C"],
            "b_falls_at_first": periodic[0] > min(periodic),
            "b_rises_again": periodic[-1] > periodic[least],
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "ets-memory",
            "seed": self.setup.seed,
            "seconds": self.setup.seconds,
            "step_cost_ms": self.setup.step_cost_ms,
            "rates_per_s": RATES,
            "peak_queue": self.peaks,
            "expected": self.expected(),
        }


def ets_memory(setup: Setup, report: Report = silent) -> EtsMemory:
    """Run the experiment, in scripted time."""
    compared = [case for case in cases(setup.heartbeats) if case.letter != "D"]
    cost = max(1, round(setup.step_cost_ms * 1000))
    return EtsMemory(
        setup, simulate(compared, setup.seconds, setup.seed, cost, setup.workers, report)
    )


def plot_memory(result: EtsMemory, path: Path) -> None:
    """Figure 8: peak queue size over the heartbeat rate."""
    from interpunct.lab.figures import NAMES, colour, figure, saved

    drawing, axes = figure(1, "Enabling timestamps: peak total queue size")
    peaks = result.peaks
    axes.plot([float(r) for r in peaks["B"]], list(peaks["B"].values()), marker="o",
              color=colour("B"), label=NAMES["B"])  # fmt: skip
    for letter in "AC":
        axes.axhline(peaks[letter], color=colour(letter), label=NAMES[letter])
    axes.set(
        xscale="log", yscale="log", xlabel="heartbeats per second (B)",
        ylabel="tuples and punctuations",
        title=f"{result.setup.seconds:g} s, {result.setup.step_cost_ms:g} ms per step",
    )  # fmt: skip
    axes.legend()
    saved(drawing, path)
