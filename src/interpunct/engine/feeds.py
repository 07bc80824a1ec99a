"""Feeds: what a source is given in process, as pages with a moment of arrival.

A feed is a Polars or Arrow frame, an iterable of rows (mappings or sequences), of pages, or a
callable that returns one of these. `feed(…, arrival="column")` says when each tuple arrives; the
column is dropped unless the schema has it. Without it, tuples arrive as fast as they are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import polars as pl
import pyarrow as pa

from interpunct.model.durations import duration
from interpunct.model.errors import FeedError, InterpunctError
from interpunct.model.page import Page
from interpunct.model.schema import Attribute, Schema

ARRIVAL = Attribute("arrival", "timestamp", pl.Datetime("us", "UTC"))


@dataclass(frozen=True)
class Arrival:
    """A page and when it arrives, in clock microseconds; None means at once."""

    at: int | None
    page: Page


@dataclass(frozen=True)
class Feed:
    """Data, and how to cut it into pages."""

    data: Any
    arrival: str | None = None
    batch: int | None = None
    page_size: int = 10_000
    speed: float = 1.0

    def arrivals(self, schema: Schema, where: str) -> Iterator[Arrival]:
        """Pages in the order they arrive; one per distinct moment, or per `batch` of time."""
        first = 0
        for item in _chunks(self.data, self.page_size, where):
            if isinstance(item, Page):
                yield Arrival(None, item)
                continue
            frame = _frame(item, schema, self.arrival, where, first)
            first += frame.height
            if self.arrival is None:
                page = _checked(schema, frame, where)
                for start in range(0, frame.height, self.page_size):
                    part = page.frame.slice(start, self.page_size)
                    yield Arrival(None, Page(schema, part))
            else:
                yield from self._timed(schema, frame, where)

    def _timed(self, schema: Schema, frame: pl.DataFrame, where: str) -> Iterator[Arrival]:
        moments = _moments(frame, str(self.arrival), where)
        if self.batch:  # a batch arrives when its time is over
            moments = (moments // self.batch + 1) * self.batch
        frame = _checked(schema, frame, where).frame
        start = 0
        for count in moments.rle().struct.field("len"):
            at = int(moments[start])
            for cut in range(start, start + count, self.page_size):
                rows = min(self.page_size, start + count - cut)
                yield Arrival(at, Page(schema, frame.slice(cut, rows)))
            start += count


def feed(
    data: Any,
    *,
    arrival: str | None = None,
    batch: str | int | None = None,
    page_size: int = 10_000,
    speed: float = 1.0,
) -> Feed:
    """Data with its arrival column; `batch` lets tuples arrive together.

    On a real clock arrivals are replayed from now on, `speed` times as fast as they were.
    """
    if page_size < 1 or speed <= 0:
        got = f"page_size={page_size}, speed={speed}"
        raise FeedError("feed", "a page size of at least 1, a speed above 0", got, "Correct them.")
    width = None if batch is None else duration(batch, "feed(batch=…)")
    return Feed(data, arrival, width, page_size, speed)


def as_feed(data: Any) -> Feed:
    return data if isinstance(data, Feed) else Feed(data)


def _chunks(data: Any, page_size: int, where: str) -> Iterator[Any]:
    """Frames, pages, or lists of rows."""
    if callable(data):
        data = data()
    if isinstance(data, pl.DataFrame | pa.Table | pa.RecordBatch | Page):
        yield data
        return
    if isinstance(data, pl.LazyFrame):
        yield data.collect()
        return
    if not isinstance(data, Iterable) or isinstance(data, str | bytes | Mapping):
        raise FeedError(
            where, "a frame, an iterable of rows or pages, or a callable that returns one",
            type(data).__name__, "Wrap a single row in a list.",
        )  # fmt: skip
    yield from _grouped(iter(data), page_size)


def _grouped(items: Iterator[Any], page_size: int) -> Iterator[Any]:
    """Rows in lists; frames and pages one by one."""
    whole = (pl.DataFrame, pa.Table, pa.RecordBatch, Page)
    for first in items:
        if isinstance(first, whole):
            yield first
        else:
            yield [first, *islice(items, page_size - 1)]


def _frame(item: Any, schema: Schema, arrival: str | None, where: str, first: int) -> pl.DataFrame:
    """What was fed, as a frame; of rows the `first` has this number."""
    if isinstance(item, pl.DataFrame):
        return item
    if isinstance(item, pa.Table | pa.RecordBatch):
        frame = pl.from_arrow(item)
        assert isinstance(frame, pl.DataFrame)
        return frame
    if arrival is not None and arrival not in schema:
        schema = Schema((*schema.attributes, Attribute(arrival, ARRIVAL.type, ARRIVAL.dtype)))
    try:
        return Page.of_rows(schema, item, where=where, first=first).frame
    except InterpunctError as error:
        raise FeedError(error.where, error.expected, error.got, error.fix) from None


def _checked(schema: Schema, frame: pl.DataFrame, where: str) -> Page:
    try:
        return Page.checked(schema, frame, where)
    except InterpunctError as error:
        raise FeedError(error.where, error.expected, error.got, error.fix) from None


def _moments(frame: pl.DataFrame, arrival: str, where: str) -> pl.Series:
    """The arrival column in microseconds, which must never decrease."""
    if arrival not in frame.columns:
        got = f"columns {', '.join(frame.columns)}"
        raise FeedError(where, f"an arrival column {arrival!r}", got, "Name the one there is.")
    column = frame.get_column(arrival)
    if isinstance(column.dtype, pl.Datetime):
        moments = column.dt.timestamp("us")
    elif column.dtype.is_integer():
        moments = column.cast(pl.Int64)
    else:
        raise FeedError(
            where, f"timestamps or microseconds in {arrival!r}", str(column.dtype), "Cast it."
        )
    if moments.null_count() or not moments.is_sorted():
        raise FeedError(
            where, f"arrivals in {arrival!r} that never decrease", "nulls or disorder",
            f"Sort by it first: frame.sort({arrival!r}).",
        )  # fmt: skip
    return moments


class Peekable:
    """Several feeds, looked at one page ahead."""

    def __init__(self, feeds: dict[str, Iterator[Arrival]]) -> None:
        self._feeds = feeds
        self._heads: dict[str, Arrival] = {}
        self.ended: list[str] = []
        for name in feeds:
            self._look(name)

    def __bool__(self) -> bool:
        return bool(self._heads)

    def first(self) -> int | None:
        """The least moment of arrival given by any feed."""
        return min((a.at for a in self._heads.values() if a.at is not None), default=None)

    def untimed(self) -> Iterator[tuple[str, Page]]:
        """One page of each feed that has no moments."""
        for name in [n for n, a in self._heads.items() if a.at is None]:
            yield name, self._pull(name)

    def due(self, now: int) -> Iterator[tuple[str, Page]]:
        """The pages whose moment has come, the earliest first."""
        while True:
            timed = [(a.at, n) for n, a in self._heads.items() if a.at is not None and a.at <= now]
            if not timed:
                return
            name = min(timed)[1]
            yield name, self._pull(name)

    def _pull(self, name: str) -> Page:
        page = self._heads[name].page
        self._look(name)
        return page

    def _look(self, name: str) -> None:
        head = next(self._feeds[name], None)
        if head is None:
            self._heads.pop(name, None)
            self.ended.append(name)
        else:
            self._heads[name] = head


def replayed(
    feeds: dict[str, Iterator[Arrival]], start: int, speeds: Mapping[str, float]
) -> dict[str, Iterator[Arrival]]:
    """The feeds with the first arrival of all moved to `start`, and the others accordingly."""
    heads = {name: list(islice(arrivals, 1)) for name, arrivals in feeds.items()}
    first = min((h.at for head in heads.values() for h in head if h.at is not None), default=0)
    return {
        name: _moved(chain(heads[name], arrivals), first, start, speeds[name])
        for name, arrivals in feeds.items()
    }


def _moved(arrivals: Iterable[Arrival], first: int, start: int, speed: float) -> Iterator[Arrival]:
    for arrival in arrivals:
        at = None if arrival.at is None else start + int((arrival.at - first) / speed)
        yield Arrival(at, arrival.page)
