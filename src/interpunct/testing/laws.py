"""The laws every operator keeps, one function each.

A law takes a case and hypothesis' `data`, draws inputs, runs the operator, and asserts. All of
them at once, without a test framework: ``check(case)``.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from interpunct.model.feedback import Feedback, Intent
from interpunct.model.late import is_late
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME
from interpunct.operators.contract import Stream
from interpunct.operators.state import DictState, Value
from interpunct.testing.cases import (
    DELIVERED,
    Arrival,
    Case,
    Event,
    Running,
    hashable,
    one_by_one,
)
from interpunct.testing.strategies import SPAN, assumptions, ending, shifted, splits

Law = Callable[[Case, st.DataObject], None]

PERIOD = SPAN + 8  # by how much a stream is moved when it is repeated
ROUNDS = 8


def splitting_changes_nothing(case: Case, data: st.DataObject) -> None:
    """Pages cut anywhere give what tuple by tuple gives: tuples and promises, per output."""
    events = data.draw(case.inputs, "events")
    cut = Running.over(case, data.draw(splits(events), "the same, cut"))
    whole = Running.over(case, events)
    single = Running.over(case, [one for event in events for one in one_by_one(event)])
    for other in (cut, whole):
        _same_output(case, single, other)


def punctuations_are_true(case: Case, data: st.DataObject) -> None:
    """No tuple matches a punctuation that its output gave before it; pages are as declared."""
    running = Running.over(case, data.draw(case.inputs, "events"))
    promised: dict[int, list[Punctuation]] = {}
    for port, page in running.log:
        made = promised.setdefault(port, [])
        broken = [str(p) for p in made if page.height and p.pattern.matches_any(page.frame)]
        assert not broken, f"{case}, output {port}: {page.frame} breaks {broken}"
        made += page.punctuations
        if port >= 0:
            schema = running.operator.outputs[port].schema
            declared = dict(page.frame.schema) == schema.polars
            assert declared, f"{case}, output {port}: {page.frame.schema} is not ({schema.ddl})"


def order_is_kept(case: Case, data: st.DataObject) -> None:
    """Where an output promises order its times never decrease; where strict, they increase."""
    running = Running.over(case, data.draw(case.inputs, "events"))
    for port, stream in enumerate(running.operator.outputs):
        ticks = running.ticks(port) if stream.properties.ordered else []
        gaps = [after - before for before, after in itertools.pairwise(ticks)]
        least = 1 if stream.properties.strict else 0
        assert all(g >= least for g in gaps), f"{case}, output {port} out of order: {ticks}"


def restoring_changes_nothing(case: Case, data: st.DataObject) -> None:
    """Saved anywhere and rebuilt from bytes, it goes on as if nothing had happened."""
    events = data.draw(case.inputs, "events")
    moment = data.draw(st.integers(0, len(events)), "saved after")
    state = _CountingState()
    before = Running(case, state)
    before.see(events[:moment])
    before.operator.save()
    writes = state.writes
    before.operator.save()
    assert state.writes == writes, f"{case} writes again what has not changed: {state.last}"

    copy = _CountingState({key: _through_bytes(value) for key, value in state.entries.items()})
    after = Running(case, copy)
    after.clock.wait_until(before.clock.now())
    _same_held(case, before, after)
    after.operator.save()
    assert copy.writes == 0, f"{case} writes back what it has only read: {copy.last}"
    after.log += before.log
    for event in events[moment:]:
        before.see([event])
        after.see([event])
        _same_held(case, before, after)
    _same_output(case, before, after)


def state_is_bounded(case: Case, data: st.DataObject) -> None:
    """With heartbeats coming, what is held does not grow with the stream, and ends with it."""
    events = data.draw(case.inputs, "events")
    running = Running(case)
    inputs = running.operator.inputs
    long = _with_heartbeats(_repeated(events, ROUNDS), inputs)
    half = len(long) // 2
    running.see(long[:half])
    first, running.peak = running.peak, 0
    running.see(long[half:])
    tuples = sum(e.page.height for e in events if isinstance(e, Arrival))
    grown = f"{case} held {first} tuples at most, then {running.peak}"
    assert running.peak <= max(2 * first, tuples), grown
    running.see(Arrival(p, ending(s.schema)) for p, s in enumerate(inputs) if s.schema.time)
    left = running.operator.held().tuples
    assert case.keeps_open or not left, f"{case} holds {left} tuples at the end of time"
    assert running.operator.waiting() == 0, f"{case} still waits at the end of time"


def exploitation_is_correct(case: Case, data: st.DataObject) -> None:
    """SR − subset(SR, f) ⊆ S ⊆ SR: feedback f may cost only what it speaks of (Feedback 4.1).

    SR is the output without feedback, S the output when assumed feedback came at some moments.
    """
    events = _ended(case, data.draw(case.inputs, "events"))
    said = _feedback(case, len(events), data)
    without, heard = Running.over(case, events), Running(case)
    for moment, event in enumerate([*events, None]):
        for word in said.get(moment, ()):
            heard.hear(word.feedback, word.port)
        if event is not None:
            heard.see([event])
    _correct(case, said, without, heard)


def propagation_is_safe(case: Case, data: st.DataObject) -> None:
    """What it relays upstream, when acted upon there, still makes a correct exploitation.

    Upstream may drop any of the tuples the relayed feedback matches, from when it is relayed on.
    """
    events = _ended(case, data.draw(case.inputs, "events"))
    said = _feedback(case, len(events), data)
    without = Running.over(case, events)
    relayed = Running(case)
    for moment, event in enumerate([*events, None]):
        for word in said.get(moment, ()):
            relayed.hear(word.feedback, word.port)
        if event is not None:
            relayed.see([_thinned(relayed, event, data)])
    _correct(case, said, without, relayed)


LAWS: dict[str, Law] = {
    law.__name__: law
    for law in (
        splitting_changes_nothing,
        punctuations_are_true,
        order_is_kept,
        restoring_changes_nothing,
        state_is_bounded,
        exploitation_is_correct,
        propagation_is_safe,
    )
}


def check(
    case: Case,
    laws: Iterable[Law] = tuple(LAWS.values()),
    *,
    examples: int = 50,
    shrink: bool = True,
) -> None:
    """Try every law on a case; an AssertionError shows the smallest input that breaks one."""
    phases = [Phase.explicit, Phase.generate, *([Phase.shrink] if shrink else [])]
    quiet = settings(max_examples=examples, deadline=None, database=None, phases=phases)
    for law in laws:
        quiet(given(st.data())(_bound(law, case)))()


def _bound(law: Law, case: Case) -> Callable[[st.DataObject], None]:
    def attempt(data: st.DataObject) -> None:
        law(case, data)

    return attempt


# Comparing --------------------------------------------------------------------------------------


def _same_output(case: Case, expected: Running, got: Running) -> None:
    for port in expected.ports():
        want, have = expected.bag(port), got.bag(port)
        assert want == have, (
            f"{case}, output {port}: missing {list((want - have).elements())}, "
            f"unexpected {list((have - want).elements())}"
        )
        if port < 0:
            continue
        properties = expected.operator.outputs[port].properties
        if properties.deterministic:
            rows, others = expected.rows(port), got.rows(port)
            assert rows == others, f"{case}, output {port}: {others} is not in the order {rows}"
        reached = expected.progress(port), got.progress(port)
        assert reached[0] == reached[1], f"{case}, output {port}: time has reached {reached}"


def _same_held(case: Case, before: Running, after: Running) -> None:
    held = before.operator.held().tuples, after.operator.held().tuples
    assert held[0] == held[1], f"{case} held {held[0]} tuples, restored {held[1]}"


def _correct(case: Case, said: Said, without: Running, with_it: Running) -> None:
    words = [word for heard in said.values() for word in heard]
    for port in without.ports():
        full, got = without.bag(port), with_it.bag(port)
        assert got <= full, f"{case}, output {port}: {got - full} is not in the full result"
        missing = (full - _subset(without, port, words)) - got
        assert not missing, f"{case}, output {port}: {missing} is missing and not in {words}"


def _subset(running: Running, port: int, words: Sequence[Word]) -> Counter[tuple[Any, ...]]:
    """subset(SR, f): the tuples of one output that the feedback speaks of.

    What is said of a stream is said of its late tuples too, wherever they leave: a tuple that
    nobody wants is not missed for being late.
    """
    found: Counter[tuple[Any, ...]] = Counter()
    for page in running.pages(port):
        names = page.schema.names
        about = [
            w.feedback.pattern.expr()
            for w in words
            if port in (w.port, DELIVERED) or (is_late(page.schema) and w.port == 0)
        ]
        if about and page.height:
            matching = page.frame.filter(pl.any_horizontal(about)).select(names)
            found.update(hashable(row) for row in matching.rows())
    return found


# Making inputs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Word:
    """Assumed feedback about one output."""

    port: int
    feedback: Feedback


Said = dict[int, list[Word]]  # by how many events had been seen before


def _ended(case: Case, events: list[Event]) -> list[Event]:
    """The events, and the end of time on every input: what only waits comes out as well."""
    inputs = Running(case).operator.inputs
    ends = [Arrival(p, ending(s.schema)) for p, s in enumerate(inputs) if s.schema.time]
    return [*events, *ends]


def _feedback(case: Case, events: int, data: st.DataObject) -> Said:
    """Up to three words of feedback, each at some moment, about some output."""
    operator = Running(case).operator
    streams = operator.outputs or operator.inputs  # a sink is spoken to about what it is given
    said: Said = {}
    for _ in range(data.draw(st.integers(1, 3), "words")):
        moment = data.draw(st.integers(0, events), "feedback after")
        port = data.draw(st.integers(0, len(streams) - 1), "output")
        pattern: Pattern = data.draw(assumptions(streams[port].schema), "assumed")
        said.setdefault(moment, []).append(Word(port, Feedback(Intent.ASSUMED, pattern)))
    return said


def _thinned(running: Running, event: Event, data: st.DataObject) -> Event:
    """The event without some of the tuples that relayed feedback speaks of."""
    if not isinstance(event, Arrival) or not event.page.height:
        return event
    page, schema = event.page, running.operator.inputs[event.port].schema
    for port, relayed in running.relays:
        terms = relayed.schema.attributes == running.operator.inputs[port].schema.attributes
        assert terms, f"{running.case} relays {relayed} to input {port}, which is ({schema.ddl})"
        if port == event.port and relayed.intent is Intent.ASSUMED:
            spoken_of = relayed.pattern.mask(page.frame).to_list()
            drops = [data.draw(st.booleans(), "dropped upstream") for s in spoken_of if s]
            chosen = iter(drops)
            kept = [not (s and next(chosen)) for s in spoken_of]
            page = replace(page, frame=page.frame.filter(kept))
    return replace(event, page=page)


def _repeated(events: Sequence[Event], rounds: int) -> list[Event]:
    """The same arrivals again and again, each time a period later."""
    return [
        Arrival(event.port, shifted(event.page, turn * PERIOD), event.at + turn * PERIOD)
        for turn in range(rounds)
        for event in events
        if isinstance(event, Arrival) and event.page.height
    ]


def _with_heartbeats(events: Sequence[Event], inputs: Sequence[Stream]) -> list[Event]:
    """After every arrival, on every input, the strongest heartbeat that is true."""
    arrivals = [e for e in events if isinstance(e, Arrival)]
    timed = [p for p, s in enumerate(inputs) if s.schema.time is not None]
    least = [[END_OF_TIME] * len(inputs) for _ in range(len(arrivals) + 1)]
    for at in range(len(arrivals) - 1, -1, -1):
        port, page = arrivals[at].port, arrivals[at].page
        least[at] = list(least[at + 1])
        if port in timed:
            first = page.schema.ticks(page.frame).min()
            assert isinstance(first, int)
            least[at][port] = min(first, least[at][port])
    end = (ROUNDS + 1) * PERIOD
    out: list[Event] = []
    for arrival, after in zip(arrivals, least[1:], strict=True):
        out.append(replace(arrival, page=replace(arrival.page, punctuations=())))
        for port in timed:
            schema = inputs[port].schema
            mark = Punctuation.heartbeat(schema, min(after[port] - 1, end))
            out.append(Arrival(port, Page(schema, schema.empty(), (mark,)), arrival.at))
    return out


# State ------------------------------------------------------------------------------------------


class _CountingState(DictState):
    """State that knows how often it was written to, and that what is fresh is."""

    writes = 0
    last = ""

    def put(self, key: str, value: Value, *, fresh: bool = False) -> None:
        assert not (fresh and key in self.entries), f"{key} was said to be fresh"
        self.writes, self.last = self.writes + 1, key
        super().put(key, value)

    def remove(self, key: str) -> None:
        self.writes, self.last = self.writes + 1, key
        super().remove(key)


def _through_bytes(value: Value) -> Value:
    return Page.from_ipc(value.to_ipc()) if isinstance(value, Page) else bytes(value)
