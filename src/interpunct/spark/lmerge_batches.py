"""What one input says in one micro-batch, whatever the order in which its tasks said it.

    ins(A,6,20)  adj(A,6,20,30)  stable(5)  adj(A,6,30,25)     →     ins(A,6,25)  stable(5)

Spark keeps no order between the tasks of a batch, and a revisable stream needs none there: what its
elements amount to is a sum (LMerge section II), and a stable that is heard at the end of the batch
in which it came says less than where it stood, so it still holds. So a batch of an input becomes
its net changes in the order of Vs, then its greatest stable.

Where equal Vs come in one order (R1) there is nothing to sum up: a column has the place of each
element among those of its Vs, and a batch becomes its elements by Vs and place (`in_order`).

Two more kinds of row say that an input comes or goes (LMerge section V-B): `attach`, with the time
from which it is guaranteed in `vs`, and `detach`.

>>> from interpunct.model.elements import adjust, describe, element_schema, elements, insert, stable
>>> schema = element_schema(Schema.of("p string"))
>>> said = [adjust("A", 6, 30, 25), stable(5), insert("A", 6, 20), adjust("A", 6, 20, 30)]
>>> print(describe(schema, net(schema, elements(schema, said))))
insert(A, 6, 25), stable(5)
"""

from __future__ import annotations

import polars as pl

from interpunct.model.elements import (
    ADJUST,
    INSERT,
    KIND,
    STABLE,
    VE,
    VOLD,
    VS,
    framed,
    payload_names,
    ticks_expr,
)
from interpunct.model.schema import Schema
from interpunct.model.tdb import COUNT, tally

ATTACH, DETACH = "attach", "detach"
MARKS = (STABLE, ATTACH, DETACH)  # what concerns every lane
_NEW, _NTH = "_new", "_nth"


def is_mark(column: str = KIND) -> pl.Expr:
    return pl.col(column).is_in(MARKS).fill_null(value=False)


def comes_or_goes(column: str = KIND) -> pl.Expr:
    return pl.col(column).is_in((ATTACH, DETACH)).fill_null(value=False)


def mark(schema: Schema, kind: str, at: int) -> pl.DataFrame:
    """A row that says stable, attach or detach."""
    said = pl.DataFrame({KIND: [kind], VS: [at]})
    columns = [pl.col(n) if n in (KIND, VS) else pl.lit(None).alias(n) for n in schema.names]
    return framed(schema, said, columns)


def net(schema: Schema, frame: pl.DataFrame) -> pl.DataFrame:
    """A batch as its net changes and then its greatest stable; what is no element comes first, for
    the merge to refuse."""
    sound = frame.filter(_sound())
    stables = sound.filter(pl.col(KIND) == STABLE).sort(VS).tail(1)
    return pl.concat([_unsound(frame), changes(schema, sound), stables])


def changes(schema: Schema, frame: pl.DataFrame) -> pl.DataFrame:
    """Inserts and adjusts that change a table as these elements do: of each (Vs, payload) the ends
    that go are paired with the ends that come."""
    names = list(payload_names(schema))
    counted = tally(schema, frame).filter(pl.col(COUNT) != 0)
    key = [VS, *names]
    ends = (
        counted.with_columns((pl.col(COUNT) > 0).alias(_NEW), pl.col(COUNT).abs())
        .select(pl.exclude(COUNT).repeat_by(COUNT).explode())
        .sort(VS, VE, maintain_order=True)
        .with_columns(pl.int_range(pl.len()).over([*key, _NEW]).alias(_NTH))
    )
    pairs = ends.group_by([*key, _NTH], maintain_order=True).agg(
        pl.col(VE).filter(~pl.col(_NEW)).first().alias(VOLD),
        pl.col(VE).filter(pl.col(_NEW)).first().alias(VE),
    )
    columns = {
        KIND: pl.when(pl.col(VOLD).is_null()).then(pl.lit(INSERT)).otherwise(pl.lit(ADJUST)),
        VE: pl.coalesce(VE, VS),  # an end that goes and is not replaced: the event is removed
    }
    return framed(schema, pairs, [columns.get(n, pl.col(n)).alias(n) for n in schema.names])


def in_order(frame: pl.DataFrame, order: str) -> pl.DataFrame:
    """A batch as its elements by Vs and by their place in `order`, then its greatest stable; what
    is no element comes first, and then what has no place."""
    sound = frame.filter(_sound())
    said = sound.filter(pl.col(KIND) != STABLE)
    placed = pl.col(order).is_not_null()
    stables = sound.filter(pl.col(KIND) == STABLE).sort(VS).tail(1)
    return pl.concat(
        [_unsound(frame), said.filter(~placed), said.filter(placed).sort(VS, order), stables]
    )


def misplaced(told: pl.DataFrame, order: str, known: pl.DataFrame) -> int | None:
    """The first row that has no place, or not one after that of the row before it at the same Vs;
    `known` is the row before the first, if there was one."""
    rows = pl.concat([known.select(VS, order), told.select(VS, order)])
    element = pl.concat([known.select(is_mark()), told.select(is_mark())]).to_series().not_()
    place, level = pl.col(order), pl.col(VS) == pl.col(VS).shift(1)
    wrong = place.is_null() | (level & (place <= place.shift(1))).fill_null(value=False)
    found = (rows.select(wrong).to_series() & element).arg_true()
    return int(found[0]) - known.height if found.len() else None


def attached_from(frame: pl.DataFrame) -> int | None:
    """From when the input says that it is guaranteed, if it attaches in this batch."""
    times = frame.filter(pl.col(KIND) == ATTACH).select(ticks_expr(VS)).to_series()
    latest = times.max()
    return latest if isinstance(latest, int) else None


def detaches(frame: pl.DataFrame) -> bool:
    return bool(frame.get_column(KIND).eq(DETACH).any())


def _unsound(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(~_sound() & ~comes_or_goes())


def _sound() -> pl.Expr:
    """Elements that have the times of their kind; null where the kind is null, so filled."""
    timed = pl.col(VS).is_not_null()
    ended = timed & pl.col(VE).is_not_null()
    sound = (
        pl.when(pl.col(KIND) == STABLE).then(timed)
        .when(pl.col(KIND) == INSERT).then(ended)
        .when(pl.col(KIND) == ADJUST).then(ended & pl.col(VOLD).is_not_null())
        .otherwise(pl.lit(value=False))
    )  # fmt: skip
    return sound.fill_null(value=False)
