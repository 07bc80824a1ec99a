"""Inputs of a merge that come and go, lag, and lack elements: a script for any merge to be run by.

    round   a                       b                         c
      0     ins(A,6,7) stable(3)                              ins(B,8,∞)
      1     adj(A,6,7,12) detach    attach from 9
      2                             ins(B,8,15)               adj(B,8,∞,10) stable(11)
      3     attach from 11          adj(B,8,15,10)            stable(∞)

In each round every input that is there has a turn, in the order of the names: it may attach, say
some rows of its stream, and detach (LMerge section V-B). Whoever attaches tells the table anew from
the time that it is guaranteed from, which may be one the output has still to reach; then it waits.
All may be gone for a while. In the last round one that has everything tells it to its end, so that
the merge of any script has the whole table.

A stream may lack elements (section V-C). The output has them nevertheless if another input shows
them in time, and a script keeps to that: an input that lacks something of an event says no stable
beyond its start until the output has it fully frozen; and where streams are in order, the input
waits before the event until one that has it has gone on. So that the order of turns within a round
makes no difference to this, what counts is how things were before the round.

>>> from interpunct.testing.revisable import in_order
>>> turns = script([("A", 1, 4), ("B", 2, 9)], in_order, Random(3), ordered=True)
>>> turns[-1].round, turns[-1].stable == END_OF_TIME
(4, True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from interpunct.model.elements import INSERT, STABLE, Row, elements
from interpunct.model.schema import END_OF_TIME, START_OF_TIME
from interpunct.testing.revisable import SCHEMA, Event, from_time

Key = tuple[Any, int]  # payload, Vs
Tell = Callable[[Sequence[Event], Random], list[Row]]


@dataclass(frozen=True)
class Gap:
    """An event of which a stream lacks something, and when all with its key have ended."""

    payload: Any
    vs: int
    until: int


@dataclass(frozen=True)
class Turn:
    """What one input does in a round: attach (guaranteed from a time) first, detach last; and what
    the output is stable at then."""

    round: int
    name: str
    rows: tuple[Row, ...]
    attach: int | None = None
    detach: bool = False
    gaps: tuple[Gap, ...] = ()
    stable: int = START_OF_TIME

    @property
    def lacks(self) -> frozenset[Key]:
        """The events that `Watch` is to ask others about."""
        return frozenset(((gap.payload,), gap.vs) for gap in self.gaps)


@dataclass
class _Input:
    """A stream that is there: what it has still to say, and how far it has come."""

    queue: list[Row]
    start: int = START_OF_TIME
    joined: bool = True
    gaps: tuple[Gap, ...] = ()
    stable: int = START_OF_TIME
    last: int = START_OF_TIME


def script(
    events: Sequence[Event],
    tell: Tell,
    random: Random,
    *,
    ordered: bool = False,
    lag: int = 0,
    names: str = "abc",
    rounds: int = 5,
    most: int = 12,
) -> list[Turn]:
    """Turns of these inputs, which tell these events; `tell` makes a stream of some of them.

    `ordered` where no input revises and all are in the order of Vs, `lag` of the output's stable.
    `most` is the greatest number of rows in a turn.
    """
    stage = _Stage(events, tell, random, ordered, lag, most)
    for name in names[: random.randint(1, len(names))]:
        stage.begin(name)
    turns = []
    for number in range(rounds):
        last = random.choice(names) if number == rounds - 1 else None
        stage.next_round()
        turns += [turn for n in names if (turn := stage.turn(number, n, ends=n == last))]
    return turns


@dataclass
class _Stage:
    """The inputs that are there, and how far the output is stable by what they have said."""

    events: Sequence[Event]
    tell: Tell
    random: Random
    ordered: bool
    lag: int
    most: int
    inputs: dict[str, _Input] = field(default_factory=dict)
    stable: int = START_OF_TIME
    front: int = START_OF_TIME  # the greatest Vs that came out
    before: tuple[int, int] = (START_OF_TIME, START_OF_TIME)  # both, before the round
    begun: bool = False  # the first input is there from the beginning, and says something

    def begin(self, name: str, start: int = START_OF_TIME, *, whole: bool = False) -> _Input:
        """A stream that tells everything that ends at `start` or later, perhaps with gaps."""
        told = self.tell(from_time(self.events, start), self.random)
        rows = elements(SCHEMA, told).rows()
        gaps = () if whole or self.random.random() < 0.5 else self._gaps(start)
        for gap in gaps:
            rows = _without_some(rows, gap, self.random)
        found = _Input(rows, start, start <= self.stable, gaps)
        self.inputs[name] = found
        return found

    def next_round(self) -> None:
        self.before = (self.stable, self.front)

    def turn(self, number: int, name: str, *, ends: bool) -> Turn | None:
        """What the input does now, if anything; the one that `ends` says all that is left."""
        present, attach = self.inputs.get(name), None
        if ends:
            if present is None or present.gaps or not present.joined:
                attach = self.before[0]
                present = self.begin(name, attach, whole=True)
        elif self.begun and self.random.random() < (0.15 if present else 0.5):
            attach = self._guaranteed_from()
            present = self.begin(name, attach)
        if present is None:
            return None
        most = len(present.queue) if ends else self.random.randint(not self.begun, self.most)
        rows = self._said(present, most)
        self._hear(present, rows)
        detach = not ends and self.random.random() < 0.2
        if detach:
            del self.inputs[name]
        gaps = present.gaps
        return Turn(number, name, tuple(rows), attach, detach, gaps, self.stable)

    def _guaranteed_from(self) -> int:
        """From the beginning, from what is stable, or from a time that is still to be reached."""
        now = self.before[0]
        later = min(max(now, 0) + self.random.choice([2, 5]), END_OF_TIME)
        return self.random.choice([START_OF_TIME, now, later, later])

    def _gaps(self, start: int) -> tuple[Gap, ...]:
        shown = from_time(self.events, start)
        chosen = self.random.sample(shown, min(len(shown), self.random.randint(1, 2)))
        keys = {(p, vs) for p, vs, _ in chosen}
        return tuple(
            Gap(p, vs, max(ve for q, at, ve in self.events if (q, at) == (p, vs)))
            for p, vs in sorted(keys)
        )

    def _said(self, present: _Input, most: int) -> list[Row]:
        """The next rows of the queue, as far as what the stream lacks permits."""
        rows: list[Row] = []
        while present.queue and len(rows) < most:
            row = present.queue[0]
            if self.ordered and any(self._waits(row, gap) for gap in present.gaps):
                break
            del present.queue[0]
            if not any(self._unsaid(row, gap) for gap in present.gaps):
                rows.append(row)
        return rows

    def _waits(self, row: Row, gap: Gap) -> bool:
        """An insert that would leave behind what nobody else has shown yet."""
        front = self.before[1]
        return bool(row[0] == INSERT and row[1] >= gap.vs >= front)

    def _unsaid(self, row: Row, gap: Gap) -> bool:
        """A stable that would deny the event, or freeze what the input cannot bear out."""
        stable = self.before[0]
        return bool(row[0] == STABLE and row[1] > gap.vs and stable <= gap.until)

    def _hear(self, present: _Input, rows: Sequence[Row]) -> None:
        """What an input says takes the output's stable forward if it is joined, and perhaps
        others that wait for it."""
        for row in rows:
            if row[0] == STABLE:
                present.stable = max(present.stable, int(row[1]))
            elif row[0] == INSERT:
                present.last = max(present.last, int(row[1]))
        heard, self.begun = True, self.begun or bool(rows)
        while heard:
            joined = [i for i in self.inputs.values() if i.joined]
            self.stable = max([self.stable, *(self._lagged(i.stable) for i in joined)])
            self.front = max([self.front, *(i.last for i in joined)])
            waiting = [i for i in self.inputs.values() if not i.joined and i.start <= self.stable]
            for each in waiting:
                each.joined = True
            heard = bool(waiting)

    def _lagged(self, at: int) -> int:
        return at if at in (START_OF_TIME, END_OF_TIME) else at - self.lag


def _without_some(rows: Sequence[Row], gap: Gap, random: Random) -> list[Row]:
    """The stream without some of the elements of an event, or without all of them."""
    places = [n for n, r in enumerate(rows) if (r[-1], r[1]) == (gap.payload, gap.vs)]
    lost = set(random.sample(places, random.randint(1, len(places)))) if places else set()
    return [row for n, row in enumerate(rows) if n not in lost]


# What happens in a script -----------------------------------------------------------------------

FATES = ("comes later", "leaves", "returns", "restarts", "waits", "nobody is there", "a gap")


def fates(turns: Sequence[Turn]) -> set[str]:
    """Which of the things happen that can happen to inputs."""
    found: set[str] = set()
    there: set[str] = {t.name for t in turns if t.round == 0 and t.attach is None}
    known, at, number = set(there), START_OF_TIME, 0
    for turn in turns:
        if turn.round > number and not there:
            found.add("nobody is there")
        if turn.attach is not None:
            again = "restarts" if turn.name in there else "returns"
            found.add(again if turn.name in known else "comes later")
            found |= {"waits"} if turn.attach > at else set()
        found |= {"a gap"} if turn.gaps and turn.rows else set()
        there |= {turn.name}
        known |= {turn.name}
        if turn.detach:
            found.add("leaves")
            there -= {turn.name}
        at, number = turn.stable, turn.round
    return found & set(FATES)
