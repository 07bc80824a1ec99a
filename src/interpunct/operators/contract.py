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
from interpunct.model.feedback import Feedback
from interpunct.model.page import Page
from interpunct.model.properties import Properties
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import Schema
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

    def on_feedback(self, feedback: Feedback) -> Emission:
        """An operator unaware of feedback ignores it and does not relay it (Feedback section 5)."""
        del feedback
        return Emission()

    def accept(self, port: int, page: Page) -> Emission:
        """A whole page: its tuples first, then its punctuations."""
        if not page.height and len(page.punctuations) == 1:
            return self.on_punctuation(port, page.punctuations[0])
        emission = self.on_page(port, page) if page.height else Emission()
        for punctuation in page.punctuations:
            emission.extend(self.on_punctuation(port, punctuation))
        return emission

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
        return Held()

    def save(self) -> None:
        """Write what changed to the state."""

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
