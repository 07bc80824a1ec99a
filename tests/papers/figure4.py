"""Heartbeats Figure 4, a tuple at a time, written down as it is printed: what to compare with."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from interpunct.progress.estimation import FALLS, LOOK, STRETCH, TOO_OFTEN


class Figure4:
    """δij[t] for sources 0 … n−1; `window` in tuples, or in microseconds when `timed`."""

    def __init__(
        self, n: int, t_max: int, unit: int, window: int | None, alpha: float, *,
        timed: bool = False, stretch: bool = False,
    ) -> None:  # fmt: skip
        self.n, self.lags, self.unit = n, range(0, t_max + 1, unit), unit
        self.W, self.alpha, self.timed, self.stretch = window, alpha, timed, stretch
        # 1. initialize num = 0, δwin = δ = 0
        self.num: dict[Any, int] = defaultdict(int)
        self.delta_win: dict[Any, float] = defaultdict(float)
        self.delta: dict[Any, float] = defaultdict(float)
        self.widths: dict[Any, int | None] = defaultdict(lambda: window)
        self.seen: list[list[tuple[int, int]]] = [[] for _ in range(n)]  # (unit of arrival, τ)
        self.began: dict[Any, int] = {}
        self.start: int | None = None
        self.exceeded: dict[Any, int] = defaultdict(int)
        self.looked: dict[Any, int] = defaultdict(int)
        self.falls: dict[Any, int] = defaultdict(int)

    def page(self, j: int, ticks: list[int], c: int) -> None:
        """Tuples that arrive together: each is compared with what came before all of them."""
        self.start = c if self.start is None else self.start
        rose: set[Any] = set()
        for tau in ticks:
            self.tuple_arrives(j, tau, c, rose)
        self.seen[j] += [(c // self.unit, tau) for tau in ticks]
        if self.stretch and ticks:
            for i in range(self.n):
                for t in self.lags:
                    self.adapt((i, j, t), rose)

    def tau_max(self, i: int, unit: int) -> int | None:
        return max((tau for at, tau in self.seen[i] if at <= unit), default=None)

    def tuple_arrives(self, j: int, tau: int, c: int, rose: set[Any]) -> None:
        for i in range(self.n):  # 3
            for t in self.lags:  # 4
                at = (i, j, t)
                self.num[at] += 1  # 5
                past = self.tau_max(i, c // self.unit - t // self.unit)
                est = 0 if past is None else max(past - tau + 1, 0)  # 6
                if est > self.delta[at]:  # 7
                    self.delta[at] = est  # 8
                    rose.add(at)
                    self.falls[at] = 0
                    self.reset(at, c)
                else:  # 9
                    self.delta_win[at] = max(self.delta_win[at], est)  # 10, 11
                    if self.full(at, c):  # 12
                        before = self.delta[at]
                        self.delta[at] = (
                            self.alpha * before + (1 - self.alpha) * self.delta_win[at]
                        )  # 13
                        self.falls[at] = self.falls[at] + 1 if self.delta[at] < before else 0
                        self.reset(at, c)  # 14

    def full(self, at: Any, c: int) -> bool:
        width = self.widths[at]
        if width is None:
            return False
        return (c - self.began.get(at, self.start) if self.timed else self.num[at]) > width

    def reset(self, at: Any, c: int) -> None:
        self.delta_win[at], self.num[at], self.began[at] = 0, 0, c

    def adapt(self, at: Any, rose: set[Any]) -> None:
        """The last paragraph of 6.2, with the numbers that this project chose."""
        self.looked[at] += 1
        self.exceeded[at] += at in rose
        often = self.looked[at] >= LOOK and self.exceeded[at] > TOO_OFTEN * LOOK
        if often:
            self.widths[at] = min(2 * self.widths[at], STRETCH * self.W)
        elif self.falls[at] >= FALLS:
            self.widths[at] = max(self.widths[at] // 2, self.W // STRETCH, 1)
            self.falls[at] = 0
        if self.looked[at] >= LOOK:
            self.looked[at] = self.exceeded[at] = 0
