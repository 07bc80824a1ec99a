"""Temporal databases: the table of events that a prefix of a revisable stream amounts to.

    insert(A, 6, 7)  insert(B, 8, 15)  adjust(A, 6, 7, 12)      p  Vs  Ve
                                                               A   6  12
                                                               B   8  15

Two streams are equivalent when their tables are equal, whatever their elements and the order of
these (LMerge section II). A stable element freezes part of the table: an event is fully frozen when
it ended before it, half frozen when it only began before it (section III-C).

Reconstitution counts: an insert adds one event, an adjust takes one away at Vold and adds one at
Ve. So it is a sum over the elements, the same in any order, and duplicates (R4) are no exception.

>>> from interpunct.model.elements import adjust, element_schema, elements, insert
>>> schema = element_schema(Schema.of("p string"))
>>> frame = elements(schema, [insert("A", 6, 7), insert("B", 8, 15), adjust("A", 6, 7, 12)])
>>> tdb(schema, frame).rows()
[(6, 12, 'A'), (8, 15, 'B')]
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from interpunct.model.elements import (
    ADJUST,
    INSERT,
    KIND,
    STABLE,
    VE,
    VOLD,
    VS,
    describe,
    payload_names,
    ticks,
    ticks_expr,
)
from interpunct.model.schema import START_OF_TIME, Schema

COUNT, STATUS, ROW = "_count", "status", "_row"
UNFROZEN, HALF_FROZEN, FULLY_FROZEN = "unfrozen", "half frozen", "fully frozen"


def tdb(schema: Schema, frame: pl.DataFrame) -> pl.DataFrame:
    """The events of a prefix, each as often as it is there, in the order of vs and ve."""
    counted = tally(schema, frame).filter(pl.col(COUNT) > 0)
    repeated = counted.select(pl.all().repeat_by(COUNT).explode())
    return repeated.select(VS, VE, *payload_names(schema)).sort(VS, VE, maintain_order=True)


def tally(schema: Schema, frame: pl.DataFrame) -> pl.DataFrame:
    """How often each event is in the table; less than nothing where an adjust met no event."""
    event = [VS, VE, *payload_names(schema)]
    changes = _changes(schema, frame)
    return changes.group_by(event, maintain_order=True).agg(pl.col(COUNT).sum())


def _changes(schema: Schema, frame: pl.DataFrame) -> pl.DataFrame:
    """What each element adds to the table and takes from it, in stream order."""
    names = payload_names(schema)
    numbered = frame.with_row_index(ROW)
    adjusts = numbered.filter(pl.col(KIND) == ADJUST)
    old = adjusts.select(ROW, VS, pl.col(VOLD).alias(VE), *names, pl.lit(-1).alias(COUNT))
    new = numbered.filter(pl.col(KIND) != STABLE).select(
        ROW, VS, VE, *names, pl.lit(1).alias(COUNT)
    )
    both = old.vstack(new).sort(ROW, maintain_order=True)
    return both.filter(pl.col(VE) != pl.col(VS))


def equivalent(schema: Schema, one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether two prefixes have the same table."""
    return not difference(schema, one, other).height


def difference(schema: Schema, one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """The events one table has more often than the other; a negative count: less often."""
    event = [VS, VE, *payload_names(schema)]
    left, right = tally(schema, one), tally(schema, other)
    both = left.vstack(right.with_columns(-pl.col(COUNT)))
    summed = both.group_by(event, maintain_order=True).agg(pl.col(COUNT).sum())
    return summed.filter(pl.col(COUNT) != 0)


def last_stable(frame: pl.DataFrame) -> int:
    """The greatest stable of a prefix in ticks: before all time when there is none."""
    times = ticks(frame.filter(pl.col(KIND) == STABLE), VS)
    latest = times.max()
    return latest if isinstance(latest, int) else START_OF_TIME


def freeze_status(events: pl.DataFrame, stable: int) -> pl.DataFrame:
    """The events with their status under stable(Vc): Ve < Vc is final, Vs < Vc has begun."""
    status = (
        pl.when(ticks_expr(VE) < stable).then(pl.lit(FULLY_FROZEN))
        .when(ticks_expr(VS) < stable).then(pl.lit(HALF_FROZEN))
        .otherwise(pl.lit(UNFROZEN))
    )  # fmt: skip
    return events.with_columns(status.alias(STATUS))


# Is it a stream? --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Violation:
    """An element that no stream may have where it stands: its row, the element, the rule."""

    row: int
    element: str
    rule: str

    def __str__(self) -> str:
        return f"row {self.row}, {self.element}: {self.rule}"


def violations(schema: Schema, frame: pl.DataFrame, *, keyed: bool = False) -> list[Violation]:
    """Every element that breaks a rule, in stream order; `keyed`: (Vs, payload) is unique too.

    The rules of stable are those of LMerge Example 3. A stable that takes none forward says what
    is known already and breaks nothing.
    """
    rows = frame.with_row_index(ROW).with_columns(ticks_expr(n).alias(n) for n in (VS, VOLD, VE))
    rows = rows.with_columns(_stable_before().alias("_stable"))
    inserts, adjusts = pl.col(KIND) == INSERT, pl.col(KIND) == ADJUST
    stable = pl.col("_stable")
    rules = [
        (inserts & (pl.col(VS) < stable), "it inserts before what is stable"),
        (adjusts & (pl.col(VOLD) < stable), "its Vold is before what is stable"),
        (adjusts & (pl.col(VE) < stable), "its Ve is before what is stable"),
        (inserts & (pl.col(VE) <= pl.col(VS)), "its event ends no later than it starts"),
        (adjusts & (pl.col(VE) < pl.col(VS)), "its event ends before it starts"),
        (adjusts & pl.col(VOLD).is_null(), "it does not say which end it adjusts"),
        (pl.col(ROW).is_in(_unfounded(schema, frame)), "there is no such event to adjust"),
    ]
    if keyed:
        twice = inserts & pl.col(ROW).is_in(_twice(schema, frame))
        rules.append((twice, "there is an event with this payload and Vs already"))
    found = []
    for broken, rule in rules:
        for row in rows.filter(broken.fill_null(value=False)).get_column(ROW).to_list():
            found.append(Violation(row, describe(schema, frame.slice(row, 1)), rule))
    return sorted(found, key=lambda v: v.row)


def _stable_before() -> pl.Expr:
    """The greatest stable before each row."""
    times = pl.when(pl.col(KIND) == STABLE).then(VS)
    return times.cum_max().forward_fill().shift(1).fill_null(START_OF_TIME)


def _unfounded(schema: Schema, frame: pl.DataFrame) -> list[int]:
    """The rows whose adjust takes an event away that is not there at that moment."""
    event = [VS, VE, *payload_names(schema)]
    changes = _changes(schema, frame)
    there = changes.with_columns(pl.col(COUNT).cum_sum().over(event).alias("_there"))
    bad = there.filter((pl.col(COUNT) < 0) & (pl.col("_there") < 0))
    return bad.get_column(ROW).to_list()


def _twice(schema: Schema, frame: pl.DataFrame) -> list[int]:
    """The rows that add a second event with the same Vs and payload."""
    key = [VS, *payload_names(schema)]
    changes = _changes(schema, frame)
    there = changes.with_columns(pl.col(COUNT).cum_sum().over(key).alias("_there"))
    bad = there.filter((pl.col(COUNT) > 0) & (pl.col("_there") > 1))
    return bad.get_column(ROW).to_list()
