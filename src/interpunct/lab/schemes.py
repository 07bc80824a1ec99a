"""What the schemes F1 to F3 save of F0's time, by how often the driver switches (Figure 7).

A turn runs every case once, and savings are ratios within a turn: a machine whose speed drifts
drifts for all of them. The stays of a driver come in another order with each scheme, so that none
is always early or always late: what frequent switches cost is then the mean over the schemes.

    F0   F1: 2 4 6   F2: 6 2 4   F3: 4 6 2

    >>> from types import SimpleNamespace as Took
    >>> seconds = {F0: 10.0, F1: 5.0, F2: 3.0, F3: 2.5}
    >>> runs = {case: [Took(seconds=seconds[case.scheme])] for case in cases((2, 6))}
    >>> found = Comparison((2, 6), runs)
    >>> found.saved_pct(F3), found.frequency_pct[F3], found.frequency_mean_pct
    ({'2': 75.0, '6': 75.0}, 0.0, 0.0)
    >>> found.expected()["F2_saves_61_pct"]
    True
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from interpunct.lab.zooming import F0, F1, F2, F3

TARGETS = {F2: 61.0, F3: 65.0}  # per cent of F0's time, at least
FREQUENT = 5.0  # per cent of F0's time that the most frequent switches may cost beyond the fewest
TOLD = (F1, F2, F3)


@dataclass(frozen=True)
class Case:
    """A scheme, and for all but F0 how many minutes the driver stays."""

    scheme: str
    minutes: int = 0


def cases(minutes: Sequence[int]) -> Iterator[Case]:
    yield Case(F0)
    for turned, scheme in enumerate(TOLD):
        at = len(minutes) - turned % len(minutes)
        yield from (Case(scheme, stay) for stay in (*minutes[at:], *minutes[:at]))


class Timed(Protocol):
    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True)
class Comparison:
    """The runs of all cases, by turn."""

    minutes: tuple[int, ...]
    runs: Mapping[Case, Sequence[Timed]]

    def seconds(self, case: Case) -> float:
        return statistics.median(run.seconds for run in self.runs[case])

    def ratio(self, case: Case) -> float:
        turns = zip(self.runs[case], self.runs[Case(F0)], strict=True)
        return statistics.median(run.seconds / plain.seconds for run, plain in turns)

    def saved_pct(self, scheme: str) -> dict[str, float]:
        return {f"{m}": round(100 - 100 * self.ratio(Case(scheme, m)), 1) for m in self.minutes}

    @property
    def frequency_pct(self) -> dict[str, float]:
        """What the most frequent switches cost more than the fewest, in per cent of F0's time."""
        most, fewest = min(self.minutes), max(self.minutes)
        return {
            s: round(100 * (self.ratio(Case(s, most)) - self.ratio(Case(s, fewest))), 1)
            for s in TOLD
        }

    @property
    def frequency_mean_pct(self) -> float:
        return round(statistics.mean(self.frequency_pct.values()), 1)

    def by_scheme(self, value: Callable[[Case], Any]) -> dict[str, Any]:
        """A value of each case: one of F0, and of the others by how long the driver stays."""
        told = {s: {f"{m}": value(Case(s, m)) for m in self.minutes} for s in TOLD}
        return {F0: value(Case(F0)), **told}

    def to_json(self) -> dict[str, Any]:
        return {
            "seconds": self.by_scheme(lambda case: round(self.seconds(case), 2)),
            "saved_pct": {scheme: self.saved_pct(scheme) for scheme in TOLD},
            "frequency_costs_pct": {**self.frequency_pct, "mean": self.frequency_mean_pct},
        }

    def expected(self) -> dict[str, bool]:
        saved = {
            f"{scheme}_saves_{least:g}_pct": min(self.saved_pct(scheme).values()) >= least
            for scheme, least in TARGETS.items()
        }
        rarely = self.frequency_mean_pct <= FREQUENT
        return {**saved, f"frequency_costs_at_most_{FREQUENT:g}_pct": rarely}
