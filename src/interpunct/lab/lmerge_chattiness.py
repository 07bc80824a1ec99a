"""How many adjusts come out, the more disorder goes in (LMerge Figure 4).

A count over disordered tuples revises its results, the more the more of them come late. One such
stream passes all its revisions on. A logical merge of several lets the first insert out and
corrects it when a stable would make it final, so what changes back and forth meanwhile is not seen;
a merge that passes on every adjust shows what the policy saves (section V-A).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from interpunct.lab.isolated import Report, silent
from interpunct.lab.lmerge_streams import KEYED, SCHEMA, Shape, in_turn, replicas
from interpunct.model.elements import ADJUST, KIND
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.tdb import equivalent
from interpunct.operators.lmerge import MergePolicy, lmerge

SHAPE = Shape(delay=1_000, groups=20, window=100, life=400, page=200)
POLICIES = {"LMR3+": MergePolicy(), "every adjust": MergePolicy(adjusts="every")}
WITHOUT = "without LMerge"


@dataclass(frozen=True)
class Setup:
    tuples: int = 20_000
    inputs: int = 3
    disorder: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    seed: int = 1


@dataclass(frozen=True)
class LmergeChattiness:
    """Adjusts by way and share of disorder; whether every output had the table of the inputs."""

    setup: Setup
    adjusts: dict[str, dict[float, int]] = field(repr=False)
    equal: bool

    def expected(self) -> dict[str, bool]:
        alone, merged = self.adjusts[WITHOUT], self.adjusts["LMR3+"]
        rising = [alone[d] for d in sorted(self.setup.disorder)]
        late = [d for d in self.setup.disorder if d > 0]
        return {
            "outputs_have_the_table_of_the_inputs": self.equal,
            "adjusts_increase_with_disorder": all(a < b for a, b in pairwise(rising)),
            "LMR3+_adjusts_less_than_one_input_alone": all(merged[d] < alone[d] for d in late),
            "LMR3+_adjusts_less_than_half_of_every_adjust": all(
                2 * merged[d] < self.adjusts["every adjust"][d] for d in late
            ),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "lmerge-chattiness",
            "seed": self.setup.seed,
            "tuples": self.setup.tuples,
            "inputs": self.setup.inputs,
            "rows": [
                {"disorder": d, **{way: found[d] for way, found in self.adjusts.items()}}
                for d in self.setup.disorder
            ],
            "expected": self.expected(),
        }


def lmerge_chattiness(setup: Setup, report: Report = silent) -> LmergeChattiness:
    """Count the adjusts of one input and of both merges at every share of disorder."""
    adjusts: dict[str, dict[float, int]] = {way: {} for way in (WITHOUT, *POLICIES)}
    equal = True
    for number, disorder in enumerate(setup.disorder):
        report(number / len(setup.disorder), f"{disorder:.0%} disorder")
        shape = replace(SHAPE, tuples=setup.tuples, disorder=disorder)
        streams = replicas(shape, setup.inputs, setup.seed)
        adjusts[WITHOUT][disorder] = _adjusts(streams[0])
        for way, policy in POLICIES.items():
            out = merged(streams, policy)
            adjusts[way][disorder] = _adjusts(out)
            equal &= equivalent(SCHEMA, _whole(out), _whole(streams[0]))
    return LmergeChattiness(setup, adjusts, equal)


def merged(streams: list[list[Page]], policy: MergePolicy) -> list[Page]:
    merge = lmerge("merge", [KEYED] * len(streams), policy=policy)
    return [out for port, page in in_turn(streams) for _, out in merge.accept(port, page).pages]


def _whole(pages: list[Page]) -> Any:
    return stacked([page.frame for page in pages])


def _adjusts(pages: list[Page]) -> int:
    return sum(int((page.frame[KIND] == ADJUST).sum()) for page in pages)


def plot_chattiness(result: LmergeChattiness, path: Path) -> None:
    """Figure 4."""
    from interpunct.lab.figures import figure, saved

    drawing, axes = figure(1, "Adjusts at the output, increasing disorder")
    for way, found in result.adjusts.items():
        axes.plot([100 * d for d in found], list(found.values()), marker="o", label=way)
    axes.set(xlabel="disorder (% of tuples)", ylabel="adjusts")
    axes.legend()
    saved(drawing, path)
