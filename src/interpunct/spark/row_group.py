"""What a Parquet file says of a group of its rows without their being read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from interpunct.model.condition import Range
from interpunct.model.pattern import Pattern
from interpunct.model.schema import Schema, to_ticks
from interpunct.spark.assumed import Unread


@dataclass(frozen=True)
class RowGroup:
    """The metadata of a row group, and the schema of the recording."""

    metadata: Any  # pyarrow has no public type for it
    schema: Schema

    def unread(self, unwanted: Sequence[Pattern]) -> Unread | None:
        """The group as rows that need not be read, if one pattern covers every one of them."""
        covering = next((p for p in unwanted if self._covered(p)), None)
        if covering is None:
            return None
        time = covering.schema.time
        span = None if time is None else self._span(time)
        least, greatest = (None, None) if span is None else (to_ticks(v) for v in span)
        return Unread(self.metadata.num_rows, least, greatest)

    def _covered(self, pattern: Pattern) -> bool:
        """Whether every row matches: each attribute's values lie in what the pattern allows, and
        the time, which must go on being told, is known."""
        time = pattern.schema.time
        if time is not None and self._span(time) is None:
            return False
        return all(
            span is not None and Range(low=span[0], high=span[1]).tidy().implies(condition)
            for name, condition in pattern.conditions
            for span in [self._span(name)]
        )

    def _span(self, name: str) -> tuple[Any, Any] | None:
        """The least and the greatest value of a column that has no nulls."""
        columns = (self.metadata.column(i) for i in range(self.metadata.num_columns))
        column = next((c for c in columns if c.path_in_schema == name), None)
        known = None if column is None else column.statistics
        if known is None or not known.has_min_max or not known.has_null_count or known.null_count:
            return None
        dtype = self.schema[name].dtype
        if dtype.is_float():
            return None  # the statistics do not count NaN
        return _plain(known.min), _plain(known.max)


def _plain(value: Any) -> Any:
    """Timestamps as ours are: in UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value
