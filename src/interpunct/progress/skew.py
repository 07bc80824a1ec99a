"""What the tuples of one source say of the tuples of another: skew bounds (Heartbeats section 2).

    φi emits τ at c ──▶ every tuple that φj emits after c + t is stamped above τ − δ

A pair (t, δ) is a time-based bound; (n, δ) waits for n tuples of φj instead of for time; an entry
of the matrix may hold several, and none where nothing is known (section 3.1). The diagonal says how
disordered a source is against itself. Latency is how long a tuple travels at most.

>>> b = SkewBounds(["a", "b"], {
...     ("a", "a"): Bounds(0, 0), ("a", "b"): [Bounds(0, 5), Bounds(1_000, 2)],
...     ("b", "b"): [Bounds(0, 1), TupleBounds(3, 0)]}, latency={"b": "2ms"})
>>> print(b)
  | a            | b                            | latency
a | (t=0s, δ=0s) | (t=0s, δ=5us) (t=1ms, δ=2us) | 0s
b | -            | (t=0s, δ=1us) (n=3, δ=0s)    | 2ms
>>> bool(needs_timeout(b))  # printed, it says why
True
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from interpunct.model.durations import duration, format_duration
from interpunct.model.errors import FlowError
from interpunct.model.schema import END_OF_TIME
from interpunct.progress.timestamps import Bounds

Ticks = npt.NDArray[np.int64]
Latency = Mapping[str, str | timedelta | int] | str | timedelta | int


@dataclass(frozen=True)
class TupleBounds:
    """A skew bound (n, δ): after `count` more tuples of φj, its tuples are above τ − `skew`."""

    count: int
    skew: int = 0

    def __str__(self) -> str:
        return f"(n={self.count}, δ={format_duration(self.skew)})"


Pair = Bounds | TupleBounds


class Layer(NamedTuple):
    """One time-based pair of every entry, as matrices; where there is none, `known` is false."""

    delay: Ticks
    skew: Ticks
    known: npt.NDArray[np.bool_]


class Counted(NamedTuple):
    """A tuple-based pair and where in the matrix it stands."""

    source: int
    target: int
    bound: TupleBounds


class Lead(NamedTuple):
    """A source that can stay ahead of another for good: by this much, or without limit (None)."""

    source: str
    target: str
    skew: int | None


class BoundsMatrix(ABC):
    """The skew bounds and latencies of named sources, however they are kept.

    Section 5.1: entries are often computed from a value per source. A matrix so computed keeps
    those and makes entries when they are asked for.
    """

    def __init__(self, names: Iterable[str], latency: Latency, where: str) -> None:
        self.names = tuple(names)
        self.where = where
        self.index = {name: number for number, name in enumerate(self.names)}
        if not self.names or len(self.index) != len(self.names):
            raise FlowError(
                where, "at least one source, each with a name of its own", repr(self.names[:10]),
                "Name every source once.",
            )  # fmt: skip
        self.latencies = self._latencies(latency)

    def _latencies(self, latency: Latency) -> Ticks:
        where = f"{self.where} latency"
        if not isinstance(latency, Mapping):
            return np.full(len(self.names), duration(latency, where), np.int64)
        found = np.zeros(len(self.names), np.int64)
        for name, value in latency.items():
            found[self.position(name, where)] = duration(value, f"{where} of {name!r}")
        return found

    def position(self, name: str, where: str | None = None) -> int:
        """Which row and column a source is."""
        if name not in self.index:
            known = ", ".join(self.names[:10]) + (", …" if len(self.names) > 10 else "")
            raise FlowError(
                where or self.where, f"one of the sources {known}", repr(name),
                "Check the spelling, or add the source.",
            )  # fmt: skip
        return self.index[name]

    def entry(self, source: str, target: str) -> tuple[Pair, ...]:
        """Bij: what tuples of `source` say of tuples of `target`; empty when nothing is known."""
        return self.pairs(self.position(source), self.position(target))

    @abstractmethod
    def pairs(self, i: int, j: int) -> tuple[Pair, ...]:
        """Bij by position: time-based by rising delay, then tuple-based by rising count."""

    @abstractmethod
    def layers(self) -> list[Layer]:
        """The time-based pairs as matrices, as many as the fullest entry has (the paper's k)."""

    @abstractmethod
    def tuple_rules(self) -> Iterator[Counted]:
        """The tuple-based pairs."""

    @property
    @abstractmethod
    def t_max(self) -> int:
        """The longest delay of any time-based pair."""

    @abstractmethod
    def lead(self) -> Lead | None:
        """The first pair of sources of which one may lead for good (Theorem 3.3), if any."""

    @property
    def l_max(self) -> int:
        """The longest latency of any source."""
        return int(self.latencies.max())

    def __str__(self) -> str:
        """The matrix as text, of its first eight sources."""
        shown = range(min(len(self.names), 8))
        head = ["", *(self.names[j] for j in shown), "latency"]
        rows = [
            [
                self.names[i],
                *(" ".join(map(str, self.pairs(i, j))) or "-" for j in shown),
                format_duration(int(self.latencies[i])),
            ]
            for i in shown
        ]
        text = _table([head, *rows])
        left = len(self.names) - len(shown)
        return f"{text}\n… and {left:,} more sources" if left else text


def _table(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        " | ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


class SkewBounds(BoundsMatrix):
    """A matrix given entry by entry; an entry that is not given is empty."""

    def __init__(
        self,
        names: Iterable[str],
        entries: Mapping[tuple[str, str], Pair | Iterable[Pair]],
        latency: Latency = 0,
    ) -> None:
        super().__init__(names, latency, "SkewBounds")
        self._entries: dict[tuple[int, int], tuple[Pair, ...]] = {}
        for (source, target), given in entries.items():
            where = f"SkewBounds entry ({source!r}, {target!r})"
            key = self.position(source, where), self.position(target, where)
            pairs = (given,) if isinstance(given, Bounds | TupleBounds) else tuple(given)
            self._entries[key] = strongest(pairs, where)

    def pairs(self, i: int, j: int) -> tuple[Pair, ...]:
        return self._entries.get((i, j), ())

    def _timed(self) -> dict[tuple[int, int], list[Bounds]]:
        return {
            key: [pair for pair in pairs if isinstance(pair, Bounds)]
            for key, pairs in self._entries.items()
        }

    def layers(self) -> list[Layer]:
        timed, n = self._timed(), len(self.names)
        layers = []
        for k in range(max(map(len, timed.values()), default=0)):
            nothing = np.zeros((n, n), np.int64)
            layer = Layer(nothing, nothing.copy(), np.zeros((n, n), np.bool_))
            for key, pairs in timed.items():
                if k < len(pairs):
                    layer.delay[key], layer.skew[key] = pairs[k].delay, pairs[k].skew
                    layer.known[key] = True
            layers.append(layer)
        return layers

    def tuple_rules(self) -> Iterator[Counted]:
        for (i, j), pairs in self._entries.items():
            yield from (Counted(i, j, pair) for pair in pairs if isinstance(pair, TupleBounds))

    @property
    def t_max(self) -> int:
        return max((p.delay for pairs in self._timed().values() for p in pairs), default=0)

    def lead(self) -> Lead | None:
        timed = self._timed()
        for i, source in enumerate(self.names):
            for j, target in enumerate(self.names):
                pairs = timed.get((i, j))
                least = pairs[-1].skew if pairs else None
                if least != 0:
                    return Lead(source, target, least)
        return None


def strongest(pairs: Sequence[Pair], where: str) -> tuple[Pair, ...]:
    """The pairs that say something the others do not, in order; bad ones are refused.

    A pair that waits longer for no smaller skew adds nothing. Waiting for no tuples is waiting for
    no time, and says as much as any tuple-based pair with no smaller skew.
    """
    timed, counted = [], []
    for pair in pairs:
        _refuse_negative(pair, where)
        if isinstance(pair, Bounds):
            timed.append((pair.delay, pair.skew))
        elif pair.count == 0:
            timed.append((0, pair.skew))
        else:
            counted.append((pair.count, pair.skew))
    front = _falling(timed)
    at_once = [pair for pair in front if pair[0] == 0]
    return (
        *(Bounds(*pair) for pair in front),
        *(TupleBounds(*pair) for pair in _falling(at_once + counted) if pair[0] > 0),
    )


def _falling(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of (wait, skew) pairs, those in which a longer wait buys a smaller skew."""
    front: list[tuple[int, int]] = []
    for pair in sorted(pairs):
        if not front or pair[1] < front[-1][1]:
            front.append(pair)
    return front


def _refuse_negative(pair: Pair, where: str) -> None:
    wait = pair.delay if isinstance(pair, Bounds) else pair.count
    if not (0 <= wait < END_OF_TIME and 0 <= pair.skew < END_OF_TIME):
        raise FlowError(
            where, "a delay or count, and a skew, of at least 0", f"({wait}, {pair.skew})",
            "A source that is surely ahead has skew 0; leave the entry out if nothing is known.",
        )  # fmt: skip


@dataclass(frozen=True)
class TimeoutNeed:
    """Whether progress needs a timeout when every stream pauses (Theorem 3.3); true if it does."""

    lead: Lead | None

    def __bool__(self) -> bool:
        return self.lead is not None

    def __str__(self) -> str:
        if self.lead is None:
            return "No timeout is needed: once every stream pauses, all they sent is released."
        source, target, skew = self.lead
        if skew is None:
            cause = f"nothing bounds how far {source!r} leads {target!r}"
        else:
            who = "its own later tuples" if source == target else repr(target)
            cause = f"{source!r} may lead {who} by {format_duration(skew)} for good"
        return (
            f"A timeout is needed: {cause}, so when every stream pauses, tuples of {source!r} wait "
            f"until one resumes. Give timeout=…, or a bound of {source, target} with skew 0."
        )


def needs_timeout(bounds: BoundsMatrix) -> TimeoutNeed:
    """Theorem 3.3: a timeout is not needed iff every entry has a pair with δ = 0.

    Only time-based pairs count. The tuples that a tuple-based one waits for do not come while all
    streams pause, which is when a timeout would be needed.
    """
    return TimeoutNeed(bounds.lead())


@dataclass(frozen=True)
class Skew:
    """The bounds between a flow's sources, and how long a silence of all of them may last before
    what has come is taken for all there is (the timeout of section 3.3, in microseconds)."""

    bounds: BoundsMatrix
    timeout: int | None = None

    def own(self, source: str) -> Bounds | None:
        """What the matrix says of a source against itself without waiting for others' tuples."""
        if source not in self.bounds.index:
            return None
        timed = (p for p in self.bounds.entry(source, source) if isinstance(p, Bounds))
        return next(timed, None)

    def check(self, flow: str, sources: Collection[str]) -> None:
        """An error unless the flow has every source of the matrix, with an external time."""
        unknown = [name for name in self.bounds.names if name not in sources]
        if unknown:
            raise FlowError(
                f"flow {flow!r}, skew=…",
                f"bounds between sources with external time: {', '.join(sources) or 'none'}",
                ", ".join(unknown), "Use the names of the flow's sources.",
            )  # fmt: skip

    def __str__(self) -> str:
        limit = "" if self.timeout is None else f"\ntimeout {format_duration(self.timeout)}"
        return f"{self.bounds}{limit}"
