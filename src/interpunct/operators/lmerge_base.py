"""What all logical merges share: inputs that come and go, what is stable, whom not to believe.

      in 0:  ins(A,6,10)                 adj(A,6,10,15)                      inputs: equivalent,
      in 1:             ins(A,6,12) ins(B,7,14)    adj(A,6,12,15) stable(16)  each in its own way
      out:   ins(A,6,10)            ins(B,7,14)    adj(A,6,10,15) stable(16)  one stream, like them

A logical merge puts out one stream that is compatible with all of its inputs, which are physically
different presentations of one table (LMerge section III). The variants differ in what they know of
their inputs; this is the part they do not differ in.

*Joining and leaving* (section V-B). An input is attached with the time from which it is guaranteed:
it shows every event that ends at or after it. Until the output's stable has reached that time the
input is joining, and nothing is decided by it, least of all how far time is stable; from then on it
is joined, and all the others may fail. An input that detaches is forgotten; it may attach again.
When all have gone the output waits where it is for one that is guaranteed from there.

*Missing elements* (section V-C). What an input lacks, another may show, as long as nobody has
declared the time of it stable without it.

*Contradiction.* An input that breaks its own stable or its declared order, or whose stable would
change what the output has already frozen, is quarantined: it is heard no more until it attaches
again, and `reports()` says what it did. The paper assumes that there is none.

Punctuations other than stable say nothing of an element's revisions and end here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.elements import VS, describe, infinity, payload_names
from interpunct.model.errors import FlowError
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME, to_ticks
from interpunct.operators.contract import Emission, Operator, Stream
from interpunct.operators.lmerge_fast_forward import last_of, of_inserts, passed, relayed
from interpunct.operators.lmerge_policy import MergePolicy
from interpunct.operators.lmerge_rows import Batch, Flags, Output, running
from interpunct.operators.responses import Response, at_output
from interpunct.operators.state import Record, State

JOINED, JOINING, DETACHED, QUARANTINED = "joined", "joining", "detached", "quarantined"
MOST_REPORTS = 100


@dataclass
class Seat:
    """One input: its status, from when it is guaranteed, its own stable, the Vs it showed last."""

    status: str = JOINED
    guaranteed_from: int = START_OF_TIME
    stable: int = START_OF_TIME
    last: int = START_OF_TIME

    @property
    def heard(self) -> bool:
        return self.status in (JOINED, JOINING)


@dataclass(frozen=True)
class Report:
    """Why an input was quarantined: the element or stable that did it, and what it contradicts."""

    input: int
    element: str
    contradicts: str
    max_stable: int


class LogicalMerge(Operator):
    """The parts a variant adds: `_merge` for elements, `_joined`, `_left` for inputs."""

    variant: ClassVar[str]

    def __init__(
        self,
        name: str,
        inputs: Sequence[Stream],
        policy: MergePolicy | None = None,
        state: State | None = None,
    ) -> None:
        schema = inputs[0].schema
        self.payload = payload_names(schema)
        output = Stream(schema, self._properties(inputs))
        mapping = AttributeMap.identity(schema, len(inputs))
        super().__init__(name, inputs, [output], mapping, state)
        self.policy = MergePolicy() if policy is None else policy
        self.fast_forward = False  # whether slower inputs are told what is past
        self._forever = infinity(schema)
        initial = {
            "max_stable": START_OF_TIME, "leader": 0, "followed": None,
            "seats": [asdict(Seat()) for _ in inputs], "reports": [], "ignored": 0,
            "forgone": START_OF_TIME, "begun": False,
        }  # fmt: skip
        self._record = Record(self.state, "lmerge", initial)
        self._seats = [Seat(**s) for s in self._record["seats"]]
        self.inputs += (inputs[0],) * (len(self._seats) - len(inputs))
        self._prepare()

    def _prepare(self) -> None:
        """Make what the variant keeps beside the seats, which are there."""

    def _properties(self, inputs: Sequence[Stream]) -> Properties:
        """What is known of the output: it is revised, even where no input is."""
        known = [s.properties for s in inputs]
        return Properties(insert_only=False, keyed=all(p.keyed or p.strict for p in known))

    # Elements -----------------------------------------------------------------------------------

    def on_page(self, port: int, page: Page) -> Emission:
        seat = self._seats[port]
        if not seat.heard:
            self._record["ignored"] += page.height
            return Emission()
        self.begin()
        before, batch = self.max_stable, Batch.of(page.frame)
        broken = self._broken(seat, batch)
        honest = batch.between(0, broken[0]) if broken else batch
        out = Output(self.output)
        if len(honest):
            self._note(seat, honest)
            self._merge(port, honest, out)
        if broken and seat.heard:
            row, rule = broken
            self.quarantine(port, describe(self.output, page.frame.slice(row, 1)), rule)
        emission = self.tuples(out.taken())
        if self.fast_forward and self.max_stable > before:
            emission.relays += self._hurried()
        return emission

    def _hurried(self) -> list[tuple[int, Feedback]]:
        """Slower inputs are told which elements nobody needs any more (section V-D)."""
        patterns = passed(self.output, self.max_stable, self.variant)
        slower = [p for p in range(len(self._seats)) if self._behind(p, self.max_stable)]
        return [(p, Feedback(Intent.ASSUMED, pattern)) for p in slower for pattern in patterns]

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        del port, punctuation
        return Emission()

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """The output is guarded: an input kept from showing an event would deny it. Only of the
        past, where nothing can be denied any more, are the inputs told (`forgone`)."""
        told = relayed(self.output, pattern, self.variant, self.forgone)
        if told is None:
            return at_output("¬[…]", pattern, port)
        inputs = dict.fromkeys(range(len(self.inputs)), told)
        return Response("¬[past]", guard_output={port: pattern}, propagate=inputs)

    def on_feedback(self, feedback: Feedback, port: int = 0) -> Emission:
        emission = super().on_feedback(feedback, port)
        if feedback.intent is Intent.ASSUMED and emission.relays:
            past = last_of(feedback.pattern) + 1
            if of_inserts(feedback.pattern) and past > self.forgone:
                self._record["forgone"] = past
                if past > self.max_stable:
                    self._forget_past()
            emission.relays = [(p, f) for p, f in emission.relays if self._behind(p, past)]
        return emission

    @property
    def forgone(self) -> int:
        """Before this time whoever reads the output needs nothing, and inputs may leave out what
        ended; so until the output is stable so far, none of them denies anything by it."""
        at: int = self._record["forgone"]
        return at

    def _forget_past(self) -> None:
        """Make what is known of the inputs what it would be without what is `forgone`."""

    def _behind(self, port: int, at: int) -> bool:
        return self._seats[port].heard and self._seats[port].stable < at

    @abstractmethod
    def _merge(self, port: int, batch: Batch, out: Output) -> None:
        """Elements of an input that is heard."""

    def _rules(self, seat: Seat, batch: Batch) -> list[tuple[Flags, str]]:
        """What the elements of one input must not do, as masks."""
        before = running(np.where(batch.stable, batch.vs, START_OF_TIME), seat.stable)[:-1]
        late = (batch.insert & (batch.vs < before)) | (
            batch.adjust & ((batch.vold < before) | (batch.ve < before))
        )
        vague = (batch.vs == START_OF_TIME) | ~(batch.insert | batch.adjust | batch.stable)
        vague |= (batch.insert | batch.adjust) & (batch.ve == START_OF_TIME)
        vague |= batch.adjust & (batch.vold == START_OF_TIME)
        upside = (batch.insert & (batch.ve <= batch.vs)) | (batch.adjust & (batch.ve < batch.vs))
        return [
            (vague, "that it is an insert, adjust or stable with its times"),
            (late, "its own stable"),
            (upside, "that an event ends after it starts"),
        ]

    def _broken(self, seat: Seat, batch: Batch) -> tuple[int, str] | None:
        """The first element that breaks the input's own promises, and which."""
        found = [(int(m.argmax()), rule) for m, rule in self._rules(seat, batch) if m.any()]
        return min(found, key=lambda f: f[0]) if found else None

    def _note(self, seat: Seat, batch: Batch) -> None:
        if batch.stable.any():
            seat.stable = max(seat.stable, int(batch.vs[batch.stable].max()))
        if batch.insert.any():
            seat.last = max(seat.last, int(batch.vs[batch.insert].max()))

    # What is stable -----------------------------------------------------------------------------

    @property
    def max_stable(self) -> int:
        """The output's stable, in ticks."""
        at: int = self._record["max_stable"]
        return at

    def lagged(self, at: int) -> int:
        """The output stable that an input's stable allows; the end of time has no lag."""
        return at if at >= self._forever else at - self.policy.stable_lag

    def _advance(self, at: int, out: Output) -> None:
        """The output is stable up to here, and inputs that are guaranteed from here are joined."""
        self._record["max_stable"] = at
        for port, seat in enumerate(self._seats):
            if seat.status == JOINING and seat.guaranteed_from <= self.max_stable:
                seat.status = JOINED
                self._new_leader()
                self._joined(port, out)

    @property
    def leader(self) -> int | None:
        """The input that took the stable forward last, at first input 0. When it goes, the one
        that is furthest of the rest leads."""
        port: int | None = self._record["leader"]
        return port

    def _new_leader(self) -> None:
        if self.leader not in self.joined:
            furthest = max(self.joined, key=lambda p: (self._seats[p].stable, -p), default=None)
            self._record["leader"] = furthest

    @property
    def joined(self) -> list[int]:
        return [p for p, seat in enumerate(self._seats) if seat.status == JOINED]

    # Inputs that come and go --------------------------------------------------------------------

    def attach(self, port: int, guaranteed_from: Any = START_OF_TIME) -> None:
        """An input begins, or begins again; it shows every event with Ve ≥ `guaranteed_from`."""
        if not 0 <= port <= len(self._seats):
            raise FlowError(
                f"{self.name}.attach", f"an input from 0 to {len(self._seats)}", str(port),
                "New inputs are numbered one after another.",
            )  # fmt: skip
        if port < len(self._seats) and self._seats[port].heard:
            raise FlowError(
                f"{self.name}.attach", "an input that is not attached", f"input {port}",
                "Detach it first.",
            )  # fmt: skip
        start = to_ticks(guaranteed_from)
        seat = Seat(JOINED if start <= self.max_stable else JOINING, start)
        if not self._record["begun"] and not self.joined:
            seat.status = JOINED  # nothing has been said yet: the output begins where it does
        if port == len(self._seats):
            self._seats.append(seat)
            self.inputs += (self.inputs[0],)
            self._added()
        else:
            self._seats[port] = seat
        self._new_leader()

    def begin(self) -> None:
        """Something has been said, to this merge or to another that has a share of the same inputs:
        whoever attaches from now on takes over from those before it, though they may be gone."""
        self._record["begun"] = True

    def detach(self, port: int) -> None:
        """An input has ended or failed; what it showed counts no more, what came out stays."""
        self._leave(port, DETACHED)

    def quarantine(self, port: int, element: str, contradicts: str) -> None:
        """An input that cannot be believed is heard no more."""
        report = Report(port, element, contradicts, self.max_stable)
        reports = [*self._record["reports"], asdict(report)]
        self._record["reports"] = reports[-MOST_REPORTS:]
        self._leave(port, QUARANTINED)

    def _leave(self, port: int, status: str) -> None:
        self._seats[port].status = status
        self._left(port)
        self._new_leader()
        if self._record["followed"] == port:
            self._record["followed"] = None

    def status(self, port: int) -> str:
        return self._seats[port].status

    def stable_of(self, port: int) -> int:
        """How far an input says that it is stable."""
        return self._seats[port].stable

    def reports(self) -> list[Report]:
        """Why inputs were quarantined, the last hundred times."""
        return [Report(**r) for r in self._record["reports"]]

    @property
    def ignored(self) -> int:
        """Elements of inputs that were detached or quarantined."""
        count: int = self._record["ignored"]
        return count

    @abstractmethod
    def _joined(self, port: int, out: Output) -> None:
        """An input that was joining counts from now on."""

    @abstractmethod
    def _left(self, port: int) -> None:
        """Forget what an input has shown."""

    def _added(self) -> None:
        """Make room for an input that was not there before."""

    def _stable_text(self, at: int) -> str:
        value = self.output.with_time(VS).value_of(at)
        return f"stable({'∞' if at >= self._forever else value})"

    def _save(self) -> None:
        self._record["seats"] = [asdict(s) for s in self._seats]
        self._record.save()
