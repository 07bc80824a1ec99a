"""Words of PySpark that a stream has under another name, for those who write them out of habit.

>>> asks = Schema.of("item bigint, ts timestamp, price double", time="ts")
>>> meant("groupBy", asks)
"stream.aggregate(by='item', every='1 minute', n='count(*)')"
>>> "pivot" in MEANT
False
"""

from __future__ import annotations

from collections.abc import Sequence

from interpunct.model.errors import FlowError, SchemaError
from interpunct.model.schema import Schema
from interpunct.model.values import quoted

_GROUPED = "stream.aggregate(by='{key}', every={minute}, n='count(*)')"
_ONCE = f"{_GROUPED}, one row for each in a window"
_COMPUTED = "stream.with_columns(twice='{value} * 2')"
_CHOSEN = "stream.select('{key}', {time}, twice='{value} * 2')"
_UNITED = "a.union(b)"
_DELIVERED = "flow.sink('out', stream) and flow.run(…) or flow.start(…)"
_FIRST = "flow.sink('out', stream) and flow.run(…)['out'].head(10)"
BY_NAME = "Name columns in text: stream.where('speed > 0'), stream.select('id', 'ts')."
GROUPS = "Windows are every='1 minute'; what else is computed, stream.with_columns(day='…') first."
KEYS = "on='key'; where names differ, choose one first: stream.select('ts', key='other')."
MEANT = {
    "filter": "stream.where('{value} > 0')",
    "withColumn": _COMPUTED,
    "withColumns": _COMPUTED,
    "selectExpr": _CHOSEN,
    "withColumnRenamed": "stream.select({time}, new='{column}'), with all that are to stay",
    "drop": "stream.select('{key}', {time}), with all that are to stay",
    "fillna": "stream.with_columns(filled='coalesce({value}, 0)')",
    "dropna": "stream.where('{value} is not null')",
    "groupBy": _GROUPED,
    "groupby": _GROUPED,
    "agg": _GROUPED,
    "distinct": _ONCE,
    "dropDuplicates": _ONCE,
    "dropDuplicatesWithinWatermark": _ONCE,
    "count": "stream.aggregate(every={minute}, n='count(*)')",
    "unionAll": _UNITED,
    "unionByName": _UNITED,
    "orderBy": "stream.sort(), which is by time",
    "withWatermark": "flow.source(…, time=ip.external({time}, bounds=ip.bounds(skew={minute})))",
    "columns": "stream.schema.names",
    "printSchema": "print(stream.schema.ddl)",
    "explain": "flow.explain()",
    "writeStream": _DELIVERED,
    "foreachBatch": "flow.start(…, sinks={{'out': function}}), called with rows and batch",
    "show": _DELIVERED,
    "collect": _DELIVERED,
    "alias": "stream, which needs none: behind a join, names that are taken end in _right",
    "limit": _FIRST,
    "head": _FIRST,
    "take": _FIRST,
}


def meant(word: str, schema: Schema) -> str:
    """What to write instead of one of these words on a stream of this schema."""
    others = [a for a in schema.attributes if a.name != schema.time] or list(schema.attributes)
    numbers = [_said(a.name) for a in others if a.dtype.is_numeric()]
    counted = schema.time is not None and schema[schema.time].dtype.is_integer()
    return MEANT[word].format(
        key=others[0].name,
        column=_said(others[0].name),
        value=numbers[-1] if numbers else f"length({_said(others[-1].name)})",
        minute="60" if counted else "'1 minute'",
        time=repr(schema.time or "ts"),
    )


def chosen(given: str | Sequence[str], schema: Schema, where: str, instead: str) -> tuple[str, ...]:
    """Names of columns; where an expression is given, what to write `instead` of it is said."""
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if name in schema:
            continue
        if "(" in name or "=" in name:
            raise FlowError(where, "names of columns", repr(name), instead)
        raise SchemaError.unknown_attribute(where, name, schema.names)
    return names


def _said(name: str) -> str:
    """A column as an expression reads it."""
    return name if name.isidentifier() else quoted(name)
