"""Impute: fills in what a stream lacks from an archive (Feedback Example 3, Experiment 1).

    dirty:  (9:00, 3, null) (9:01, 5, null) …      look-ups are slow: tuples wait in a backlog
    out:    (9:00, 3, 48.5) …                      ¬[time < 9:01]: the rest of 9:00 is purged

Look-ups are done one piece of the backlog at a time, when nothing else can run, so that what has
been said of the backlog meanwhile is obeyed. Assumed feedback purges it; desired feedback is
served first; else the oldest tuple that can still be in time is next. The last is more than the
paper says: where assumed feedback moves on with time, as PACE's does, the oldest tuple that is left
will be too late when it is done, and so would all be, if each were begun just before its time is
up. So tuples that the bound would reach within a piece of work wait until nothing else does.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from interpunct.model.attribute_map import AttributeMap, Origin
from interpunct.model.errors import ArchiveError, FlowError, SchemaError
from interpunct.model.feedback import Feedback
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME, START_OF_TIME, Schema
from interpunct.operators.archive import Archive
from interpunct.operators.backlog import Backlog
from interpunct.operators.contract import Demand, Emission, Held, Operator, Stream
from interpunct.operators.promises import PromiseBook
from interpunct.operators.responses import Response, at_input, at_output
from interpunct.operators.state import Record, State
from interpunct.progress.clock import Clock, RealClock

MOST_WISHES = 64  # desired patterns remembered; the oldest are forgotten first
MOVES = 8  # pieces of work over which the movement of the deadline is watched


class Impute(Operator):
    """Tuples that lack nothing pass at once; the others when they have been looked up."""

    def __init__(
        self,
        name: str,
        stream: Stream,
        fills: Sequence[str],
        archive: Archive,
        state: State | None = None,
        *,
        batch: int = 1,
        budget: int | None = None,
        overwrite: bool = False,
        clock: Clock | None = None,
    ) -> None:
        """`fills` are the attributes to fill, each from the archive's column of its name: where
        they are null, or always if told to `overwrite`. A piece of work is `batch` tuples. Where
        input comes in batches, look-ups take `budget` microseconds of each, by `clock`."""
        schema = stream.schema
        self._fills, self._archive = tuple(fills), archive
        self._batch, self._budget, self._overwrite = batch, budget, overwrite
        _check(name, schema, self._fills, archive.parameters, batch, budget)
        super().__init__(name, [stream], [Stream(schema)], self._map(schema), state)
        self._clock: Clock = RealClock() if clock is None else clock
        self._left: int | None = None  # of the budget; None before a batch has begun
        self._hurried = Backlog(self.state, "hurried", schema)
        self._rest = Backlog(self.state, "backlog", schema)
        self._book = PromiseBook(self.state, schema, 1)
        self._deadline = _Deadline(self.state)
        initial = {"sure": START_OF_TIME, "given": START_OF_TIME, "wishes": []}
        self._record = Record(self.state, "impute", initial)
        self._wanted = [Pattern.parse(text, schema) for text in self._record["wishes"]]

    def _map(self, schema: Schema) -> AttributeMap:
        kept = {n: [Origin(0, n)] for n in schema.names if n not in self._fills}
        made = {n: [Origin(0, p) for p in (n, *self._archive.parameters)] for n in self._fills}
        return AttributeMap(kept, derived=made)

    # What arrives ---------------------------------------------------------------------------

    def on_page(self, port: int, page: Page) -> Emission:
        del port
        frame, emission = page.frame, Emission()
        if not self._overwrite:
            lacking = frame.select(
                pl.any_horizontal(pl.col(n).is_null() for n in self._fills)
            ).to_series()
            emission = self.tuples(frame.filter(~lacking))
            frame = frame.filter(lacking)
        if frame.height:
            self._queue(frame)
        if self.inputs[0].properties.ordered:
            last = int(self.output.ticks(page.frame)[-1])
            self._reach(Punctuation.heartbeat(self.output, last - 1))
        emission.extend(self._advance())
        return emission

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        self._reach(punctuation)
        if punctuation.heartbeat_ticks is None:
            pattern = self.attributes.forward(punctuation.pattern, port, self.output)
            if pattern is not None:
                self._book.add(port, pattern)
        return self._advance()

    def _reach(self, punctuation: Punctuation) -> None:
        """What the input promises: how far time has come, and which wishes are past."""
        heartbeat = punctuation.heartbeat_ticks
        if heartbeat is not None:
            self._record["sure"] = max(self._record["sure"], heartbeat)
        if self._wanted:
            over = heartbeat is not None and heartbeat >= END_OF_TIME
            past = punctuation.pattern
            self._wanted = [w for w in self._wanted if not (over or w.implies(past))]

    def _queue(self, frame: pl.DataFrame) -> None:
        """Tuples that match a wish go before the others."""
        for wish in self._wanted:
            wished = wish.mask(frame)
            if wished.any():
                self._hurried.add(frame.filter(wished))
                frame = frame.filter(~wished)
        if frame.height:
            self._rest.add(frame)

    def _advance(self) -> Emission:
        """Time has come as far as the input says, but for what waits here."""
        waiting = [b.first for b in (self._hurried, self._rest) if b.first is not None]
        reached = min([self._record["sure"], *(first - 1 for first in waiting)])
        emission = Emission()
        if self._book:
            settled = self._book.settle([self._hurried.all(), self._rest.all()], reached)
            if settled:
                emission.extend(Emission([(0, Page(self.output, self.output.empty(), settled))]))
        if reached > self._record["given"]:
            self._record["given"] = reached
            emission.extend(self.heartbeat(reached))
        return emission

    # Work -----------------------------------------------------------------------------------

    def backlog(self) -> bool:
        spent = self._left is not None and self._left <= 0
        return not spent and bool(self._hurried.rows or self._rest.rows)

    def held_back(self) -> bool:
        return bool(self._hurried.rows or self._rest.rows) and not self.backlog()

    def begin(self) -> None:
        self._left = self._budget

    def work(self) -> Emission:
        """Look up one piece and let it go."""
        piece = self._next_piece()
        if not piece.height:
            return Emission()
        began = self._clock.now()
        emission = self.tuples(self._filled(piece))
        if self._left is not None:
            self._left -= self._clock.now() - began
        emission.extend(self._advance())
        return self.let_out(emission)

    def _next_piece(self) -> pl.DataFrame:
        """Wishes first, the oldest first, but before all what can still be in time."""
        soon = self._deadline.after_a_piece()
        for since in (soon, START_OF_TIME):
            for waiting in (self._hurried, self._rest):
                piece = waiting.oldest(self._batch, since) if waiting.rows else None
                if piece is not None and piece.height:
                    return piece
        return self.output.empty()

    def _filled(self, piece: pl.DataFrame) -> pl.DataFrame:
        answers = self._archive.look_up(piece)
        where = f"impute {self.name!r}"
        for name in self._fills:
            if name not in answers.columns:
                raise ArchiveError(
                    where, f"an answer with a column {name!r}", ", ".join(answers.columns),
                    f"Name it in the query: select … as {name}.",
                )  # fmt: skip
        wanted = {name: self.output[name].dtype for name in self._fills}
        try:
            found = answers.select(self._fills).cast(wanted)  # type: ignore[arg-type]
        except pl.exceptions.PolarsError as error:
            got = ", ".join(f"{n} {answers.schema[n]}" for n in self._fills)
            types = ", ".join(f"{n} {self.output[n].type}" for n in self._fills)
            raise ArchiveError(where, f"answers as {types}", got, "Cast in the query.") from error
        if not self._overwrite:
            kept = (piece.get_column(n).fill_null(found.get_column(n)) for n in self._fills)
            found = pl.DataFrame(list(kept))
        return piece.with_columns(found.get_columns())

    # Feedback -------------------------------------------------------------------------------

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """What is carried is known before the look-up, what is filled only after it."""
        carried = self.attributes.backward(pattern, port, self.inputs[0].schema)
        if carried is None:
            return at_output("¬[…, filled, …]", pattern)
        return at_input("¬[carried, *]", {0: carried}, purge=True)

    def on_feedback(self, feedback: Feedback, port: int = 0) -> Emission:
        emission = super().on_feedback(feedback, port)
        emission.extend(self.let_out(self._advance()))  # what was purged held time back
        return emission

    def purge(self, port: int, pattern: Pattern) -> int:
        del port
        self._deadline.move(pattern)
        return self._hurried.purge(pattern) + self._rest.purge(pattern)

    def on_wish(self, feedback: Feedback, port: int) -> Emission:
        """Tuples that match go before the others, those that wait and those to come."""
        del port
        for _, wish in self._wishes(feedback):
            found = self._rest.matching(wish.pattern)
            if found.height:
                self._hurried.add(found)
            known = [w for w in self._wanted if not w.implies(wish.pattern)]
            self._wanted = [*known, wish.pattern][-MOST_WISHES:]
        return Emission()

    def demand(self, wanted: int) -> Demand | None:
        return None if self._record["sure"] >= wanted else Demand(0, wanted)

    def _held(self) -> Held:
        both = (self._hurried, self._rest)
        return Held(
            tuples=sum(b.rows for b in both),
            bytes=sum(b.nbytes() for b in both),
            punctuations=len(self._book),
            guards=len(self._wanted),
        )

    def _save(self) -> None:
        self._record["wishes"] = [w.by_name() for w in self._wanted]
        for part in (self._hurried, self._rest, self._book, self._deadline, self._record):
            part.save()


class _Deadline:
    """The time up to which tuples are assumed away, and how far it moves during a piece of work."""

    def __init__(self, state: State) -> None:
        self._record = Record(
            state, "deadline", {"now": START_OF_TIME, "before": START_OF_TIME, "moves": []}
        )

    def move(self, pattern: Pattern) -> None:
        """Feedback about time alone moves it on."""
        bound = Punctuation(pattern).heartbeat_ticks
        if bound is not None:
            self._record["now"] = max(self._record["now"], bound)

    def after_a_piece(self) -> int:
        """The least timestamp that will be in time when the piece about to begin is done, if the
        deadline moves as far meanwhile as it did at most during one of the last few."""
        now, before = self._record["now"], self._record["before"]
        if before > START_OF_TIME:
            self._record["moves"] = [*self._record["moves"], now - before][-MOVES:]
        self._record["before"] = now
        return int(now + 1 + max(self._record["moves"], default=0))

    def save(self) -> None:
        self._record.save()


def _check(
    name: str,
    schema: Schema,
    fills: Sequence[str],
    parameters: Sequence[str],
    batch: int,
    budget: int | None,
) -> None:
    where = f"impute {name!r}"
    for attribute in (schema.ordered_by, *fills, *parameters):
        if attribute not in schema:
            raise SchemaError.unknown_attribute(where, attribute, schema.names)
    if not fills or schema.time in fills:
        raise FlowError(
            where, "attributes to fill, the time not among them", repr(tuple(fills)),
            "Name those whose values are missing.",
        )  # fmt: skip
    if batch < 1 or (budget is not None and budget <= 0):
        got = f"batch={batch}, budget={budget}"
        raise FlowError(where, "a batch and a budget above 0", got, "Correct them.")
