"""Union: one stream from several of the same schema.

    A:  1     5        9 |            registers  A=9  B=5
    B:     3     5       |            out: 1 3 5 5        (9 waits for B)

Timestamped streams are united in time order, which can make a tuple wait for the other inputs
(ETS Figures 1 and 6); streams with latent timestamps, and unions asked to keep arrival order, pass
every tuple on at once. Either way the output heartbeat is the least of the inputs', so the
operators further along need no order to know how far time has come (Punctuate section 4).
"""

from __future__ import annotations

from collections.abc import Sequence

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME
from interpunct.operators.contract import Demand, Emission, Held, Operator, Stream
from interpunct.operators.promises import PromiseBook
from interpunct.operators.responses import Response, at_input
from interpunct.operators.state import Record, State
from interpunct.operators.tsm import TsmInputs, in_order


class Union(Operator):
    """Ordered union of timestamped streams: idle-waiting prone."""

    idle_waiting = True

    def __init__(self, name: str, inputs: Sequence[Stream], state: State | None = None) -> None:
        schema = inputs[0].schema
        output = Stream(schema, Properties(ordered=True, strict=False, keyed=False))
        super().__init__(name, inputs, [output], AttributeMap.identity(schema, len(inputs)), state)
        self._tsm = TsmInputs(self.state, inputs)
        self._book = PromiseBook(self.state, schema, len(inputs))
        self._record = Record(self.state, "out", {"last": START_OF_TIME, "given": START_OF_TIME})

    def on_page(self, port: int, page: Page) -> Emission:
        self._tsm.add(port, page.frame, page.stamp)
        return self._release()

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        heartbeat = punctuation.heartbeat_ticks
        if heartbeat is None:
            self._book.add(port, punctuation.pattern)
        else:
            self._tsm.promise(port, heartbeat)
        return self._release()

    def _release(self) -> Emission:
        """Everything stamped at or below the least register, in order (Figure 6)."""
        frames = [f for frames in self._tsm.take() for f in frames]
        emission = Emission()
        if frames:
            self._record["last"] = self._tsm.released
            emission = self.tuples(in_order(self.output, frames))
        if self._book:
            settled = self._book.settle([w.all() for w in self._tsm.waiting], self._tsm.sure)
            if settled:
                emission.extend(Emission([(0, Page(self.output, self.output.empty(), settled))]))
        sure = self._tsm.sure
        if sure > self._record["given"] and sure >= self._record["last"]:
            self._record["given"] = sure  # it says more than the tuples' own order does
            emission.extend(self.heartbeat(sure))
        return emission

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """Whatever its input, a tuple that matches is not let in, and those that wait go."""
        del port
        return at_input("¬[…]", dict.fromkeys(range(len(self.inputs)), pattern), purge=True)

    def purge(self, port: int, pattern: Pattern) -> int:
        return self._tsm.waiting[port].purge(pattern)

    def needs(self) -> Demand | None:
        return self._tsm.needs()

    def demand(self, wanted: int) -> Demand | None:
        return self._tsm.demand(wanted)

    def waiting(self) -> int:
        return self._tsm.rows

    def _held(self) -> Held:
        return self._tsm.held() + Held(punctuations=len(self._book))

    def _save(self) -> None:
        self._tsm.save()
        self._book.save()
        self._record.save()


class ArrivalUnion(Operator):
    """Union in arrival order: nothing waits; punctuation alone tells the progress of time."""

    def __init__(self, name: str, inputs: Sequence[Stream], state: State | None = None) -> None:
        schema = inputs[0].schema
        super().__init__(
            name, inputs, [Stream(schema)], AttributeMap.identity(schema, len(inputs)), state
        )
        self._book = PromiseBook(self.state, schema, len(inputs))
        start = [START_OF_TIME] * len(inputs)
        self._record = Record(self.state, "out", {"sure": start, "given": START_OF_TIME})

    def on_page(self, port: int, page: Page) -> Emission:
        emission = self.tuples(page.frame)
        if self.output.time is not None and self.inputs[port].properties.ordered:
            last = int(self.output.ticks(page.frame)[-1])
            emission.extend(self._advance(port, last - 1))
        return emission

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        heartbeat = punctuation.heartbeat_ticks
        if heartbeat is not None:
            return self._advance(port, heartbeat)
        self._book.add(port, punctuation.pattern)
        settled = self._book.settle([], self._record["given"])
        return Emission([(0, Page(self.output, self.output.empty(), settled))] if settled else [])

    def _advance(self, port: int, heartbeat: int) -> Emission:
        sure: list[int] = list(self._record["sure"])
        sure[port] = max(sure[port], heartbeat)
        least = min(sure)
        self._record["sure"] = sure
        if least <= self._record["given"]:
            return Emission()
        self._record["given"] = least
        return self.heartbeat(least)

    def characterise(self, pattern: Pattern, port: int) -> Response:
        del port
        return at_input("¬[…]", dict.fromkeys(range(len(self.inputs)), pattern))

    def demand(self, wanted: int) -> Demand | None:
        sure: list[int] = self._record["sure"]
        port = sure.index(min(sure))
        return Demand(port, wanted) if sure[port] < wanted else None

    def _held(self) -> Held:
        return Held(punctuations=len(self._book))

    def _save(self) -> None:
        self._book.save()
        self._record.save()


def union(
    name: str, inputs: Sequence[Stream], *, in_order: bool = True, state: State | None = None
) -> Operator:
    """The union these inputs call for: in time order when they have a time, else as they come."""
    if in_order and inputs[0].schema.time is not None:
        return Union(name, inputs, state)
    return ArrivalUnion(name, inputs, state)
