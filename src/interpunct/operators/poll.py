"""Poll: production on demand (Feedback Example 4): nothing leaves until somebody asks for it.

    in:   1  4  6  9                          keep 5
    ![time ≤ 6]                 out: 4 6      1 was forgotten: the heartbeat had come to 7
    ![*]                        out: 9        each tuple leaves once

Demanded feedback is the request, and goes on upstream as well, where there may be more to be had.
What nobody has asked for is forgotten once it is `keep` behind the input's heartbeat, and that is
what the output promises.
"""

from __future__ import annotations

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.errors import FlowError
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import END_OF_TIME, START_OF_TIME
from interpunct.operators.backlog import Backlog
from interpunct.operators.contract import Demand, Emission, Held, Operator, Stream
from interpunct.operators.promises import PromiseBook
from interpunct.operators.responses import Response, at_input
from interpunct.operators.state import Record, State


class Poll(Operator):
    """Holds tuples for a while; each leaves once, when it is demanded."""

    def __init__(self, name: str, stream: Stream, keep: int, state: State | None = None) -> None:
        schema = stream.schema
        if keep < 0:
            raise FlowError(f"poll {name!r}", "to keep for 0 or more", str(keep), "Correct it.")
        schema.ordered_by  # noqa: B018  without time nothing could be forgotten
        super().__init__(name, [stream], [Stream(schema)], AttributeMap.identity(schema), state)
        self._keep = keep
        self._kept = Backlog(self.state, "kept", schema)
        self._book = PromiseBook(self.state, schema, 1)
        self._record = Record(self.state, "poll", {"given": START_OF_TIME})

    def on_page(self, port: int, page: Page) -> Emission:
        self._kept.add(page.frame, page.stamp)
        if not self.inputs[port].properties.ordered:
            return Emission()
        return self._reach(int(self.output.ticks(page.frame)[-1]) - 1)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        heartbeat = punctuation.heartbeat_ticks
        if heartbeat is not None:
            return self._reach(heartbeat)
        self._book.add(port, punctuation.pattern)
        return self._settled()

    def _reach(self, heartbeat: int) -> Emission:
        """Forget what is too old; nothing of it will leave any more."""
        upto = heartbeat if heartbeat >= END_OF_TIME else heartbeat - self._keep
        if upto <= self._record["given"]:
            return Emission()
        self._record["given"] = upto
        self._kept.take(upto)
        emission = self._settled()
        emission.extend(self.heartbeat(upto))
        return emission

    def _settled(self) -> Emission:
        """The input's other promises, once nothing held matches them."""
        if not self._book:
            return Emission()
        settled = self._book.settle([self._kept.all()], self._record["given"])
        return Emission([(0, Page(self.output, self.output.empty(), settled))] if settled else [])

    def on_wish(self, feedback: Feedback, port: int) -> Emission:
        """A demand lets out what matches; a desire has nothing to hurry here."""
        del port
        if feedback.intent is not Intent.DEMANDED:
            return Emission()
        emission = self.tuples(self._kept.matching(feedback.pattern))
        emission.extend(self._settled())
        return emission

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """Nobody will ask for what matches."""
        del port
        return at_input("¬[…]", {0: pattern}, purge=True)

    def purge(self, port: int, pattern: Pattern) -> int:
        del port
        return self._kept.purge(pattern)

    def demand(self, wanted: int) -> Demand | None:
        return Demand(0, wanted + self._keep) if self._record["given"] < wanted else None

    def _held(self) -> Held:
        return Held(tuples=self._kept.rows, bytes=self._kept.nbytes(), punctuations=len(self._book))

    def _save(self) -> None:
        self._kept.save()
        self._book.save()
        self._record.save()
