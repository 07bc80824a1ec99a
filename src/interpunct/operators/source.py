"""Source: where tuples enter, are stamped or checked, and where time is asked for.

A source keeps its own word. What it has promised with a heartbeat or a punctuation it enforces,
so every stream behind it can be believed; tuples that break a promise leave by the late output
with their reason. Reached by backtracking while empty, it makes an enabling timestamp on demand
(ETS section 5), or says before which moment there is no use in asking again.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import polars as pl

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.feedback import Feedback
from interpunct.model.late import Reason, late_rows, late_schema
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME, Attribute, Schema, TimeKind
from interpunct.operators.contract import Emission, Held, Operator, Stream
from interpunct.operators.promises import MOST_PROMISES
from interpunct.operators.responses import Response, at_output
from interpunct.operators.state import Record, State
from interpunct.progress.clock import Clock
from interpunct.progress.source_time import NotBefore, SourceTime
from interpunct.progress.spread import Spread
from interpunct.progress.timestamps import TimeSpec

_STAMP = pl.Datetime("us", "UTC")  # the type of an internal timestamp


class SourceOperator(Operator):
    """An operator without inputs in the graph: it speaks when data, time or a demand reaches it."""

    def _wishes(self, feedback: Feedback) -> list[tuple[int, Feedback]]:
        """Nobody is upstream of a source."""
        del feedback
        return []

    @abstractmethod
    def wake_at(self) -> int | None:
        """The moment at which it has something to say by itself."""

    @abstractmethod
    def on_wake(self) -> Emission:
        """That moment has come."""

    def on_demand(self, wanted: int) -> Emission | NotBefore:
        """Someone downstream waits for the heartbeat `wanted`; an empty answer means "no idea"."""
        del wanted
        return Emission()

    def finish(self) -> Emission:
        """Nothing more will come: the end of time."""
        if self.output.time is None:
            return Emission()
        return self.heartbeat(END_OF_TIME)


def source_schema(raw: Schema, spec: TimeSpec) -> Schema:
    """The schema of the stream a source makes of its raw tuples."""
    if spec.kind is TimeKind.INTERNAL:
        assert spec.attribute is not None
        stamp = Attribute(spec.attribute, "timestamp", _STAMP)
        return Schema((*raw.attributes, stamp), time=spec.attribute, kind=spec.kind)
    return raw.with_time(spec.attribute, spec.kind)


@dataclass
class Sorted:
    """A page taken apart: what may go on, and what goes to the late output."""

    frame: pl.DataFrame
    late: list[pl.DataFrame]


class Source(SourceOperator):
    """Output 0 is the stream, output 1 its late output."""

    def __init__(
        self, name: str, raw: Schema, spec: TimeSpec, clock: Clock, state: State | None = None
    ) -> None:
        schema = source_schema(raw, spec)
        properties = Properties(ordered=spec.ordered)
        outputs = [Stream(schema, properties), Stream(late_schema(schema))]
        super().__init__(name, [Stream(raw)], outputs, AttributeMap.identity(raw), state)
        self._clock = clock
        clocked = schema.time is None or not schema[schema.time].dtype.is_integer()
        self.time = SourceTime(spec, clocked=clocked)
        initial = {"time": self.time.to_record(), "own": []}
        self._record = Record(self.state, "source", initial)
        self.time.restore(self._record["time"])
        self._own = [Pattern.parse(t, schema) for t in self._record["own"]]

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        now = self._clock.now()
        kind = self.time.spec.kind
        before = self.time.mature(now) if self.time.promises else None
        emission = self._speak(before)  # what was promised before these came
        stamp = self.time.stamp(now)
        if kind is TimeKind.LATENT:
            sound = Sorted(page.frame, [])
        elif kind is TimeKind.INTERNAL:
            sound = Sorted(self._stamped(page.frame, stamp), [])
        else:
            sound = self._checked(page.frame)
            if self.time.learned is not None:
                self._learn(page.frame, now)
        self._enforce_own(sound)
        shared = stamp if kind is TimeKind.INTERNAL else None
        emission.extend(self.tuples(sound.frame, stamp=shared))
        for late in sound.late:
            emission.extend(self.tuples(late, port=1))
        if kind is not TimeKind.LATENT and sound.frame.height:
            greatest = self._greatest(sound.frame, now) if shared is None else shared
            self.time.observe(greatest, now)
            if self.time.promises:
                emission.extend(self._speak(self.time.mature(now)))
        return emission

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        """The feed's own promise: believed, passed on, and enforced from now on."""
        del port
        promised = Punctuation(Pattern(self.output, dict(punctuation.pattern.conditions)))
        heartbeat = promised.heartbeat_ticks
        if heartbeat is not None:
            return self._speak(self.time.give(heartbeat))
        if not any(promised.pattern.implies(p) for p in self._own):
            kept = [p for p in self._own if not p.implies(promised.pattern)]
            if len(kept) >= MOST_PROMISES:
                return Emission()  # what nobody downstream hears need not be enforced
            self._own = [*kept, promised.pattern]
        return Emission([(0, Page(self.output, self.output.empty(), (promised,)))])

    def told(self, heartbeat: int) -> Emission:
        """Others have told how far this source's time has come."""
        return self._speak(self.time.give(heartbeat))

    def span(self, frame: pl.DataFrame) -> tuple[int, int, int] | None:
        """How many tuples have a time to be believed, the least and the greatest of these."""
        ticks = self._sensible(frame, self._clock.now())
        if not ticks.len():
            return None
        return ticks.len(), int(ticks.min()), int(ticks.max())  # type: ignore[arg-type]

    def _sensible(self, frame: pl.DataFrame, now: int) -> pl.Series:
        """The times that are neither missing nor absurd."""
        ticks = self.output.ticks(frame)
        return self._believed(ticks.filter(ticks.is_between(*self.output.time_range)), now)

    def wake_at(self) -> int | None:
        return self.time.next_moment()

    def on_wake(self) -> Emission:
        return self._speak(self.time.speak(self._clock.now()))

    def on_demand(self, wanted: int) -> Emission | NotBefore:
        answer = self.time.demand(wanted, self._clock.now())
        if isinstance(answer, NotBefore):
            return answer
        return Emission() if answer is None else self._speak(self.time.give(answer))

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """Here the stream begins: what is assumed away is not let out, and whoever reads for the
        source asks `assumed` and need not read it."""
        return at_output("¬[…]", pattern, port)

    def assumed(self) -> list[Pattern]:
        """What nobody behind this source wants."""
        return [g.pattern for g in self.guards.outputs[0].guards] if self._guarded else []

    def finish(self) -> Emission:
        self.time.give(END_OF_TIME)
        return super().finish()

    def _held(self) -> Held:
        return Held(punctuations=len(self._own) + len(self.time.promises))

    def _save(self) -> None:
        self._record["time"] = self.time.to_record()
        self._record["own"] = [p.by_name() for p in self._own]
        self._record.save()

    def _speak(self, heartbeat: int | None) -> Emission:
        return Emission() if heartbeat is None else self.heartbeat(heartbeat)

    def _stamped(self, frame: pl.DataFrame, stamp: int) -> pl.DataFrame:
        """With the stamp as last column; made without a query plan, which for a page of one tuple
        would cost more than everything else."""
        ticks = pl.int_range(stamp, stamp + 1, eager=True)
        column = ticks.alias(self.output.ordered_by).cast(_STAMP)
        if frame.height > 1:
            column = column.new_from_index(0, frame.height)
        return frame.hstack([column])

    def _greatest(self, frame: pl.DataFrame, now: int) -> int:
        """The greatest timestamp that can be believed, or what it was before."""
        ticks = self._believed(self.output.ticks(frame), now)
        return int(ticks.max()) if ticks.len() else self.time.greatest  # type: ignore[arg-type]

    def _believed(self, ticks: pl.Series, now: int) -> pl.Series:
        """The timestamps that may move time: not those absurdly in the future."""
        limit = self.time.spec.believable(now)
        return ticks if limit is None else ticks.filter(ticks <= limit)

    def _learn(self, frame: pl.DataFrame, now: int) -> None:
        """From every tuple whose time makes sense, the late ones before all."""
        ticks = self._sensible(frame, now)
        if ticks.len():
            self.time.learn({0: [Spread.of(ticks.to_numpy())]}, now)

    def _checked(self, frame: pl.DataFrame) -> Sorted:
        """External tuples without those whose time is missing, absurd, late or out of order."""
        ticks = self.output.ticks(frame)
        if self._plainly_sound(ticks):
            return Sorted(frame, [])
        sound = Sorted(frame, [])
        self._reject(sound, ticks.is_null(), Reason.NULL_TIME)
        ticks = self.output.ticks(sound.frame)
        self._reject(sound, ~ticks.is_between(*self.output.time_range), Reason.ABSURD_TIME)
        if self.time.spec.ordered:
            reached = self._reached(sound.frame)
            disordered = self.output.ticks(sound.frame) < reached
            self._reject(sound, disordered, Reason.DISORDER, reached)
        limit = self._limit(sound.frame)
        self._reject(sound, self.output.ticks(sound.frame) <= limit, Reason.LATE, limit)
        return sound

    def _plainly_sound(self, ticks: pl.Series) -> bool:
        """The common case, decided by two comparisons: sorted, and all of it new."""
        if ticks.null_count() or not ticks.is_sorted():
            return False
        first, last = int(ticks[0]), int(ticks[-1])
        since = max(self.time.given, self.time.greatest - 1)
        low, high = self.output.time_range
        return first > since and first >= low and last <= high

    def _limit(self, frame: pl.DataFrame) -> pl.Series:
        """The heartbeat that each tuple must be above.

        With no delay in the bound each tuple promises at once for those after it, also within
        its page, so that the way tuples are cut into pages makes no difference. What is learned
        is learned by the page.
        """
        bounds = self.time.bounds
        if bounds is None or bounds.delay or self.time.learned is not None:
            return pl.repeat(self.time.given, frame.height, dtype=pl.Int64, eager=True)
        return (self._reached(frame) - bounds.skew).clip(lower_bound=self.time.given)

    def _reached(self, frame: pl.DataFrame) -> pl.Series:
        """The greatest timestamp before each tuple, not counting tuples that come too late or are
        dated absurdly in the future."""
        ticks = self.output.ticks(frame)
        late = ticks <= self.time.given
        for pattern in self._own:
            late |= pattern.mask(frame)
        limit = self.time.spec.believable(self._clock.now())
        if limit is not None:
            late |= ticks > limit
        ticks = ticks.set(late, self.time.greatest)
        before = ticks.cum_max().shift(1).fill_null(self.time.greatest)
        return before.clip(lower_bound=self.time.greatest)

    def _enforce_own(self, sound: Sorted) -> None:
        for pattern in self._own:
            self._reject(sound, pattern.mask(sound.frame), Reason.PUNCTUATED)

    def _reject(
        self,
        sound: Sorted,
        bad: pl.Series,
        reason: Reason,
        missed: pl.Series | int | None = None,
    ) -> None:
        if not bad.any():
            return
        if isinstance(missed, pl.Series):
            missed = missed.filter(bad)
        rows = sound.frame.filter(bad)
        sound.late.append(late_rows(self.output, rows, self.name, reason, missed))
        sound.frame = sound.frame.filter(~bad)
