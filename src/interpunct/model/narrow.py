"""Narrow columns: whole numbers and times as what they are above the least of them.

Within a page times lie close together, and so do most keys; what they are above the least one fits
into half of the bytes or less. A page is copied many times on its way from a task to a lane.

>>> import polars as pl
>>> frame = pl.DataFrame({"ts": range(5_000_000_000, 5_000_002_000)})
>>> small, least = narrowed(frame)
>>> small.schema["ts"], least
(UInt16, {'ts': 5000000000})
>>> widened(small, least, frame.schema).equals(frame)
True
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

FEW = 1_000  # tuples that are as soon sent as looked at
_WIDE: dict[type[pl.DataType], int] = {pl.Int64: 8, pl.Int32: 4}  # bytes
_NARROW = {pl.UInt8(): 1, pl.UInt16(): 2, pl.UInt32(): 4}


def narrowed(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """The frame with columns as narrow as may be, and the least value of each that is narrower."""
    least: dict[str, int] = {}
    if frame.height < FEW:
        return frame, least
    columns = []
    for column in frame.get_columns():
        values = column.to_physical() if column.dtype.is_temporal() else column
        width = _WIDE.get(values.dtype.base_type(), 0)
        low, high = (values.min(), values.max()) if width else (None, None)
        if isinstance(low, int) and isinstance(high, int):
            fits = _narrowest(high - low, width)
            if fits is not None:
                least[column.name] = low
                column = (values - low).cast(fits, wrap_numerical=True)  # noqa: PLW2901
        columns.append(column)
    return pl.DataFrame(columns), least


def _narrowest(span: int, width: int) -> pl.DataType | None:
    """What holds everything from 0 to `span`, if that is narrower than so many bytes."""
    for dtype, size in _NARROW.items():
        if size < width and span < 1 << 8 * size:
            return dtype
    return None


def widened(
    frame: pl.DataFrame, least: Mapping[str, int], schema: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    """The frame as it was before it was narrowed."""
    if not least:
        return frame
    columns = []
    for column in frame.get_columns():
        if column.name in least:
            wanted = schema[column.name]
            physical = pl.Int32 if wanted in (pl.Int32, pl.Date) else pl.Int64
            values = column.cast(physical, wrap_numerical=True) + least[column.name]
            column = values.cast(wanted)  # noqa: PLW2901
        columns.append(column)
    return pl.DataFrame(columns)
