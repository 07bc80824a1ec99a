"""What one source knows of its own time: the rules that turn arrivals and waiting into heartbeats.

A heartbeat τ given by a source promises that everything it sends later is stamped above τ. It
starts before all time, never falls, and ends at the end of time when the source has finished.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interpunct.model.schema import END_OF_TIME, START_OF_TIME, TimeKind
from interpunct.progress.adaptive import Adaptive
from interpunct.progress.joint import JointBound
from interpunct.progress.spread import Spread
from interpunct.progress.timestamps import Bounds, TimeSpec


@dataclass(frozen=True)
class NotBefore:
    """A source's answer to a demand it cannot meet yet: ask again at this moment of the clock."""

    moment: int


class SourceTime:
    """The time register of one source, in ticks and in microseconds of the clock."""

    def __init__(self, spec: TimeSpec, *, clocked: bool = True) -> None:
        self.spec = spec
        # An integer time domain (sequence numbers) has no relation to the clock.
        self.clocked = clocked
        self.given = START_OF_TIME  # the greatest heartbeat given so far
        self.greatest = START_OF_TIME  # the greatest timestamp seen
        self.arrived: int | None = None  # when the last tuple arrived
        self.last_tick = START_OF_TIME  # when a periodic source last spoke
        self.proven: int | None = None  # when it was last known to have nothing unread
        self.unread: int | None = None  # when it was last known to have something unread
        self.promises: deque[tuple[int, int]] = deque()  # (moment, heartbeat), both rising
        policy = spec.bounds
        self.learned = JointBound(policy) if isinstance(policy, Adaptive) else None

    @property
    def finished(self) -> bool:
        return self.given >= END_OF_TIME

    @property
    def bounds(self) -> Bounds | None:
        """The bounds as they stand: as given, or as learned so far; None while there are none."""
        if self.learned is not None:
            skew = self.learned.skew
            return None if skew is None else Bounds(0, skew)
        bounds = self.spec.bounds
        return bounds if isinstance(bounds, Bounds) else None

    def stamp(self, now: int) -> int:
        """The internal timestamp of a tuple entering now: never at or below a heartbeat given."""
        return max(now, self.given + 1, self.greatest)

    def observe(self, greatest: int, now: int) -> None:
        """A page whose greatest timestamp is this has arrived."""
        self.greatest = max(self.greatest, greatest)
        self.arrived = now
        bounds = self.bounds
        if bounds is not None:
            self._promise(self._matures(now, bounds), self.greatest - bounds.skew)

    def prove(self, moment: int) -> None:
        """At this moment of the clock all that the source had was read."""
        self.proven = moment if self.proven is None else max(self.proven, moment)

    def block(self, moment: int) -> None:
        """At this moment of the clock the source had something that was not read."""
        self.unread = moment if self.unread is None else max(self.unread, moment)

    @property
    def idle(self) -> bool:
        """Whether its silence since the last tuple is proven to be that it has nothing to say."""
        return self.arrived is not None and self.proven is not None and self.proven > self.arrived

    @property
    def blocked(self) -> bool:
        """Whether its silence is known to be something else: nothing newer says otherwise."""
        newest = max((m for m in (self.arrived, self.proven) if m is not None), default=None)
        return self.unread is not None and (newest is None or self.unread > newest)

    def learn(self, streams: Mapping[int, Sequence[Spread]], now: int) -> None:
        """What a page or a batch shows of how late tuples are, the late ones included, by the
        streams that tell this source's time, of which most have one; all arrive at one moment,
        before `observe` is told of those that are in time."""
        assert self.learned is not None
        self.learned.observe(streams, now)

    @staticmethod
    def _matures(arrived: int, bounds: Bounds) -> int:
        """When a bound holds of what comes: a tuple exactly `delay` later is still in time."""
        return arrived + bounds.delay + 1 if bounds.delay else arrived

    def _promise(self, moment: int, heartbeat: int) -> None:
        """Keep only promises that say more the later they mature: at most one per arrival page."""
        if heartbeat <= self.given:
            return
        if self.promises and self.promises[-1][1] >= heartbeat:
            return
        if self.promises and self.promises[-1][0] == moment:
            self.promises.pop()
        self.promises.append((moment, heartbeat))

    def mature(self, now: int) -> int | None:
        """The heartbeat that the bounds promise by now, if it says anything new."""
        heartbeat = START_OF_TIME
        while self.promises and self.promises[0][0] <= now:
            heartbeat = self.promises.popleft()[1]
        return self.give(heartbeat)

    def give(self, heartbeat: int) -> int | None:
        """Record a heartbeat and return it, or None when it says nothing new."""
        if heartbeat <= self.given:
            return None
        self.given = heartbeat
        return heartbeat

    def demand(self, wanted: int, now: int) -> int | NotBefore | None:
        """An enabling timestamp, when one could be had, or None when nothing is known.

        Internal: the clock. External: t + τ − δ, where the last tuple was stamped t and arrived
        τ ago (ETS section 5), for sources whose bounds give δ. Ordered: whatever is before t, which
        helps when the tuple itself was filtered out on its way to the one who asks.
        """
        if self.spec.ets.mode not in ("on-demand", "proven") or self.given >= wanted:
            return None
        if self.spec.kind is TimeKind.INTERNAL:
            return NotBefore(wanted) if wanted > now else now
        if self.spec.ordered:
            return self.greatest - 1 if self.greatest > wanted else None
        bounds = self.bounds
        if bounds is None:
            return None  # still being learned
        if self.arrived is None or not self.clocked:
            return NotBefore(self.promises[0][0]) if self.promises else None
        if self.blocked:
            return None
        if self.spec.ets.mode == "proven":
            return self._proven(wanted, bounds)
        reached = self.greatest + (now - self.arrived) - bounds.skew
        matured = self._matures(self.arrived, bounds)
        if now < matured:
            return NotBefore(matured)
        return NotBefore(now + wanted - reached) if wanted > reached else reached

    def _proven(self, wanted: int, bounds: Bounds) -> int | None:
        """As by the clock, had it stopped when the source was last known to be caught up."""
        if self.arrived is None or self.proven is None or not self.idle:
            return None
        reached = self.greatest + (self.proven - self.arrived) - bounds.skew
        matured = self.proven >= self._matures(self.arrived, bounds)
        return reached if matured and reached >= wanted else None

    def provable_at(self, wanted: int) -> int | None:
        """The moment at which the source would have to be caught up for `wanted` to be proven; None
        where that would prove nothing."""
        bounds = self.bounds
        waits = self.spec.ets.mode == "proven" or (
            self.spec.ets.mode == "on-demand" and self.blocked
        )
        if not waits or bounds is None or self.arrived is None:
            return None
        if not self.clocked or self.given >= wanted:
            return None
        moment = self.arrived + wanted - self.greatest + bounds.skew
        return max(moment, self._matures(self.arrived, bounds))

    def next_moment(self) -> int | None:
        """When this source has something to say by itself: a promise maturing, a period ending."""
        moments = [self.promises[0][0]] if self.promises else []
        if self.spec.ets.mode == "periodic" and not self.finished:
            moments.append(self.last_tick + self.spec.ets.every)
        return min(moments, default=None)

    def speak(self, now: int) -> int | None:
        """The heartbeat due at this moment, if any, for promises and for periodic sources."""
        matured = self.mature(now)
        if self.spec.ets.mode != "periodic" or now < self.last_tick + self.spec.ets.every:
            return matured
        self.last_tick = now - now % self.spec.ets.every
        if self.spec.kind is TimeKind.INTERNAL:
            return self.give(now) or matured
        bounds = self.bounds
        if bounds is None or self.arrived is None or not self.clocked or self.blocked:
            return matured
        return self.give(self.greatest + (now - self.arrived) - bounds.skew) or matured

    def to_record(self) -> dict[str, object]:
        """All of it, for state."""
        record: dict[str, object] = {
            "given": self.given, "greatest": self.greatest, "arrived": self.arrived,
            "last_tick": self.last_tick, "promises": [list(p) for p in self.promises],
            "proven": self.proven, "unread": self.unread, "bounds": repr(self.spec.bounds),
        }  # fmt: skip
        if self.learned is not None:
            record["learned"] = self.learned.to_record()
        return record

    def restore(self, record: dict[str, object]) -> None:
        self.given = int(record["given"])  # type: ignore[call-overload]
        self.greatest = int(record["greatest"])  # type: ignore[call-overload]
        arrived = record["arrived"]
        self.arrived = None if arrived is None else int(arrived)  # type: ignore[call-overload]
        self.last_tick = int(record["last_tick"])  # type: ignore[call-overload]
        self.proven, self.unread = record["proven"], record["unread"]  # type: ignore[assignment]
        if record["bounds"] == repr(self.spec.bounds):
            self.promises = deque((m, h) for m, h in record["promises"])  # type: ignore[attr-defined]
            if self.learned is not None:
                self.learned.restore(record["learned"])  # type: ignore[arg-type]
        elif self.bounds is not None and self.arrived is not None:
            # Other bounds than it was stored with: heartbeats given stand, the next follow these.
            moment = self._matures(self.arrived, self.bounds)
            self._promise(moment, self.greatest - self.bounds.skew)
