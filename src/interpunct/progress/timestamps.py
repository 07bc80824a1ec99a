"""How a source's tuples are stamped, and when it speaks of time (ETS section 5).

>>> external("ts", bounds=bounds(skew="30s")).bounds.skew
30000000
>>> internal("arrived", ets=periodic("100ms")).ets.every
100000
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from interpunct.model.durations import duration, format_duration
from interpunct.model.errors import FlowError
from interpunct.model.schema import TimeKind
from interpunct.progress.adaptive import Adaptive


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


def bounds(delay: str | timedelta | int = 0, skew: str | timedelta | int = 0) -> Bounds:
    """A bound on disorder: after `delay` of waiting, no tuple is more than `skew` behind."""
    return Bounds(duration(delay, "bounds(delay=…)"), duration(skew, "bounds(skew=…)"))


@dataclass(frozen=True)
class Ets:
    """When a source makes enabling timestamps: `never`, `periodic` or `on-demand`."""

    mode: str = "on-demand"
    every: int = 0

    def __post_init__(self) -> None:
        if self.mode not in ("never", "periodic", "on-demand"):
            raise FlowError(
                "ets", "'never', 'on-demand' or periodic(every)", repr(self.mode), "Choose one."
            )
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

    An external stream without bounds is declared *ordered*: its times never decrease. Bounds are
    given, or learned as the stream runs.
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
                "An order that one absurd tuple breaks is none: give bounds(skew=…).",
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
    future: str | timedelta | int | None = None,
) -> TimeSpec:
    """Stamped by the application, in `attribute`; ordered unless `bounds` say how disordered, or
    that it is to be learned: ``external("ts", bounds=adaptive(completeness=0.999))``.

    A tuple dated more than `future` after the clock flows on but does not move time, so that one
    wrong clock at a source does not make everything else late.
    """
    ahead = None if future is None else duration(future, "external(future=…)")
    return TimeSpec(TimeKind.EXTERNAL, attribute, bounds, _mode(ets), ahead)


def internal(attribute: str, ets: Ets | str = "on-demand") -> TimeSpec:
    """Stamped by the system as tuples enter it, in an attribute of this name that it adds."""
    return TimeSpec(TimeKind.INTERNAL, attribute, None, _mode(ets))


def latent() -> TimeSpec:
    """Not stamped: tuples pass unions as they come, and nothing waits for them."""
    return TimeSpec(TimeKind.LATENT, None, None, Ets("never"))
