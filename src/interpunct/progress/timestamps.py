"""How a source's tuples are stamped, and when it speaks of time (ETS section 5).

>>> external("ts", bounds=bounds(skew="30s")).bounds.skew
30000000
>>> print(external("ts"))
external ts, bounds adaptive (confidence 99.9 %, window 20000 tuples), ETS on-demand
>>> print(external("ts", ordered=True))
external ts, ordered, ETS on-demand
>>> internal("arrived", ets=periodic("100ms")).ets.every
100000
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from interpunct.model.durations import duration, format_duration
from interpunct.model.errors import FlowError
from interpunct.model.schema import TimeKind
from interpunct.progress.adaptive import Adaptive, adaptive

UNSAID = adaptive(completeness=0.999)  # the bounds of a source of which nothing is said


@dataclass(frozen=True)
class Bounds:
    """A skew bound (t, δ) of a stream against itself (Heartbeats section 2, out-of-order bound).

    Once a tuple stamped τ has arrived, every tuple arriving more than `delay` later is stamped
    above τ − `skew`. Both are ticks; for an integer time domain `skew` counts in its own units.
    """

    delay: int = 0
    skew: int = 0

    def __str__(self) -> str:
        return f"(t={format_duration(self.delay)}, δ={format_duration(self.skew)})"


def bounds(
    *unnamed: object,
    delay: str | timedelta | int | None = None,
    skew: str | timedelta | int | None = None,
) -> Bounds:
    """A bound on disorder: after `delay` of waiting, no tuple is more than `skew` behind."""
    if unnamed or (delay is None and skew is None):
        got = ", ".join(map(repr, unnamed))
        raise FlowError(
            "bounds", "skew=…, delay=… or both", f"{got} without a name" if got else "neither",
            "bounds(skew='30s'); of a stream that is in order, external('ts', ordered=True).",
        )  # fmt: skip
    delay, skew = 0 if delay is None else delay, 0 if skew is None else skew
    return Bounds(duration(delay, "bounds(delay=…)"), duration(skew, "bounds(skew=…)"))


@dataclass(frozen=True)
class Ets:
    """When a source makes enabling timestamps: `never`, `periodic` or `on-demand`; or `proven`: on
    demand too, but for an external source silence counts only as far as it is known that there was
    nothing to read."""

    mode: str = "on-demand"
    every: int = 0

    def __post_init__(self) -> None:
        if self.mode not in ("never", "periodic", "on-demand", "proven"):
            raise FlowError(
                "ets", "'never', 'on-demand', 'proven' or periodic(every)", repr(self.mode),
                "Choose one.",
            )  # fmt: skip
        if (self.mode == "periodic") != (self.every > 0):
            raise FlowError(
                "ets", "an interval above zero with periodic, and only there",
                f"{self.mode} every {self.every}", "Write periodic('100ms').",
            )  # fmt: skip

    def __str__(self) -> str:
        return f"every {format_duration(self.every)}" if self.every else self.mode


def periodic(every: str | timedelta | int) -> Ets:
    """A heartbeat each `every`, asked for or not (case B of ETS section 6)."""
    return Ets("periodic", duration(every, "periodic(every)"))


@dataclass(frozen=True)
class TimeSpec:
    """The time of a source: its kind, the attribute that carries it, its bounds, its ETS mode.

    Bounds are given, or learned as the stream runs. An external stream with none is declared
    *ordered*: its times never decrease.
    """

    kind: TimeKind
    attribute: str | None
    bounds: Bounds | Adaptive | None = None
    ets: Ets = field(default_factory=Ets)
    future: int | None = None  # how far after the clock a tuple may be dated and still move time

    def __post_init__(self) -> None:
        if self.future is not None and self.ordered:
            raise FlowError(
                f"external({self.attribute!r})", "bounds=… where future=… is given",
                "a stream declared ordered",
                "An order that one absurd tuple breaks is none: give bounds, or leave ordered out.",
            )  # fmt: skip

    def believable(self, now: int) -> int | None:
        """The greatest timestamp that moves time at this moment of the clock; None for any."""
        return None if self.future is None else now + self.future

    @property
    def ordered(self) -> bool:
        if self.kind is TimeKind.INTERNAL:
            return True
        return self.kind is TimeKind.EXTERNAL and self.bounds is None

    def __str__(self) -> str:
        if self.kind is TimeKind.LATENT:
            return "latent"
        disorder = "ordered" if self.bounds is None else f"bounds {self.bounds}"
        ahead = "" if self.future is None else f", future {format_duration(self.future)}"
        return f"{self.kind.value} {self.attribute}, {disorder}, ETS {self.ets}{ahead}"


def _mode(ets: Ets | str) -> Ets:
    return Ets(ets) if isinstance(ets, str) else ets


def external(
    attribute: str,
    bounds: Bounds | Adaptive | None = None,
    ets: Ets | str = "on-demand",
    *,
    ordered: bool = False,
    future: str | timedelta | int | None = None,
) -> TimeSpec:
    """Stamped by the application, in `attribute`.

    `bounds` say how disordered the stream is, `ordered` that it is not; where neither is said, it
    is learned: ``adaptive(completeness=0.999)``. Until about a thousand tuples have
    come, and a stretch of time two and a half times as long as the latest of them were late, it
    promises nothing, and who waits for it waits; after that one tuple in a thousand may be late.

    A tuple dated more than `future` after the clock flows on but does not move time, so that one
    wrong clock at a source does not make everything else late.
    """
    if ordered and bounds is not None:
        raise FlowError(
            f"external({attribute!r})", "bounds=… or ordered=True", "both",
            "Bounds say how disordered a stream is: keep the one that is true.",
        )  # fmt: skip
    if not isinstance(bounds, Bounds | Adaptive | None):
        raise FlowError(
            f"external({attribute!r})", "bounds=ip.bounds(skew=…) or ip.adaptive(…)", repr(bounds),
            f"Write bounds=ip.bounds(skew={bounds!r}): no tuple is further behind.",
        )  # fmt: skip
    ahead = None if future is None else duration(future, "external(future=…)")
    disorder = None if ordered else bounds or UNSAID
    return TimeSpec(TimeKind.EXTERNAL, attribute, disorder, _mode(ets), ahead)


def internal(attribute: str, ets: Ets | str = "on-demand") -> TimeSpec:
    """Stamped by the system as tuples enter it, in an attribute of this name that it adds."""
    return TimeSpec(TimeKind.INTERNAL, attribute, None, _mode(ets))


def latent() -> TimeSpec:
    """Not stamped: tuples pass unions as they come, and nothing waits for them."""
    return TimeSpec(TimeKind.LATENT, None, None, Ets("never"))
