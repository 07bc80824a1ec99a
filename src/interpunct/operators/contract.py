"""The contract every operator keeps.

An operator reacts to a page, to a punctuation and to feedback, and answers each with an Emission:
pages for its outputs, feedback for its inputs. It never calls another operator and never reads
the clock. What it keeps between calls goes through State, and `held()` says how much that is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import polars as pl

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import Schema
from interpunct.operators.guards import Guards
from interpunct.operators.responses import Response
from interpunct.operators.state import DictState, State


@dataclass(frozen=True)
class Stream:
    """A stream as an operator sees it: its schema and what is known of it."""

    schema: Schema
    properties: Properties = field(default_factory=Properties)


@dataclass(frozen=True)
class Demand:
    """A heartbeat an operator needs on one of its inputs before anything can move."""

    port: int
    wanted: int


@dataclass(frozen=True)
class Held:
    """What an operator holds: tuples, their bytes, punctuations it remembers, guards."""

    tuples: int = 0
    bytes: int = 0
    punctuations: int = 0
    guards: int = 0

    def __add__(self, other: Held) -> Held:
        return Held(
            self.tuples + other.tuples,
            self.bytes + other.bytes,
            self.punctuations + other.punctuations,
            self.guards + other.guards,
        )


@dataclass
class Emission:
    """What a call produced: pages by output port, feedback by input port."""

    pages: list[tuple[int, Page]] = field(default_factory=list)
    relays: list[tuple[int, Feedback]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.pages or self.relays)

    def extend(self, other: Emission) -> None:
        """Add what came later; a frame joins the last page unless a punctuation closed it."""
        self.relays += other.relays
        for port, page in other.pages:
            last = self._last(port)
            if last is not None and not page.height:
                at, before = last
                merged = _with_punctuations(before, page.punctuations)
                self.pages[at] = (port, merged)
            else:
                self.pages.append((port, page))

    def _last(self, port: int) -> tuple[int, Page] | None:
        for at in range(len(self.pages) - 1, -1, -1):
            if self.pages[at][0] == port:
                return at, self.pages[at][1]
        return None


def _with_punctuations(page: Page, more: tuple[Punctuation, ...]) -> Page:
    """The page with punctuations added; one that a later one implies is dropped."""
    kept = tuple(p for p in page.punctuations if not any(p.implies(q) for q in more))
    return replace(page, punctuations=kept + more)


class Operator(ABC):
    """One operator of a running flow."""

    idle_waiting: ClassVar[bool] = False  # may hold tuples back until another input moves
    order_sensitive: ClassVar[bool] = False  # needs its input in time order

    def __init__(
        self,
        name: str,
        inputs: Sequence[Stream],
        outputs: Sequence[Stream],
        attributes: AttributeMap,
        state: State | None = None,
    ) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.attributes = attributes
        self.state: State = DictState() if state is None else state
        self._guards: Guards | None = None
        self._guarded = self.state.get("guards") is not None  # whether there may be a guard

    @property
    def output(self) -> Schema:
        return self.outputs[0].schema

    @abstractmethod
    def on_page(self, port: int, page: Page) -> Emission:
        """Tuples have arrived (the page's punctuations are handled by `accept`)."""

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        """Pass a punctuation on in output terms, or drop it when they cannot express it."""
        pattern = self.attributes.forward(punctuation.pattern, port, self.output)
        if pattern is None:
            return Emission()
        return self.promise(Punctuation(pattern))

    # Feedback -------------------------------------------------------------------------------

    def characterise(self, pattern: Pattern, port: int) -> Response | None:
        """The row of this operator's table for assumed feedback on an output (Feedback 4.3).

        None: unaware of feedback. It ignores it and does not relay it (section 5).
        """
        del pattern, port
        return None

    def on_feedback(self, feedback: Feedback, port: int = 0) -> Emission:
        """Feedback from downstream, about the output `port`."""
        response = self.characterise(feedback.pattern, port)
        if response is None:
            return Emission()
        if feedback.intent is Intent.ASSUMED:
            return self._exploit(response)
        emission = self.on_wish(feedback, port)
        emission.relays += self._wishes(feedback)
        return emission

    def on_wish(self, feedback: Feedback, port: int) -> Emission:
        """Desired or demanded feedback: serve it here, if there is something to be served."""
        del feedback, port
        return Emission()

    def purge(self, port: int, pattern: Pattern) -> int:
        """Forget the held tuples of an input that match; returns how many there were."""
        del port, pattern
        return 0

    def close(self, pattern: Pattern) -> Emission:
        """From now on give up each open group once its result matches."""
        del pattern
        return Emission()

    @property
    def guards(self) -> Guards:
        if self._guards is None:
            streams = [[(s.schema, s.properties.ordered) for s in side]
                       for side in (self.inputs, self.outputs)]  # fmt: skip
            self._guards = Guards(self.state, *streams)
        return self._guards

    def skipped(self) -> dict[str, int]:
        """How many tuples feedback has spared this operator, by what it said."""
        return self.guards.skipped() if self._has_guards else {}

    @property
    def _has_guards(self) -> bool:
        """Whether there are guards, or have been: here, or in the state it was built on."""
        return self._guarded or self._guards is not None

    def _exploit(self, response: Response) -> Emission:
        """Install the guards, then purge what they protect, then tell those upstream.

        What the guards already know was acted upon before, and is not told again.
        """
        guards = self.guards
        known = [guards.inputs[p].covers(g) for p, g in response.guard_input.items()]
        known += [guards.outputs[p].covers(g) for p, g in response.guard_output.items()]
        if known and all(known) and response.closing is None:
            return Emission()
        if not guards.install(response.guard_input, response.guard_output):
            return Emission()
        self._guarded = bool(guards)
        guards.count(sum(self.purge(p, pattern) for p, pattern in response.purge.items()))
        emission = Emission() if response.closing is None else self.close(response.closing)
        told = response.propagate.items()
        emission.relays += [(p, Feedback(Intent.ASSUMED, pattern)) for p, pattern in told]
        return emission

    def _wishes(self, feedback: Feedback) -> list[tuple[int, Feedback]]:
        """The wish in terms of each input. A wish that says too much only hurries too much, so
        conditions that an input cannot express are left out, unless none would remain."""
        found = []
        for port, stream in enumerate(self.inputs):
            carried = [n for n in feedback.pattern.names if self.attributes.input_of(n, port)]
            wish = feedback.pattern.restricted_to(carried)
            pattern = self.attributes.backward(wish, port, stream.schema)
            if (carried or feedback.pattern.is_wild) and pattern is not None:
                found.append((port, Feedback(feedback.intent, pattern)))
        return found

    # ----------------------------------------------------------------------------------------

    def accept(self, port: int, page: Page) -> Emission:
        """A whole page, as far as the guards admit it: its tuples first, then its punctuations."""
        entering = self.guards.admit(port, page) if self._guarded else page
        if not entering.height and len(entering.punctuations) == 1:
            emission = self.on_punctuation(port, entering.punctuations[0])
        else:
            emission = self.on_page(port, entering) if entering.height else Emission()
            for punctuation in entering.punctuations:
                emission.extend(self.on_punctuation(port, punctuation))
        if self._guarded:
            self.guards.read(port, page)
            return self.released(emission)
        return emission

    def let_out(self, emission: Emission) -> Emission:
        """What may leave of something made otherwise than by `accept`."""
        return self.released(emission) if self._guarded else emission

    def released(self, emission: Emission) -> Emission:
        """What the guards on the outputs let out of an emission."""
        emission.pages = list(self.guards.release(emission.pages))
        self._guarded = bool(self.guards)
        return emission

    def backlog(self) -> bool:
        """Whether there is work that needs no further input, and leave to do it now."""
        return False

    def work(self) -> Emission:
        """Do one piece of the backlog; between pieces feedback and new pages come in."""
        return Emission()

    def held_back(self) -> bool:
        """Whether there is work that it had no leave to do in this batch."""
        return False

    def begin(self) -> None:
        """A batch begins, where input comes in batches: what is rationed by the batch is
        rationed anew."""

    def needs(self) -> Demand | None:
        """The least heartbeat that would let this operator move something it holds."""
        return None

    def demand(self, wanted: int) -> Demand | None:
        """What this operator would need so that its output reaches the heartbeat `wanted`."""
        return Demand(0, wanted)

    def waiting(self) -> int:
        """How many tuples it holds back only because another input has not moved."""
        return 0

    def held(self) -> Held:
        """How much it holds, guards included."""
        held = self._held()
        return held + Held(guards=len(self.guards)) if self._has_guards else held

    def save(self) -> None:
        """Write what changed to the state."""
        self._save()
        if self._guards is not None:
            self._guards.save()

    def _held(self) -> Held:
        return Held()

    def _save(self) -> None:
        """Write what changed, but for the guards."""

    def tuples(self, frame: pl.DataFrame, port: int = 0, stamp: int | None = None) -> Emission:
        """Tuples for one output; nothing when there are none."""
        if not frame.height:
            return Emission()
        return Emission([(port, Page(self.outputs[port].schema, frame, stamp=stamp))])

    def heartbeat(self, ticks: int, port: int = 0) -> Emission:
        """A heartbeat for one output."""
        return self.promise(Punctuation.heartbeat(self.outputs[port].schema, ticks), port)

    def promise(self, punctuation: Punctuation, port: int = 0) -> Emission:
        """A punctuation for one output, in its terms."""
        schema = self.outputs[port].schema
        return Emission([(port, Page(schema, schema.empty(), (punctuation,)))])
