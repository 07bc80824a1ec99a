"""A sink that a person looks at: results by a place and a time, as a map.

    view = MapView("map", place="segment", time="ts", value="speed", width="2s")
    query = flow.start(spark, feeds, checkpoint=…, sinks={"map": view})
    studio.serve(query, views=[view])

The view is the writer of its sink: it keeps the last minutes, and the page draws them. Zooming into
some places tells the query that the others are not wanted.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import polars as pl

from interpunct.model.durations import duration
from interpunct.studio.zoom import Zoom

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AHEAD = "8s"  # of stream time that feedback speaks of, at least


class MapView:
    """The last `keep` of one sink's results; `place` is a whole number, `value` what is shown."""

    def __init__(
        self,
        sink: str,
        *,
        place: str = "segment",
        time: str = "ts",
        value: str = "speed",
        width: str = "2s",
        keep: str = "2m",
        span: tuple[float, float] = (0.0, 80.0),
        ahead: str = AHEAD,
    ) -> None:
        """`width` is the length of a window, `span` the values at the ends of the scale, `ahead`
        the stream time for which feedback is sent, at least."""
        where = f"view of sink {sink!r}"
        self.sink, self.place, self.time, self.value = sink, place, time, value
        self.width, self.keep = duration(width, where), duration(keep, where)
        self.span = span
        self.zoom = Zoom(place, duration(ahead, where))
        self.places: tuple[int, int] | None = None  # the least and the greatest seen
        self.rows = 0
        self._lock = threading.Lock()  # Spark's thread writes, the page's reads
        self._shown = pl.DataFrame(schema={"place": pl.Int64, "at": pl.Int64, "value": pl.Float64})

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """For Spark: the rows of a batch."""
        del batch
        frame = pl.from_arrow(rows.select(self.place, self.time, self.value).toArrow())
        assert isinstance(frame, pl.DataFrame)
        self.show(frame)

    def show(self, frame: pl.DataFrame) -> None:
        """Results that have come; a result that comes again replaces itself."""
        if not frame.height:
            return
        new = frame.select(
            pl.col(self.place).cast(pl.Int64).alias("place"),
            pl.col(self.time).to_physical().cast(pl.Int64).alias("at"),
            pl.col(self.value).cast(pl.Float64).alias("value"),
        )
        with self._lock:
            both = pl.concat([self._shown, new]).unique(["place", "at"], keep="last")
            latest = both["at"].max()
            assert isinstance(latest, int)
            self._shown = both.filter(pl.col("at") > latest - self.keep).sort("at", "place")
            self.rows += new.height
            low, high = self.places or (None, None)
            least, greatest = new["place"].min(), new["place"].max()
            assert isinstance(least, int)
            assert isinstance(greatest, int)
            self.places = (
                least if low is None else min(low, least),
                greatest if high is None else max(high, greatest),
            )

    def shown(self) -> pl.DataFrame:
        """place, at (ticks) and value of what there is to see."""
        with self._lock:
            return self._shown

    def visible(self, low: float, high: float) -> list[int] | None:
        """The places of which a good part lies between two marks of the axis; None for all."""
        if self.places is None:
            return None
        first, last = self.places
        found = [p for p in range(first, last + 1) if low < p + 0.3 and p - 0.3 < high]
        return None if len(found) == last - first + 1 else found
