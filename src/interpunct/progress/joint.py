"""Bounds learned for several streams that tell one time, each with its own lateness.

    readings:  ▮▮▮▮▮▮▮▮▮▮   some 2 s behind the greatest time seen on either
    alerts:      ▮     ▮    some 9 s behind it                      →  δ = 9 s for both

One sketch of both would be one of the readings: alerts, a row in ten thousand, could be late to the
last of them within the share that may be late. So δ is the greatest of what each stream needs. A
stream by itself, which most sources are, is the case of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interpunct.progress.adaptive import Adaptive, AdaptiveBound
from interpunct.progress.spread import Spread


class JointBound:
    """The running form of an `Adaptive` policy for streams known by number.

    It promises nothing until one stream has shown enough. From then on a stream of which less is
    known counts with what it has shown, and one never seen not at all: neither stops the others.
    """

    def __init__(self, policy: Adaptive) -> None:
        self.policy = policy
        self.reached: int | None = None  # the greatest timestamp on any stream so far
        self._streams: dict[int, AdaptiveBound] = {}

    @property
    def skew(self) -> int | None:
        """δ, in ticks; None while nothing can be promised yet."""
        bounds = self._streams.values()
        if all(bound.skew is None for bound in bounds):
            return None
        return max(bound.estimate for bound in bounds)

    def observe(self, streams: Mapping[int, Sequence[Spread]], now: int) -> None:
        """What each stream brought at this moment, in parts of any order."""
        for number in sorted(streams):
            if number not in self._streams:
                self._streams[number] = AdaptiveBound(self.policy)
                self._streams[number].reached = self.reached
            self._compare(self._streams[number], sorted(streams[number]), now)
        greatest = [part.greatest for parts in streams.values() for part in parts]
        if self.reached is not None:
            greatest.append(self.reached)
        self.reached = max(greatest, default=None)
        for bound in self._streams.values():
            bound.reached = self.reached

    def _compare(self, bound: AdaptiveBound, parts: Sequence[Spread], now: int) -> None:
        """The parts of one stream against what all streams had come to before this moment."""
        late = [part.lateness(self.reached) for part in parts]
        rows, least = sum(part.rows for part in parts), min(part.least for part in parts)
        bound.observe(rows, least, parts[-1].greatest, late, now)

    def held(self) -> int:
        """Bytes of its stored form, about: bounded for each stream, whatever arrives."""
        return sum(bound.held() for bound in self._streams.values())

    def to_record(self) -> dict[str, Any]:
        """All of it, for state."""
        streams = {str(number): bound.to_record() for number, bound in self._streams.items()}
        return {"reached": self.reached, "streams": streams}

    def restore(self, record: dict[str, Any]) -> None:
        self.reached, self._streams = record["reached"], {}
        for number, stored in record["streams"].items():
            self._streams[int(number)] = bound = AdaptiveBound(self.policy)
            bound.restore(stored)
