"""Bounds that a source learns as it runs, for those who cannot say how late its tuples are.

    external("ts", bounds=adaptive(completeness=0.999))     # one tuple in a thousand may be late

A source with such bounds gives no heartbeat until it has seen enough. Then its heartbeat is the
greatest timestamp less δ, and δ follows what arrives:

| method       | δ                                                                              |
|--------------|--------------------------------------------------------------------------------|
| `confidence` | the least lateness that keeps within what may still be late (a quantile sketch) |
| `adaptive`   | Heartbeats Figure 4: up at once with a later tuple, down by windows, W and α    |
| `maximum`    | the greatest lateness ever seen (Heartbeats section 6.1)                        |

>>> str(adaptive(completeness=0.99))
'adaptive (confidence 99 %, window 2000 tuples)'
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import Any

import numpy as np

from interpunct.model.durations import duration, format_duration
from interpunct.model.errors import FlowError
from interpunct.model.schema import START_OF_TIME
from interpunct.progress.confidence import Ints, LatenessSketch, PageSketch, sketched

METHODS = ("confidence", "adaptive", "maximum")
# Windows, counted in the tuples among which one may be late.
SKETCH_WINDOW = 20
FALL_WINDOW = 10


@dataclass(frozen=True)
class Adaptive:
    """A policy for learning δ of a stream against itself; `adaptive` makes one.

    No heartbeat is given until the stream has brought, after its first page, 1 / (1 − completeness)
    tuples, of which one may be late, and has lived `warm_up` times as long as δ, in its own time.
    The latter because a stream that began an hour ago cannot have shown anything to be two hours
    late: an estimate near its age says how old it is, not how late its tuples can be.
    """

    completeness: float = 0.999
    method: str = "confidence"
    window: int = 20_000
    timed: bool = False
    alpha: float = 0.75
    warm_up: float = 2.5
    safety: float = 2.0

    def __post_init__(self) -> None:
        where = "adaptive"
        if not 0 < self.completeness < 1:
            raise FlowError(
                f"{where}(completeness=…)", "a share between 0 and 1", repr(self.completeness),
                "Write 0.999 for one late tuple in a thousand.",
            )  # fmt: skip
        if self.method not in METHODS:
            raise FlowError(
                f"{where}(method=…)", f"one of {', '.join(METHODS)}", repr(self.method),
                "Choose one.",
            )  # fmt: skip
        if self.window < 1:
            raise FlowError(
                f"{where}(window=…)", "a number of tuples or a duration, above zero",
                repr(self.window), "Leave it out for the usual one.",
            )  # fmt: skip
        if not 0 <= self.alpha <= 1:
            raise FlowError(
                f"{where}(alpha=…)", "a weight from 0 (fall at once) to 1 (never fall)",
                repr(self.alpha), "It is the weight of the old estimate.",
            )  # fmt: skip
        if self.warm_up < 0 or self.safety < 1:
            raise FlowError(
                where, "warm_up of at least 0 and safety of at least 1",
                f"warm_up={self.warm_up}, safety={self.safety}", "Leave them out if in doubt.",
            )  # fmt: skip

    @property
    def least_rows(self) -> int:
        """Tuples that must have come before the first heartbeat."""
        return _one_late_in(self.completeness)

    def __str__(self) -> str:
        if self.method == "maximum":
            return "adaptive (maximum)"
        window = format_duration(self.window) if self.timed else f"{self.window} tuples"
        if self.method == "adaptive":
            return f"adaptive (W = {window}, α = {self.alpha:g})"
        return f"adaptive (confidence {100 * self.completeness:g} %, window {window})"


def adaptive(
    completeness: float = 0.999,
    *,
    method: str = "confidence",
    window: int | str | timedelta | None = None,
    alpha: float = 0.75,
    warm_up: float = 2.5,
    safety: float = 2.0,
) -> Adaptive:
    """Bounds to be learned, so that about this share of tuples comes in time.

    `window` is how much δ remembers, in tuples or as a duration of the clock: without it, what
    contains 20 late tuples (10 for `adaptive`) at this completeness. `alpha` is for `adaptive`.
    `confidence` spends only 1 / `safety` of the late tuples that it may have, and those behind the
    heartbeat twice: of a stream whose lateness never changes about 1 / (2 · safety) of what may be
    late is, and δ is greater than it need be. The reserve is for lateness that comes in spells.
    """
    if window is None:
        share = completeness if 0 < completeness < 1 else 0.5  # refused by the policy itself
        window = _one_late_in(share) * (FALL_WINDOW if method == "adaptive" else SKETCH_WINDOW)
    timed = not isinstance(window, int)
    ticks = duration(window, "adaptive(window=…)")
    return Adaptive(completeness, method, ticks, timed, alpha, warm_up, safety)


def _one_late_in(completeness: float) -> int:
    return ceil(round(1 / (1 - completeness), 6))


class AdaptiveBound:
    """The running form of an `Adaptive` policy, for one stream against itself.

    It is told of each page, or of each batch that several tasks read, only facts that merge: how
    many tuples, their least and greatest timestamps, and a sketch of their lateness against
    `reached`. All who are told the same, in the same order, hold the same δ.
    """

    def __init__(self, policy: Adaptive) -> None:
        self.policy = policy
        self.rows = 0  # tuples that could be compared with earlier ones: all but the first page's
        self.least: int | None = None
        self.reached: int | None = None  # the greatest timestamp of pages so far
        self.heartbeat = START_OF_TIME  # the greatest that δ has allowed; it never falls
        self._sketch = LatenessSketch(policy.window, timed=policy.timed)
        self._fall = _Fall(policy)
        self._delta = 0
        self._shadow = START_OF_TIME  # the heartbeat had there been no warm-up

    @property
    def estimate(self) -> int:
        """δ by what has been seen, be it enough or not."""
        return self._delta

    @property
    def skew(self) -> int | None:
        """δ, in ticks; None while nothing can be promised yet."""
        if self.least is None or self.reached is None or self.rows < self.policy.least_rows:
            return None
        lived = self.reached - self.least
        return None if lived < self.policy.warm_up * self._delta else self._delta

    def observe(
        self,
        rows: int,
        least: int,
        greatest: int,
        late: Ints | bytes | Sequence[bytes],
        now: int,
    ) -> None:
        """A page of this many tuples, how late they were against `reached`, and when they came."""
        if not rows:
            return
        page = _page(late)
        if self.policy.method == "confidence":
            self._learn(page, now)
        else:
            self._delta = self._fall.after(rows, page.greatest, now)
        if self.reached is not None:
            self.rows += rows
        self.least = least if self.least is None else min(self.least, least)
        self.reached = greatest if self.reached is None else max(self.reached, greatest)
        self._shadow = max(self._shadow, self.reached - self._delta)
        skew = self.skew
        if skew is not None:
            self.heartbeat = max(self.heartbeat, self.reached - skew)

    def _learn(self, page: PageSketch, now: int) -> None:
        """δ is the quantile that leaves out as many tuples as may still be late.

        Tuples behind the heartbeat, which cannot go back when δ grows, count against what may be
        late in this window. Lateness comes in spells: without this, a spell makes late all that
        was allowed, and the quantile of a window that contains it allows as many again. Tuples
        that a heartbeat would have missed count during the warm-up too: they show how far the
        estimate can be trusted.
        """
        behind = 0 if self.reached is None else page.beyond(self.reached - self._shadow)
        self._sketch.merge(page.to_bytes(), behind, now)
        rows = self._sketch.rows
        allowed = (1 - self.policy.completeness) * rows / self.policy.safety
        left = max(allowed - self._sketch.missed, 0.0)
        self._delta = ceil(self._sketch.quantile(1 - left / rows))

    def held(self) -> int:
        """Bytes of its stored form, about: bounded, whatever arrives."""
        return self._sketch.held()

    def to_record(self) -> dict[str, Any]:
        """All of it, for state."""
        return {
            "rows": self.rows, "least": self.least, "reached": self.reached,
            "heartbeat": self.heartbeat, "shadow": self._shadow, "delta": self._delta,
            "fall": self._fall.to_record(), "sketch": b64encode(self._sketch.to_bytes()).decode(),
        }  # fmt: skip

    def restore(self, record: dict[str, Any]) -> None:
        self.rows, self.least, self.reached = (record[k] for k in ("rows", "least", "reached"))
        self.heartbeat, self._shadow = record["heartbeat"], record["shadow"]
        self._delta = record["delta"]
        self._fall.restore(record["fall"])
        self._sketch.restore(b64decode(record["sketch"]))


class _Fall:
    """Figure 4 for i = j and t = 0, with a page for a tuple: its latest tuple speaks for it.

    Which of a page's tuples was the latest does not merge, so after a rise the window begins with
    the next page and not with the next tuple.
    """

    def __init__(self, policy: Adaptive) -> None:
        self._policy = policy
        self._delta = self._win = 0.0
        self._num = 0  # tuples, or the moment the window began
        self._begun = False

    def after(self, rows: int, late: int, now: int) -> int:
        """δ once this page has been seen."""
        if not self._begun:
            self._begin(now)
        if not self._policy.timed:
            self._num += rows
        if late > self._delta:
            self._delta = late
            self._begin(now)
        else:
            self._win = max(self._win, late)
            passed = now - self._num if self._policy.timed else self._num
            if passed > self._policy.window and self._policy.method == "adaptive":
                alpha = self._policy.alpha
                self._delta = alpha * self._delta + (1 - alpha) * self._win
                self._begin(now)
        return ceil(self._delta)

    def _begin(self, now: int) -> None:
        self._begun = True
        self._win, self._num = 0.0, now if self._policy.timed else 0

    def to_record(self) -> list[Any]:
        return [self._delta, self._win, self._num, self._begun]

    def restore(self, record: list[Any]) -> None:
        self._delta, self._win, self._num, self._begun = record


def _page(late: Ints | bytes | Sequence[bytes]) -> PageSketch:
    if isinstance(late, np.ndarray):
        return PageSketch(sketched(late))
    return PageSketch(late) if isinstance(late, bytes) else PageSketch.merged(late)
