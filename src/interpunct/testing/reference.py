"""The papers' rules, literally: one tuple at a time, with queues, in plain Python.

These are oracles for tests. A tuple is an Element with a timestamp and a row; a punctuation is an
Element without a row: nothing after it on its input is stamped at or below it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from statistics import median
from typing import Any

from interpunct.model.page import Page
from interpunct.model.schema import START_OF_TIME
from interpunct.testing.cases import hashable

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Element:
    """A data tuple, or a punctuation when `row` is None."""

    time: int
    row: Row | None = None


def elements(page: Page) -> list[Element]:
    """A page one by one: its tuples, then its heartbeats."""
    ticks = page.schema.ticks(page.frame).to_list()
    tuples = [Element(t, hashable(r)) for t, r in zip(ticks, page.frame.rows(), strict=True)]
    beats = [p.heartbeat_ticks for p in page.punctuations]
    return tuples + [Element(b) for b in beats if b is not None]


class TsmOperator:
    """Queues and TSM registers of an idle-waiting operator (ETS section 4.1, Figures 5 and 6).

    The register of an input has the timestamp of its current element, and keeps it when the
    element is gone until the next one comes.
    """

    def __init__(self, inputs: int) -> None:
        self.queues: list[deque[Element]] = [deque() for _ in range(inputs)]
        self.registers = [START_OF_TIME] * inputs
        self.latest = [START_OF_TIME] * inputs
        self.out: list[Element] = []

    def arrive(self, port: int, element: Element) -> None:
        """Run until `more` is false; a punctuation behind its own input's tuples says nothing."""
        if element.time < self.latest[port]:
            assert element.row is None, "an ordered input"
            return
        self.latest[port] = element.time
        self.queues[port].append(element)
        self._update()
        while self.more():
            self.execute()

    def more(self) -> bool:
        """Figure 5: some input has an element stamped τ, the least register."""
        least = min(self.registers)
        return any(q and q[0].time == least for q in self.queues)

    def execute(self) -> None:
        """Figure 6: an element stamped τ, a data tuple if there is one."""
        least = min(self.registers)
        ready = [p for p, q in enumerate(self.queues) if q and q[0].time == least]
        port = next((p for p in ready if self.queues[p][0].row is not None), ready[0])
        element = self.queues[port].popleft()
        self._update()
        if element.row is None:
            self.out.append(Element(least))
        else:
            self.produce(port, element)

    def produce(self, port: int, element: Element) -> None:
        raise NotImplementedError

    def _update(self) -> None:
        for port, queue in enumerate(self.queues):
            if queue:
                self.registers[port] = queue[0].time

    def tuples(self) -> list[Element]:
        return [e for e in self.out if e.row is not None]


class UnionByTuple(TsmOperator):
    """ETS Figure 6, union: deliver the tuple to the output."""

    def produce(self, port: int, element: Element) -> None:
        del port
        self.out.append(element)


class JoinByTuple(TsmOperator):
    """ETS Figure 6, window join of two or more inputs; results are tuples of rows.

    `match` says whether rows, one per input, belong together; `windows[j]` is how long a tuple of
    input j stays joinable.
    """

    def __init__(self, windows: Sequence[int], match: Callable[[Sequence[Row]], bool]) -> None:
        super().__init__(len(windows))
        self.windows, self.match = list(windows), match
        self.stored: list[list[Element]] = [[] for _ in windows]

    def produce(self, port: int, element: Element) -> None:
        for j, window in enumerate(self.stored):  # expired tuples leave their windows
            window[:] = [e for e in window if e.time >= element.time - self.windows[j]]
        sides = [[element] if j == port else w for j, w in enumerate(self.stored)]
        for combination in product(*sides):
            rows = [e.row for e in combination if e.row is not None]
            if self.match(rows):
                self.out.append(Element(element.time, tuple(rows)))
        self.stored[port].append(element)


@dataclass
class SortByTuple:
    """Holds tuples until a heartbeat covers them."""

    held: list[Element] = field(default_factory=list)
    out: list[Element] = field(default_factory=list)

    def arrive(self, element: Element) -> list[Element]:
        """What this element lets go, in order, the heartbeat last."""
        if element.row is not None:
            self.held.append(element)
            return []
        gone = sorted((e for e in self.held if e.time <= element.time), key=lambda e: e.time)
        self.held = [e for e in self.held if e.time > element.time]
        released = [*gone, element]
        self.out += released
        return released


# By definition, over whole streams --------------------------------------------------------------


def joined(
    inputs: Sequence[Sequence[Element]],
    windows: Sequence[int],
    match: Callable[[Sequence[Row]], bool],
    *,
    left: bool = False,
) -> list[Element]:
    """Every combination whose latest time is within all its members' windows, stamped with it.

    With `left`, tuples of input 0 in no combination follow alone, stamped when their window ends;
    the other members are None.
    """
    results: list[Element] = []
    met: set[int] = set()
    numbered = [list(enumerate(e for e in own if e.row is not None)) for own in inputs]
    for combination in product(*numbered):
        latest = max(e.time for _, e in combination)
        inside = all(latest - e.time <= w for (_, e), w in zip(combination, windows, strict=True))
        rows = [e.row for _, e in combination if e.row is not None]
        if inside and match(rows):
            results.append(Element(latest, tuple(rows)))
            met.add(combination[0][0])
    if left:
        nobody = (None,) * (len(inputs) - 1)
        alone = [e for number, e in numbered[0] if number not in met]
        results += [Element(e.time + windows[0], (e.row, *nobody)) for e in alone]
    return results


def equal_keys(places: Sequence[Sequence[int]]) -> Callable[[Sequence[Row]], bool]:
    """Rows match when their keys are equal and not null; `places[j]` says where in input j."""

    def match(rows: Sequence[Row]) -> bool:
        keys = [tuple(row[i] for i in place) for row, place in zip(rows, places, strict=True)]
        return None not in keys[0] and all(key == keys[0] for key in keys)

    return match


def windowed(
    tuples: Iterable[Element],
    size: int,
    slide: int,
    groups: Sequence[int],
    aggregates: Sequence[tuple[str, int]],
) -> dict[tuple[int, Row], Row]:
    """By window start and group, the aggregates (name, place) over the tuples in the window."""
    contents: dict[tuple[int, Row], list[Row]] = {}
    for element in tuples:
        assert element.row is not None
        group = tuple(element.row[g] for g in groups)
        start = element.time // slide * slide
        while start + size > element.time:
            contents.setdefault((start, group), []).append(element.row)
            start -= slide
    return {key: computed(rows, aggregates) for key, rows in contents.items()}


def counted(
    tuples: Iterable[Element],
    rows: int,
    slide: int,
    groups: Sequence[int],
    aggregates: Sequence[tuple[str, int]],
) -> dict[tuple[Row, int], tuple[int, Row]]:
    """By group and number of the window: the time of its last tuple, and the aggregates."""
    seen: dict[Row, list[Element]] = {}
    for element in tuples:
        assert element.row is not None
        seen.setdefault(tuple(element.row[g] for g in groups), []).append(element)
    results = {}
    for group, own in seen.items():
        for start in range(0, len(own) - rows + 1, slide):
            window = own[start : start + rows]
            values = computed([e.row for e in window if e.row is not None], aggregates)
            results[group, start // slide] = (window[-1].time, values)
    return results


def computed(rows: Sequence[Row], aggregates: Sequence[tuple[str, int]]) -> Row:
    return tuple(AGGREGATES[name]([row[place] for row in rows]) for name, place in aggregates)


def _known(values: Sequence[Any]) -> list[Any]:
    return [v for v in values if v is not None]


AGGREGATES: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "count": lambda v: len(_known(v)),
    "count(*)": len,
    "sum": lambda v: sum(_known(v)) if _known(v) else None,
    "min": lambda v: min(_known(v), default=None),
    "max": lambda v: max(_known(v), default=None),
    "avg": lambda v: sum(_known(v)) / len(_known(v)) if _known(v) else None,
    "median": lambda v: float(median(_known(v))) if _known(v) else None,
    "first": lambda v: v[0],
    "last": lambda v: v[-1],
}
