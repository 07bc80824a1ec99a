"""Words of PySpark that a stream has under another name, for those who write them out of habit.

>>> meant("groupBy")
"stream.aggregate(by='item', every='1 minute', n='count(*)')"
>>> meant("pivot") is None
True
"""

from __future__ import annotations

_GROUPED = "stream.aggregate(by='item', every='1 minute', n='count(*)')"
_ONCE = "stream.aggregate(by='item', every='1 minute', n='count(*)'), one row for each in a minute"
_COMPUTED = "stream.with_columns(total='price * 2')"
_CHOSEN = "stream.select('item', total='price * 2')"
_UNITED = "a.union(b)"
_DELIVERED = "flow.sink('out', stream) and flow.run(…) or flow.start(…)"
_MEANT = {
    "filter": "stream.where('price > 0')",
    "withColumn": _COMPUTED,
    "withColumns": _COMPUTED,
    "selectExpr": _CHOSEN,
    "withColumnRenamed": "stream.select(new='old'), with all the others that are to stay",
    "drop": "stream.select('item', 'ts'), with those that are to stay",
    "groupBy": _GROUPED,
    "groupby": _GROUPED,
    "agg": _GROUPED,
    "distinct": _ONCE,
    "dropDuplicates": _ONCE,
    "dropDuplicatesWithinWatermark": _ONCE,
    "unionAll": _UNITED,
    "unionByName": _UNITED,
    "orderBy": "stream.sort(), which is by time",
    "withWatermark": "flow.source(…, time=ip.external('ts', bounds=ip.bounds(skew='30s')))",
    "columns": "stream.schema.names",
    "printSchema": "print(stream.schema.ddl)",
    "explain": "flow.explain()",
    "writeStream": _DELIVERED,
    "show": _DELIVERED,
    "collect": _DELIVERED,
}


def meant(word: str) -> str | None:
    """What to write here instead of a word of PySpark; None if there is nothing to say of it."""
    return _MEANT.get(word)
