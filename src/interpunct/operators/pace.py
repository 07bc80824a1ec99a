"""Pace: a union in arrival order that bounds how far its inputs drift apart (Feedback Example 3).

    clean:     10  20  30          40                  tolerance 15
    imputed:           10      20      20 ✕            high-watermark 40: below 25 is too late
    out:       10  20  30  10  20  40

It is UNION … WITH PACE ON MAX(clean.time, imputed.time) 15 of section 3.3. The high-watermark is
the greatest timestamp seen on the inputs that set the pace; it never regresses. A tuple further
behind it than the tolerance is ignored: it leaves by the late output (output 1). So its output
promises that much, whatever the inputs promise. An input that has fallen behind is told what is
ignored from now on, ¬[time < high-watermark − tolerance], and can spare itself the work.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.errors import FlowError
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.late import Reason, late_rows, late_schema
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME
from interpunct.model.ticks import stretch, within
from interpunct.operators.contract import Demand, Emission, Held, Operator, Stream
from interpunct.operators.promises import PromiseBook
from interpunct.operators.responses import Response, at_input, at_output
from interpunct.operators.state import Record, State

LATE = 1


class Pace(Operator):
    """Nothing is held. `on` names the inputs that move the high-watermark, by default all.

    Feedback from downstream goes on to the inputs that do not: were tuples of the others left out,
    the high-watermark would be lower, and tuples would pass that should not (Definition 1). What
    lies below the high-watermark anyway can be left out everywhere.
    """

    def __init__(
        self,
        name: str,
        inputs: Sequence[Stream],
        tolerance: int,
        state: State | None = None,
        *,
        on: Sequence[int] | None = None,
        feedback: bool = True,
    ) -> None:
        """`feedback` says whether inputs that have fallen behind are told."""
        schema, ports = inputs[0].schema, range(len(inputs))
        _check(name, inputs, tolerance, on)
        outputs = [Stream(schema), Stream(late_schema(schema))]
        super().__init__(name, inputs, outputs, AttributeMap.identity(schema, len(inputs)), state)
        self._tolerance, self._feedback = tolerance, feedback
        self._on = frozenset(ports if on is None else on)
        self._book = PromiseBook(self.state, schema, len(inputs))
        each = [START_OF_TIME] * len(inputs)
        initial = {"first": START_OF_TIME, "high": START_OF_TIME, "given": START_OF_TIME}
        self._record = Record(
            self.state, "pace", {**initial, "sure": each, "seen": each, "told": each}
        )

    @property
    def high(self) -> int:
        """The high-watermark, in ticks."""
        high: int = self._record["high"]
        return high

    def on_page(self, port: int, page: Page) -> Emission:
        ticks = self.output.ticks(page.frame)
        limits = self._limits(port, ticks)
        late = ticks < limits
        any_late = bool(late.any())
        if any_late:
            emission = self.tuples(page.frame.filter(~late))
            rows = late_rows(
                self.output, page.frame.filter(late), self.name, Reason.DIVERGED,
                limits.filter(late) - 1,
            )  # fmt: skip
            emission.extend(self.tuples(rows, LATE))
        else:
            emission = self.tuples(page.frame, stamp=page.stamp)
        self._note(port, "seen", int(ticks.max()))  # type: ignore[arg-type]
        if self.inputs[port].properties.ordered:
            self._note(port, "sure", int(ticks[-1]) - 1)
        emission.extend(self._advance())
        emission.relays += self._tell(port if any_late else None)
        return emission

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        heartbeat = punctuation.heartbeat_ticks
        if heartbeat is None:
            self._book.add(port, punctuation.pattern)
        else:
            self._note(port, "sure", heartbeat)
        return self._advance()

    def _limits(self, port: int, ticks: pl.Series) -> pl.Series:
        """The least timestamp that each tuple may have; those of a page count one by one, so that
        the way they are cut into pages makes no difference."""
        if port in self._on:
            highs = ticks.cum_max().clip(lower_bound=self.high)
            if self._record["first"] == START_OF_TIME:
                self._record["first"] = int(ticks[0])
            self._record["high"] = int(highs[-1])
        else:
            highs = pl.repeat(self.high, ticks.len(), dtype=pl.Int64, eager=True)
        return highs - self._tolerance

    def _note(self, port: int, what: str, tick: int) -> None:
        known: list[int] = self._record[what]
        if tick > known[port]:
            self._record[what] = [*known[:port], tick, *known[port + 1 :]]

    def _advance(self) -> Emission:
        """Promise what all inputs promise, or what is enforced here if that is more."""
        emission = Emission()
        enforced = self.high - self._tolerance - 1
        reached = max(enforced, min(self._record["sure"]))
        grown = reached > self._record["given"]
        if grown:
            self._record["given"] = reached
        settled = self._book.settle([], self._record["given"])
        if settled:
            emission.extend(Emission([(0, Page(self.output, self.output.empty(), settled))]))
        if grown:
            emission.extend(self.heartbeat(reached))
        return emission

    def _tell(self, late: int | None) -> list[tuple[int, Feedback]]:
        """Feedback for the inputs that have fallen behind, if it says something new.

        Behind is who has sent a late tuple, or nothing yet that is not too old by now, and has not
        promised to send no such tuple. One never heard of counts as begun when pace was first set.
        """
        limit = self.high - self._tolerance
        if not self._feedback or limit <= self._record["first"]:
            return []
        seen, sure, told = (list(self._record[key]) for key in ("seen", "sure", "told"))
        behind = [
            port
            for port in range(len(self.inputs))
            if (port == late or seen[port] < limit)
            and sure[port] < limit - 1
            and told[port] < limit
        ]
        if not behind:
            return []
        self._record["told"] = [limit if p in behind else t for p, t in enumerate(told)]
        old = within(self.output, None, limit - 1)
        ignored = Pattern(self.output, {self.output.ordered_by: old})
        return [(port, Feedback(Intent.ASSUMED, ignored)) for port in behind]

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """Like a union, but for inputs whose tuples are needed for their timestamps."""
        if port == LATE:
            return at_output("¬[…] of late tuples", pattern, LATE)
        ports = range(len(self.inputs))
        ticks = stretch(pattern.condition(self.output.ordered_by))
        if ticks is not None and ticks[1] is not None and ticks[1] <= self.high:
            return at_input("¬[time ≤ high-watermark, …]", dict.fromkeys(ports, pattern))
        free = {p: pattern for p in ports if p not in self._on and not pattern.is_empty}
        return Response("¬[…]", guard_input=free, guard_output={0: pattern}, propagate=free)

    def demand(self, wanted: int) -> Demand | None:
        if self._record["given"] >= wanted:
            return None
        sure: list[int] = self._record["sure"]
        return Demand(sure.index(min(sure)), wanted)

    def _held(self) -> Held:
        return Held(punctuations=len(self._book))

    def _save(self) -> None:
        self._book.save()
        self._record.save()


def _check(name: str, inputs: Sequence[Stream], tolerance: int, on: Sequence[int] | None) -> None:
    where, schema = f"pace {name!r}", inputs[0].schema
    schema.ordered_by  # noqa: B018  a stream without time cannot be paced, and is told so
    if len(inputs) < 2:
        raise FlowError(where, "two or more streams", str(len(inputs)), "Add another.")
    for port, stream in enumerate(inputs):
        other = stream.schema
        if (other.ddl, other.time) != (schema.ddl, schema.time):
            raise FlowError(
                f"{where}, input {port}", f"({schema.ddl}) with time {schema.time}",
                f"({other.ddl}) with time {other.time}",
                "Give them one shape first: stream.select('a', b='expression', …).",
            )  # fmt: skip
    if tolerance < 0:
        raise FlowError(where, "a tolerance of 0 or more", str(tolerance), "Correct it.")
    if on is not None and (not on or not set(on) <= set(range(len(inputs)))):
        raise FlowError(
            where, f"on=… to name some of its {len(inputs)} inputs", repr(tuple(on)),
            "Name the streams whose timestamps set the pace.",
        )  # fmt: skip
