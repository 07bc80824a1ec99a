"""What a logical merge need not hear any more, now that its output is stable so far.

    output: … stable(20)        to a slower input:  ¬[vs < 20, ve < 20]
                                                    nothing that began and ended before 20

Elements before what is stable are ignored by the merge, so a plan that is slower does for nothing
what it does to make them. Told so, it need not: its operators guard against such elements, drop
what they hold for them, and tell those below, so that the plan catches up and may lead (LMerge
section V-D); a merge among them tells its own inputs. An event that began before the stable but
ends after it is still awaited, since its end may still come from that plan.

How much can be said depends on what the merge does with it. Without revisions only the start of an
event counts. Where (Vs, payload) is a key an element that takes the end of an event back to before
the stable is followed by one that brings it forth again, or the event is over. With duplicates an
adjust that is left out would leave one event too many, so an adjust must be about the past alone.

>>> from interpunct.model.elements import element_schema
>>> schema = element_schema(Schema.of("p string"))
>>> [p.by_name() for p in passed(schema, 20, "R3")]
['[vs≤19, ve≤19]']
"""

from __future__ import annotations

import polars as pl

from interpunct.model.condition import Condition, OneOf, Range
from interpunct.model.elements import ADJUST, INSERT, KIND, VE, VOLD, VS, infinity, ticks_expr
from interpunct.model.pattern import Pattern
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.model.ticks import stretch

ORDERED, KEYED = ("R0", "R1", "R2"), ("R3", "R3-")


def passed(schema: Schema, stable: int, variant: str) -> list[Pattern]:
    """The elements that a merge of this kind ignores once its output is stable so far."""
    last = min(stable, infinity(schema)) - 1
    before = Range(high=schema.with_time(VS).value_of(last))
    if variant in ORDERED:
        return [_pattern(schema, INSERT, {VS: before})]
    if variant in KEYED:
        return [Pattern(schema, {VS: before, VE: before})]
    return [
        _pattern(schema, INSERT, {VS: before, VE: before}),
        _pattern(schema, ADJUST, {VS: before, VOLD: before, VE: before}),
    ]


def _pattern(schema: Schema, kind: str, times: dict[str, Condition]) -> Pattern:
    return Pattern(schema, {KIND: OneOf((kind,)), **times})


def last_of(pattern: Pattern) -> int:
    """The last Vs of which a pattern about the past speaks."""
    ticks = stretch(pattern.condition(VS))
    assert ticks is not None
    assert ticks[1] is not None
    return ticks[1]


def relayed(
    schema: Schema, pattern: Pattern, variant: str, forgone: int = START_OF_TIME
) -> Pattern | None:
    """What a merge of this kind tells its inputs that hears this of its own output: as much as it
    would tell them if its output were stable so far. None if that is more than was said.

    R1 counts the events of one Vs, so all of these must be unwanted. With revisions (R3, R4) an
    input that leaves out the past would seem to deny it, so the merge looks at nothing there any
    more (`present`); inserts must be unwanted for that, and then so are adjusts that are about the
    past alone, but only once the inserts are (`forgone`). The paper has merges at the root of a
    plan and says nothing of a merge that hears of it.
    """
    ticks = stretch(pattern.condition(VS))
    if ticks is None or ticks[0] is not None or ticks[1] is None:
        return None
    own = passed(schema, ticks[1] + 1, variant)[0]
    if own.implies(pattern):
        return own
    if variant not in ORDERED:
        inserts, adjusts = passed(schema, ticks[1] + 1, "R4")
        if inserts.implies(pattern):
            return inserts
        return adjusts if ticks[1] < forgone and adjusts.implies(pattern) else None
    both = own.intersect(pattern)
    known = last_start(both, 0, revised=False) is not None
    return both if variant in ("R0", "R2") and known else None


def of_inserts(pattern: Pattern) -> bool:
    """Whether a pattern speaks of inserts."""
    return pattern.condition(KIND).admits(INSERT)


def present(frame: pl.DataFrame, at: int) -> pl.DataFrame:
    """Elements as they look when of events that began before a time it counts only whether they
    end at it or later: what comes out of the past begins, what goes there is removed.

    So an input that leaves out what is past says the same as one that does not.

    >>> from interpunct.model.elements import adjust, describe, element_schema, elements, insert
    >>> schema = element_schema(Schema.of("p string"))
    >>> told = [insert("A", 6, 9), adjust("A", 6, 9, 40), insert("B", 7, 40), adjust("B", 7, 40, 9)]
    >>> print(describe(schema, present(elements(schema, told), 20)))
    insert(A, 6, 40), insert(B, 7, 40), adjust(B, 7, 40, 7)
    """
    begun, old, new = (ticks_expr(n) < at for n in (VS, VOLD, VE))
    adjusted = begun & (pl.col(KIND) == ADJUST)
    said = frame.filter(~(begun & new & ((pl.col(KIND) == INSERT) | (adjusted & old))))
    begins = adjusted & old
    return said.with_columns(
        pl.when(begins).then(pl.lit(INSERT)).otherwise(pl.col(KIND)).alias(KIND),
        pl.when(begins).then(None).otherwise(pl.col(VOLD)).alias(VOLD),
        pl.when(adjusted & new).then(pl.col(VS)).otherwise(pl.col(VE)).alias(VE),
    )


def last_start(pattern: Pattern, life: int, *, revised: bool) -> int | None:
    """The last Vs of which an operator need make no element at all, whose events live so long.

    None when the pattern says something else, or not of every element: where events are `revised`
    it must speak of inserts and adjusts alike.
    """
    kinds = pattern.condition(KIND)
    all_kinds = KIND not in pattern.names
    if not all_kinds and (revised or kinds != OneOf((INSERT,))):
        return None
    limits = []
    for name, length in ((VS, 0), (VE, life)):
        ticks = stretch(pattern.condition(name)) if name in pattern.names else None
        if ticks is not None and ticks[0] is None and ticks[1] is not None:
            limits.append(ticks[1] - length)
        elif name in pattern.names:
            return None
    beyond = set(pattern.names) - {KIND, VS, VE}
    return None if beyond or not limits else min(limits)
