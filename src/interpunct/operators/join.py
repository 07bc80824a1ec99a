"""Symmetric window join of two or more streams on equal keys (ETS Figures 1 and 6).

Each input j keeps a window W(j): a tuple of it stays joinable for `windows[j]` after its own
timestamp. Tuples are processed in time order; each meets the windows of all other inputs, so a
combination is a result when its latest timestamp T is within every member's window,
t_j ≥ T − windows[j], and the result is stamped T, in an attribute of its own (`joined_at`).

With `how="left"` a tuple of input 0 that met nobody comes out alone once its window has passed
for certain, stamped with the moment it passed. The output is in time order, and where there is no
result, time still goes on: the join passes a heartbeat on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from interpunct.model.feedback import Feedback
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME
from interpunct.model.ticks import stretch, within
from interpunct.operators.band import band_join
from interpunct.operators.contract import Demand, Emission, Held, Operator, Stream
from interpunct.operators.join_schema import ID, JoinShape
from interpunct.operators.join_window import JoinWindow, Unmet
from interpunct.operators.promises import PromiseBook
from interpunct.operators.responses import Response, at_input, at_output
from interpunct.operators.state import Record, State
from interpunct.operators.tsm import TsmInputs, in_order


@dataclass(frozen=True)
class JoinSpec:
    """Keys by name (the same in all inputs), a window in ticks per input, inner or left."""

    keys: tuple[str, ...]
    windows: tuple[int, ...]
    how: str = "inner"
    stamp: str = "joined_at"


class WindowJoin(Operator):
    """Idle-waiting prone: it processes what is stamped at or below the least TSM register."""

    idle_waiting = True

    def __init__(
        self, name: str, inputs: Sequence[Stream], spec: JoinSpec, state: State | None = None
    ) -> None:
        self._shape = JoinShape.of(name, [s.schema for s in inputs], spec.keys, spec.stamp)
        output = Stream(self._shape.output, Properties(ordered=True))
        super().__init__(name, inputs, [output], self._shape.attributes, state)
        self.spec = spec
        self._tsm = TsmInputs(self.state, inputs)
        self._windows = [
            JoinWindow(self.state, f"window{j}", self._shape.member_schema(j), spec.windows[j])
            for j in range(len(inputs))
        ]
        self._unmet: Unmet | None = None
        if spec.how == "left":
            self._unmet = Unmet(self.state, "unmet", self._shape.member_schema(0), spec.windows[0])
        self._book = PromiseBook(self.state, self.output, len(inputs))
        initial = {"last": START_OF_TIME, "given": START_OF_TIME, "next_id": 0}
        self._record = Record(self.state, "out", initial)

    def on_page(self, port: int, page: Page) -> Emission:
        self._tsm.add(port, page.frame, page.stamp)
        emission = self._process()
        emission.relays += self.produce(port, page)
        return emission

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        heartbeat = punctuation.heartbeat_ticks
        if heartbeat is not None:
            self._tsm.promise(port, heartbeat)
            emission = self._process()
            emission.relays += self.produce(port, None)
            return emission
        pattern = self.attributes.forward(punctuation.pattern, port, self.output)
        if pattern is not None and set(pattern.names) <= set(self.spec.keys):
            self._book.add(port, pattern)
        return self._process()

    def _process(self) -> Emission:
        """Join what the registers release, then let time pass for what is stored."""
        fresh = [
            self._member(j, in_order(self.inputs[j].schema, frames)) if frames else None
            for j, frames in enumerate(self._tsm.take())
        ]
        sure = self._tsm.sure
        results = [self._combinations(fresh)] if any(f is not None for f in fresh) else []
        for window, frame in zip(self._windows, fresh, strict=True):
            if frame is not None:
                window.add(frame, sure)
            window.expire(sure)
        if self._unmet is not None:
            results.append(self._alone(self._unmet, fresh[0], results, sure))
        return self._emitted(results)

    def _alone(
        self,
        unmet: Unmet,
        fresh: pl.DataFrame | None,
        results: list[pl.DataFrame],
        sure: int,
    ) -> pl.DataFrame:
        """Left tuples that met nobody while they could: they come out with nulls."""
        met = self._shape.met(results[0]) if results else None
        if met is not None:
            unmet.remove_met(met)
        passed = [unmet.take_expired(sure)]
        if fresh is not None and met is not None:
            lonely = fresh.join(met, on=ID, how="anti")
            gone = pl.col(self._shape.tick(0)) + self.spec.windows[0] <= sure
            passed.append(lonely.filter(gone))
            unmet.add(lonely, sure)
        return self._shape.alone(stacked(passed), self.spec.windows[0])

    def _member(self, port: int, frame: pl.DataFrame) -> pl.DataFrame:
        """An input's tuples under the names they have in the result, with ticks and a number."""
        first: int = self._record["next_id"]
        self._record["next_id"] = first + frame.height
        return self._shape.member(port, frame, first)

    def _combinations(self, fresh: list[pl.DataFrame | None]) -> pl.DataFrame:
        """Every combination with a fresh member, once: by the first input that is fresh in it."""
        parts = []
        for port, frame in enumerate(fresh):
            if frame is None:
                continue
            combined = frame
            for other in self._order(port):
                combined = self._extended(combined, port, other, fresh)
            parts.append(self._within_all_windows(combined))
        return stacked([p.select(self._shape.combined_names()) for p in parts])

    def _order(self, port: int) -> list[int]:
        return [j for j in range(len(self.inputs)) if j != port]

    def _extended(
        self, combined: pl.DataFrame, port: int, other: int, fresh: list[pl.DataFrame | None]
    ) -> pl.DataFrame:
        """Combinations extended by another input: its stored tuples, and its fresh ones if it
        comes after `port`, so that no combination is made twice."""
        times = (self._shape.tick(port), self._shape.tick(other))
        reach = (self.spec.windows[other], self.spec.windows[port])
        ticks = combined[times[0]]
        stored = self._windows[other].between(ticks, *reach)
        mine = fresh[other]
        candidates = stored if other < port or mine is None else stacked([stored, mine])
        return band_join(combined, candidates, self.spec.keys, times, *reach)

    def _within_all_windows(self, combined: pl.DataFrame) -> pl.DataFrame:
        """Stamped with the latest time, which must lie in every member's window."""
        ticks = [self._shape.tick(j) for j in range(len(self.inputs))]
        latest = pl.max_horizontal(ticks)
        result = combined.with_columns(latest.alias(self._shape.stamp_ticks))
        if len(ticks) == 2:
            return result
        inside = [
            pl.col(self._shape.stamp_ticks) - pl.col(t) <= w
            for t, w in zip(ticks, self.spec.windows, strict=True)
        ]
        return result.filter(pl.all_horizontal(inside))

    def _emitted(self, results: list[pl.DataFrame]) -> Emission:
        emission = Emission()
        found = [r for r in results if r.height]
        if found:
            frame = self._shape.finished(stacked(found))
            self._record["last"] = int(self.output.ticks(frame)[-1])
            emission = self.tuples(frame)
        emission.extend(self._settle())
        sure = self._tsm.sure
        if sure > self._record["given"] and sure >= self._record["last"]:
            self._record["given"] = sure
            emission.extend(self.heartbeat(sure))
        return emission

    def _settle(self) -> Emission:
        """Punctuations on keys: true once no waiting or unmet tuple could still come out."""
        if not self._book:
            return Emission()
        waiting = [self._shape.member(j, w.all(), 0) for j, w in enumerate(self._tsm.waiting)]
        if self._unmet is not None:
            waiting.append(self._unmet.all())
        held = [self._shape.padded(w) for w in waiting]
        settled = self._book.settle(held, self._record["given"])
        return Emission([(0, Page(self.output, self.output.empty(), settled))] if settled else [])

    def produce(self, port: int, page: Page | None) -> list[tuple[int, Feedback]]:
        """Feedback of its own, after a page or a heartbeat on an input: a plain join has none."""
        del port, page
        return []

    # Feedback ---------------------------------------------------------------------------------

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """Table 2: an input that expresses all of the pattern can do without its tuples, the join
        key is expressed by all inputs, and what no single input expresses stays at the output.

        In a left join a right tuple that is missing would let its left tuples come out alone, so
        the right inputs follow only where the left one goes first: for patterns on the key.
        """
        del port
        inputs = {j: found for j in range(len(self.inputs)) if (found := self._at(j, pattern))}
        keyed = bool(pattern.names) and set(pattern.names) <= set(self.spec.keys)
        if self.spec.how == "left" and not keyed:
            inputs = {j: found for j, found in inputs.items() if j == 0}
        if not inputs:
            return at_output("¬[l, *, r]", pattern)
        case = "¬[*, j, *]" if keyed else "¬[l, *, *]" if 0 in inputs else "¬[*, *, r]"
        response = at_input(case, inputs, purge=True)
        in_part = self._shape.stamp in pattern.names  # the inputs can say only some of it
        return replace(response, guard_output={0: pattern}) if in_part else response

    def _at(self, port: int, pattern: Pattern) -> Pattern | None:
        """The pattern in terms of an input. Results of a tuple stamped t are stamped from t to
        t + its window, so those stamped in [a, b] are all that tuples in [a, b − window] make."""
        schema, stamp = self.inputs[port].schema, self._shape.stamp
        carried = pattern.restricted_to(n for n in pattern.names if n != stamp)
        found = self.attributes.backward(carried, port, schema)
        if found is None or stamp not in pattern.names:
            return found
        ticks = stretch(pattern.condition(stamp))
        if ticks is None:
            return None
        low, high = ticks
        last = None if high is None else high - self.spec.windows[port]
        time = within(schema, low, last)
        limited = found.intersect(Pattern(schema, {schema.ordered_by: time}))
        return None if limited.is_empty else limited

    def purge(self, port: int, pattern: Pattern) -> int:
        """What waits and what is stored of an input; a left tuple does not come out alone."""
        named = {self._shape.names[port][n]: c for n, c in pattern.conditions}
        purged = self._tsm.waiting[port].purge(pattern)
        stores = [self._windows[port]]
        if port == 0 and self._unmet is not None:
            stores.append(self._unmet)
        return purged + sum(store.purge(named) for store in stores)

    # ------------------------------------------------------------------------------------------

    def needs(self) -> Demand | None:
        waiting = self._tsm.needs()
        if waiting is not None or self._unmet is None:
            return waiting
        first = self._unmet.first()
        return None if first is None else self._tsm.demand(first + self.spec.windows[0])

    def demand(self, wanted: int) -> Demand | None:
        return self._tsm.demand(wanted)

    def waiting(self) -> int:
        return self._tsm.rows

    def _held(self) -> Held:
        stored = sum((w.held() for w in self._windows), Held())
        if self._unmet is not None:
            stored += self._unmet.held()
        return self._tsm.held() + stored + Held(punctuations=len(self._book))

    def _save(self) -> None:
        self._tsm.save()
        self._book.save()
        self._record.save()
        for window in self._windows:
            window.save()
        if self._unmet is not None:
            self._unmet.save()
