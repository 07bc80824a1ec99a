"""Memory and throughput of the logical merges, the more often stables come (LMerge Figure 5).

The streams are those of `lmerge-variants`. The more stables there are, the sooner events are final
and forgotten, and the more often R3 and R4 have to look whether their output agrees with its input.
R0, R1 and R2 do next to nothing for a stable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interpunct.lab import lmerge_variants as variants
from interpunct.lab.isolated import Job, Report, run_jobs, silent
from interpunct.lab.lmerge_variants import ONE_THREAD, Measured, measure

VARIANTS = ("R0", "R1", "R2", "R3", "R4")
SHARES = (0.00001, 0.0001, 0.001, 0.01)


@dataclass(frozen=True)
class Setup:
    """`elements` of all inputs together."""

    elements: int = 100_000
    shares: tuple[float, ...] = SHARES
    inputs: int = 2
    page: int = 1000
    repeat: int = 3
    seed: int = 1
    workers: int = 1


@dataclass(frozen=True)
class LmergeStable:
    setup: Setup
    measured: dict[tuple[str, float], Measured] = field(repr=False)

    def expected(self) -> dict[str, bool]:
        rare, often = min(self.setup.shares), max(self.setup.shares)
        found = self.measured
        return {
            **{
                f"{v}_holds_less_when_stables_are_frequent": found[v, often].nbytes
                < found[v, rare].nbytes
                for v in ("R3", "R4")
            },
            **{
                f"{v}_is_slower_when_stables_are_frequent": found[v, often].elements_per_s
                < found[v, rare].elements_per_s
                for v in ("R3", "R4")
            },
            "R0_R1_R2_memory_negligible": all(
                found[v, s].nbytes * 100 < found["R3", s].nbytes
                for v in ("R0", "R1", "R2")
                for s in self.setup.shares
            ),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "lmerge-stable",
            "seed": self.setup.seed,
            "elements": self.setup.elements,
            "inputs": self.setup.inputs,
            "rows": [
                {
                    "variant": variant,
                    "stables": share,
                    "elements_per_s": round(m.elements_per_s),
                    "peak_bytes": m.nbytes,
                    "peak_events": m.events,
                }
                for (variant, share), m in self.measured.items()
            ],
            "expected": self.expected(),
        }


def lmerge_stable(setup: Setup, report: Report = silent) -> LmergeStable:
    """Every variant with every share of stables, each in a process of its own."""
    cases = [(v, s) for v in VARIANTS for s in setup.shares]
    jobs = [
        Job(f"{v}, {s:.3%} stables", measure, (v, setup.inputs, _of(setup, s)), 4.0)
        for v, s in cases
    ]
    results = run_jobs(jobs, workers=setup.workers, report=report, environment=ONE_THREAD)
    return LmergeStable(setup, dict(zip(cases, results, strict=True)))


def _of(setup: Setup, share: float) -> variants.Setup:
    return variants.Setup(
        setup.elements, page=setup.page, repeat=setup.repeat, seed=setup.seed, stables=share
    )


def plot_stable(result: LmergeStable, path: Path) -> None:
    """Figure 5: memory and throughput over the share of stables."""
    from interpunct.lab.figures import figure, saved

    drawing, panels = figure(2, "Logical merge, increasing share of stables")
    shown = (("nbytes", "bytes held at most"), ("elements_per_s", "input elements per second"))
    shares = result.setup.shares
    for axes, (number, label) in zip(panels, shown, strict=True):
        for variant in VARIANTS:
            found = [getattr(result.measured[variant, s], number) for s in shares]
            axes.plot([100 * s for s in shares], found, marker="o", label=variant)
        axes.set(xscale="log", yscale="log", xlabel="stables (% of elements)", ylabel=label)
    panels[0].legend()
    saved(drawing, path)
