"""The law suite catches the operators it is there to catch, and lets an honest one pass."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from operator_cases import DISORDERED, ORDERED

from interpunct.flow.nodes import Context
from interpunct.model.attribute_map import AttributeMap
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.operators.contract import Emission, Held, Operator, Stream
from interpunct.operators.state import Record, State
from interpunct.testing import LAWS, Case, arrivals, check


class Passing(Operator):
    """Passes everything on: the honest operator that the others spoil."""

    def __init__(self, stream: Stream, state: State) -> None:
        super().__init__("op", [stream], [stream], AttributeMap.identity(stream.schema), state)

    def on_page(self, port: int, page: Page) -> Emission:
        return self.tuples(page.frame)


class FirstOfEachPage(Passing):
    def on_page(self, port: int, page: Page) -> Emission:
        return self.tuples(page.frame.head(1))


class Overpromising(Passing):
    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        beat = punctuation.heartbeat_ticks
        return Emission() if beat is None else self.heartbeat(beat + 2)


class Backwards(Passing):
    def on_page(self, port: int, page: Page) -> Emission:
        return self.tuples(page.frame.reverse())


class Numbering(Passing):
    """Puts the number of tuples seen so far in place of `k`."""

    def __init__(self, stream: Stream, state: State) -> None:
        super().__init__(stream, state)
        self._record = Record(self.state, "n", {"n": 0})

    def on_page(self, port: int, page: Page) -> Emission:
        first = self._record["n"]
        self._record["n"] = first + page.height
        numbers = pl.int_range(first, first + page.height, dtype=pl.Int64).alias("k")
        return self.tuples(page.frame.with_columns(numbers))

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        beat = punctuation.heartbeat_ticks
        return Emission() if beat is None else self.heartbeat(beat)


class Saved(Numbering):
    def save(self) -> None:
        self._record.save()


class Forgetful(Numbering):
    def save(self) -> None:
        """Nothing."""


class Scribbling(Numbering):
    def save(self) -> None:
        self._record.save()
        self.state.put("again", b"and again")


class Hoarding(Passing):
    held_tuples = 0

    def on_page(self, port: int, page: Page) -> Emission:
        self.held_tuples += page.height
        return super().on_page(port, page)

    def held(self) -> Held:
        return Held(self.held_tuples)


class Guarding(Passing):
    """Exploits assumed feedback as it should: what matches is not put out, and not asked for."""

    guard: Pattern | None = None

    def on_feedback(self, feedback: Feedback, port: int = 0) -> Emission:
        self.guard = feedback.pattern
        return Emission(relays=[(0, feedback)])

    def on_page(self, port: int, page: Page) -> Emission:
        guard = self.guard
        keep = page.frame if guard is None else page.frame.filter(~guard.mask(page.frame))
        return self.tuples(keep)


class Overzealous(Guarding):
    """Takes any feedback for a wish to hear nothing more."""

    def on_feedback(self, feedback: Feedback, port: int = 0) -> Emission:
        self.guard = Pattern.wild(self.output)
        return Emission()


class Inventive(Guarding):
    """Answers feedback with a tuple that was never there."""

    def on_feedback(self, feedback: Feedback, port: int = 0) -> Emission:
        return self.tuples(Page.of_rows(self.output, [(-1, 99, 0.0)]).frame)


class Widening(Guarding):
    """Relays the feedback without its conditions on `v`: upstream drops too much."""

    def on_feedback(self, feedback: Feedback, port: int = 0) -> Emission:
        self.guard = feedback.pattern
        wider = feedback.pattern.restricted_to(["k", "ts"])
        return Emission(relays=[(0, Feedback(Intent.ASSUMED, wider))])


def case(
    kind: Callable[[Stream, State], Operator], stream: Stream = ORDERED, punctuated: str = "k"
) -> Case:
    def build(context: Context) -> Operator:
        return kind(stream, context.state)

    return Case(kind.__name__, build, arrivals([stream], punctuated=punctuated))  # type: ignore[attr-defined]


@pytest.mark.parametrize("honest", [Passing, Guarding, Saved], ids=lambda k: k.__name__)
def test_an_honest_operator_passes_every_law(honest: type[Passing]) -> None:
    laws = dict(LAWS)
    if honest is Saved:  # a number depends on what came before: it is not meant for feedback
        laws = {n: law for n, law in laws.items() if "propagation" not in n}
    check(case(honest), laws.values(), examples=25)


@pytest.mark.parametrize(
    ("spoiled", "law", "said"),
    [
        (FirstOfEachPage, "splitting_changes_nothing", "output 0: missing"),
        (Overpromising, "punctuations_are_true", "breaks"),
        (Backwards, "order_is_kept", "out of order"),
        (Forgetful, "restoring_changes_nothing", "missing"),
        (Scribbling, "restoring_changes_nothing", "writes again"),
        (Hoarding, "state_is_bounded", "tuples"),
        (Overzealous, "exploitation_is_correct", "is missing and not in"),
        (Inventive, "exploitation_is_correct", "is not in the full result"),
        (Widening, "propagation_is_safe", "is missing and not in"),
    ],
    ids=lambda x: x.__name__ if isinstance(x, type) else None,
)
def test_a_spoiled_operator_breaks_its_law(spoiled: type[Passing], law: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check(case(spoiled, punctuated=""), [LAWS[law]], examples=200, shrink=False)


def test_laws_about_order_hold_of_streams_that_promise_none() -> None:
    check(case(Backwards, DISORDERED), [LAWS["order_is_kept"]], examples=10)
