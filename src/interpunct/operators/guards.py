"""Guards: what an operator has installed to do without tuples that feedback assumed away.

    ¬[segment=3, ts ≤ 9:05]      in:  3 4 3 5 ──▶ ┃guard┃ ──▶ 4 5

A guard on an input spares the operator the work, a guard on an output spares those behind it
(Feedback section 4.3). Guards are state: once held tuples have been purged under the protection of
a guard, forgetting it would let the rest of a group come out as if it were all of it. So a guard
goes only when punctuation has covered its pattern, and when there is no room for another, the
feedback is not exploited, which is always correct (Definition 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME, START_OF_TIME, Schema
from interpunct.model.ticks import stretch
from interpunct.operators.state import Record, State

MOST_GUARDS = 256  # for each input and each output
OTHERWISE = "left unread, purged, or by feedback that is over"  # not by a guard that is here


@dataclass
class Guard:
    """A pattern, and how many tuples it has kept away."""

    pattern: Pattern
    skipped: int = 0

    @cached_property
    def ticks(self) -> tuple[int, int]:
        """The first and the last tick it can speak of."""
        time = self.pattern.schema.time
        known = None if time is None else stretch(self.pattern.condition(time))
        low, high = known or (None, None)
        return START_OF_TIME if low is None else low, END_OF_TIME if high is None else high

    def near(self, first: int, last: int) -> bool:
        """Whether it speaks of some of these ticks, or of those beside them: if not, it neither
        matches anything there nor goes together with a pattern that speaks of them."""
        return self.ticks[0] <= last + 1 and first - 1 <= self.ticks[1]


class Watch:
    """The guards of one stream."""

    def __init__(self, schema: Schema, ordered: bool, guards: Iterable[Guard]) -> None:
        self._schema, self._ordered = schema, ordered
        self.guards = list(guards)

    def covers(self, pattern: Pattern) -> bool:
        """Whether a guard already keeps all of these tuples away."""
        ticks = Guard(pattern).ticks
        return any(pattern.implies(g.pattern) for g in self.guards if g.near(*ticks))

    def with_guard(self, pattern: Pattern) -> list[Guard] | None:
        """The guards there would be with this one; None when there is no room for it.

        Two guards become one where one pattern says just what both say, as the range ≤ 5 and the
        range from 5 to 9 do.
        """
        if pattern.is_empty or self.covers(pattern):
            return self.guards
        merged = Guard(pattern)
        apart: list[Guard] = []
        for guard in self.guards:
            near = guard.near(*merged.ticks)
            both = guard.pattern.union(merged.pattern) if near else None
            if both is None:
                apart.append(guard)
            else:
                merged = Guard(both, guard.skipped + merged.skipped)
        return None if len(apart) >= MOST_GUARDS else [*apart, merged]

    def admit(self, page: Page) -> Page:
        """The page without the tuples that match.

        On an ordered stream a tuple is also a sign of time; the signs of those that are kept away
        go on as a heartbeat.
        """
        if not self.guards or not page.height:
            return page
        frame = page.frame
        for guard in self._near(page):
            kept = guard.pattern.without(frame)
            guard.skipped += frame.height - kept.height
            frame = kept
        if frame.height == page.height:
            return page
        marks = page.punctuations
        if self._ordered and self._schema.time is not None:
            last = int(self._schema.ticks(page.frame)[-1])
            if not frame.height or int(self._schema.ticks(frame)[-1]) < last:
                marks = (Punctuation.heartbeat(self._schema, last - 1), *marks)
        return replace(page, frame=frame, punctuations=marks)

    def _near(self, page: Page) -> list[Guard]:
        """The guards that can match a tuple of the page."""
        if len(self.guards) == 1 or self._schema.time is None:
            return self.guards
        ticks = self._schema.ticks(page.frame)
        first, last = ticks.min(), ticks.max()
        if not isinstance(first, int) or not isinstance(last, int) or ticks.null_count():
            return self.guards  # a source's tuples, some without a time
        return [g for g in self.guards if g.near(first, last)]

    def expire(self, page: Page) -> list[Guard]:
        """Remove and return the guards that what the page promises has made needless."""
        marks = list(page.punctuations)
        if self._ordered and page.height and self._schema.time is not None:
            last = int(self._schema.ticks(page.frame)[-1])
            marks.append(Punctuation.heartbeat(self._schema, last - 1))
        gone = [g for g in self.guards if any(_covered(g, mark) for mark in marks)]
        if gone:
            self.guards = [g for g in self.guards if g not in gone]
        return gone


class Guards:
    """The guards of all inputs and outputs of an operator, in its state."""

    def __init__(
        self, state: State, inputs: Sequence[tuple[Schema, bool]],
        outputs: Sequence[tuple[Schema, bool]],
    ) -> None:  # fmt: skip
        """A stream here is its schema and whether it is ordered."""
        self._record = Record(state, "guards", {"in": {}, "out": {}, "skipped": {}})
        self.inputs = [self._watch("in", p, *s) for p, s in enumerate(inputs)]
        self.outputs = [self._watch("out", p, *s) for p, s in enumerate(outputs)]
        self._before: dict[str, int] = self._record["skipped"]  # by guards that are gone

    def __len__(self) -> int:
        return sum(len(w.guards) for w in self._watches())

    def install(self, inputs: Mapping[int, Pattern], outputs: Mapping[int, Pattern]) -> bool:
        """All of these guards or, when there is no room for one of them, none."""
        planned = [(self.inputs[p], pattern) for p, pattern in inputs.items()]
        planned += [(self.outputs[p], pattern) for p, pattern in outputs.items()]
        found = [(watch, watch.with_guard(pattern)) for watch, pattern in planned]
        if any(guards is None for _, guards in found):
            return False
        for watch, guards in found:
            watch.guards = guards or []
        return True

    def admit(self, port: int, page: Page) -> Page:
        """What may enter by an input."""
        return self.inputs[port].admit(page)

    def release(self, pages: Iterable[tuple[int, Page]]) -> Iterator[tuple[int, Page]]:
        """What may leave by the outputs; guards that are no longer needed go."""
        for port, page in pages:
            watch = self.outputs[port]
            out = watch.admit(page)
            self._forget(watch.expire(page))
            if out.height or out.punctuations:
                yield port, out

    def read(self, port: int, page: Page) -> None:
        """The page has been processed: guards that it made needless go."""
        self._forget(self.inputs[port].expire(page))

    def skipped(self) -> dict[str, int]:
        """How many tuples were not processed, by what feedback said of them; those that no guard
        here kept away are under OTHERWISE."""
        now: dict[str, int] = dict(self._before)
        for watch in self._watches():
            for guard in watch.guards:
                text = str(guard.pattern)
                now[text] = now.get(text, 0) + guard.skipped
        return now

    def count(self, skipped: int) -> None:
        """Tuples kept away, or purged, otherwise than by one of these guards."""
        if skipped:
            self._before[OTHERWISE] = self._before.get(OTHERWISE, 0) + skipped

    def save(self) -> None:
        self._record.update(
            {"in": _texts(self.inputs), "out": _texts(self.outputs), "skipped": self._before}
        )
        self._record.save()

    def _forget(self, gone: Iterable[Guard]) -> None:
        for guard in gone:
            self.count(guard.skipped)

    def _watches(self) -> Iterator[Watch]:
        yield from self.inputs
        yield from self.outputs

    def _watch(self, side: str, port: int, schema: Schema, ordered: bool) -> Watch:
        stored = self._record[side].get(str(port), ())
        return Watch(schema, ordered, (Guard(Pattern.parse(t, schema), n) for t, n in stored))


def _texts(watches: Iterable[Watch]) -> dict[str, list[list[object]]]:
    return {
        str(port): [[g.pattern.by_name(), g.skipped] for g in watch.guards]
        for port, watch in enumerate(watches)
        if watch.guards
    }


def _covered(guard: Guard, mark: Punctuation) -> bool:
    """Whether what the guard speaks of is promised not to come."""
    heartbeat = mark.heartbeat_ticks
    if heartbeat is not None and heartbeat < guard.ticks[1]:
        return False
    return guard.pattern.implies(mark.pattern)
