"""Band join of two frames: equal keys, and times within a band of each other.

For each left tuple the right ones with `right time ∈ [left time − before, left time + after]`.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

BUCKET = "_bucket"


def band_join(
    left: pl.DataFrame,
    right: pl.DataFrame,
    keys: Sequence[str],
    times: tuple[str, str],
    before: int,
    after: int,
) -> pl.DataFrame:
    """All pairs in the band; `times` names the tick columns of the two frames.

    When the right side spans far more time than the band, pairs are also matched on time buckets
    as wide as the band: a right tuple is in one bucket, and what a left tuple may meet is in at
    most two, so each pair is found once and the work stays in proportion to the result.
    """
    left_time, right_time = times
    if not left.height or not right.height:
        return _joined(left.clear(), right.clear(), keys)
    width = before + after + 1
    span = int(right[right_time].max()) - int(right[right_time].min())  # type: ignore[arg-type]
    if span > 4 * width:
        low = (pl.col(left_time) - before) // width
        high = (pl.col(left_time) + after) // width
        once = left.with_columns(low.alias(BUCKET))
        again = left.filter(low != high).with_columns(high.alias(BUCKET))
        right = right.with_columns((pl.col(right_time) // width).alias(BUCKET))
        pairs = _joined(pl.concat([once, again]), right, [*keys, BUCKET]).drop(BUCKET)
    else:
        pairs = _joined(left, right, keys)
    apart = pl.col(right_time) - pl.col(left_time)
    return pairs.filter(apart.is_between(-before, after))


def _joined(left: pl.DataFrame, right: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    if not keys:
        return left.join(right, how="cross")
    return left.join(right, on=list(keys), how="inner")
