"""Skew bounds that hold with a confidence, for each pair of streams (Heartbeats section 2).

    Bij with confidence 1 − ε:  of a thousand tuples of Sj, with ε = 0.001, one is further behind Si

The section calls such bounds an alternative to deterministic ones: where lateness has a light tail,
a bound that nearly all tuples keep is far smaller than one that all keep. Section 6.1 estimates B′
from the greatest skew ever seen; this is the same with a quantile in place of the greatest, from a
sketch for each pair and each t. With confidence 1 both are equal.

>>> pairs = PairConfidence(["a", "b"], confidence=0.9)
>>> for now in range(100):
...     pairs.arrive("a", np.array([10 * now]), now)
...     pairs.arrive("b", np.array([10 * now - (500 if now == 50 else 20)]), now)
>>> print(pairs.matrix())
  | a            | b              | latency
a | (t=0s, δ=0s) | (t=0s, δ=21us) | 0s
b | (t=0s, δ=0s) | (t=0s, δ=0s)   | 0s
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np

from interpunct.model.errors import FlowError
from interpunct.model.schema import START_OF_TIME
from interpunct.progress.confidence import Ints, LatenessSketch
from interpunct.progress.estimation import moved_on
from interpunct.progress.skew import SkewBounds
from interpunct.progress.spread import Spread
from interpunct.progress.timestamps import Bounds

EXAMPLES = 20  # tuples beyond the bound that a window should contain


class PairConfidence:
    """δij[t] with confidence 1 − ε, for every pair of sources and t ∈ {0, unit, …, t_max}.

    Of the tuples of Sj in the last one to two windows, `confidence` are not more than δij[t] behind
    what Si had shown t before. A tuple is late if it breaks the bound of any Si: with n sources at
    most n ε of them are, and fewer where the same tuples are late against all.

    A pair promises nothing until as many tuples could be compared as contain one that may be late.
    """

    def __init__(
        self,
        sources: Sequence[str],
        confidence: float = 0.999,
        t_max: int = 0,
        unit: int = 1,
        window: int | None = None,
    ) -> None:
        """`window` is in tuples of Sj: without it, some 20 times those that contain a late one."""
        _check(sources, confidence, t_max, unit)
        self.sources, self.confidence, self.unit = tuple(sources), confidence, unit
        self.lags = np.arange(0, t_max + 1, unit, dtype=np.int64)
        self._index = {name: number for number, name in enumerate(self.sources)}
        self._unit_now: int | None = None
        self._greatest = np.full((len(self.sources), len(self.lags)), START_OF_TIME)
        self.least_rows = ceil(round(1 / (1 - confidence), 6)) if confidence < 1 else 1
        self.window = window or (EXAMPLES * self.least_rows if confidence < 1 else 2**62)
        self._sketches: dict[tuple[int, int, int], LatenessSketch] = {}  # by i, j and lag

    def arrive(self, source: str, ticks: Ints, now: int) -> None:
        """A page of these timestamps arrives on `source` at this moment of the clock: it is
        compared with the pages before it."""
        if not len(ticks):
            return
        j, spread = self._number(source), Spread.of(np.asarray(ticks, np.int64))
        unit = now // self.unit
        if self._unit_now is not None:
            moved_on(self._greatest, unit - self._unit_now)
        self._unit_now = max(unit, self._unit_now or unit)
        for i, lag in np.argwhere(self._greatest > START_OF_TIME).tolist():
            late = spread.lateness(int(self._greatest[i, lag]))
            self._sketch(i, j, lag).merge(late)
        self._greatest[j, 0] = max(int(self._greatest[j, 0]), spread.greatest)

    def _sketch(self, i: int, j: int, lag: int) -> LatenessSketch:
        if (i, j, lag) not in self._sketches:
            self._sketches[i, j, lag] = LatenessSketch(self.window)
        return self._sketches[i, j, lag]

    def _number(self, source: str) -> int:
        if source not in self._index:
            raise FlowError(
                "PairConfidence", f"one of the sources {', '.join(self.sources)}", repr(source),
                "Name every source when it is made.",
            )  # fmt: skip
        return self._index[source]

    def estimate(self, i: str, j: str) -> list[int | None]:
        """δij[t] for every t, in whole ticks; None where too little is known."""
        first, second = self._number(i), self._number(j)
        found = (self._sketches.get((first, second, lag)) for lag in range(len(self.lags)))
        return [
            None if s is None or s.rows < self.least_rows else ceil(s.quantile(self.confidence))
            for s in found
        ]

    def matrix(self) -> SkewBounds:
        """B′ as a matrix for the heartbeat generator; pairs of which too little is known are empty,
        and a longer t is there only where it tightens δ."""
        entries = {
            (i, j): [
                Bounds(t, delta)
                for t, delta in zip(self.lags.tolist(), self.estimate(i, j), strict=True)
                if delta is not None
            ]
            for i in self.sources
            for j in self.sources
        }
        return SkewBounds(self.sources, entries)

    def held(self) -> int:
        """Bytes of its stored form, about: bounded for each pair and t, whatever arrives."""
        return sum(sketch.held() for sketch in self._sketches.values())

    def to_record(self) -> dict[str, Any]:
        """All of it, for state."""
        sketches = [
            [*key, b64encode(sketch.to_bytes()).decode()] for key, sketch in self._sketches.items()
        ]
        return {
            "unit_now": self._unit_now, "greatest": self._greatest.tolist(), "sketches": sketches,
        }  # fmt: skip

    def restore(self, record: dict[str, Any]) -> None:
        self._unit_now, self._greatest[:] = record["unit_now"], record["greatest"]
        self._sketches = {}
        for i, j, lag, stored in record["sketches"]:
            self._sketch(i, j, lag).restore(b64decode(stored))


def _check(sources: Sequence[str], confidence: float, t_max: int, unit: int) -> None:
    where = "PairConfidence"
    if not sources or len(set(sources)) != len(sources):
        raise FlowError(where, "distinct names of sources", repr(list(sources)), "Name each once.")
    if not 0 < confidence <= 1:
        raise FlowError(
            where, "a confidence above 0 and up to 1", repr(confidence),
            "Write 0.999 for one tuple in a thousand beyond the bound.",
        )  # fmt: skip
    if unit < 1 or t_max < 0:
        raise FlowError(
            where, "a unit of at least 1 and t_max of at least 0", f"unit={unit}, t_max={t_max}",
            "Both are microseconds of the clock.",
        )  # fmt: skip
