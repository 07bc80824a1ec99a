"""What SQL about streams says, as it was said: statements, queries, relations.

    statement  CREATE STREAM … | CREATE VIEW name AS query | INSERT INTO sink query | query
    query      SELECT items FROM relation [WHERE …] [GROUP BY …] [HAVING …] | query UNION query
    relation   name | (query) | relation JOIN relation … WITHIN … | relation UNION relation …

Nothing here knows what a name stands for; each part keeps the place where it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from interpunct.operators.lmerge_policy import MergePolicy
from interpunct.progress.timestamps import TimeSpec
from interpunct.sql.errors import Spot
from interpunct.sql.tokens import Name, Piece


@dataclass(frozen=True)
class Named:
    """A stream or a view, by the name it goes under in the rest of the query."""

    name: Name
    alias: str


@dataclass(frozen=True)
class Derived:
    """A query in the place of a stream."""

    query: Query
    alias: str | None


@dataclass(frozen=True)
class Applied:
    """An operator written as a function of streams: SORT(s), MERGE(a, b), LATE(s), …"""

    function: str
    streams: tuple[Relation, ...]
    count: int  # SLACK's tuples
    length: int  # SLACK's window, how long POLL keeps, how long EVENTS last
    flags: tuple[tuple[Name, bool], ...]  # what DECLARE says of the stream
    spot: Spot
    alias: str | None


@dataclass(frozen=True)
class Merged:
    """LMERGE(a, b) and what it puts out when (LMerge section V-A)."""

    streams: tuple[Relation, ...]
    variant: str | None
    policy: MergePolicy
    feedback: bool
    spot: Spot
    alias: str | None


@dataclass(frozen=True)
class Punctuated:
    """PUNCTUATE s EVERY … DELAY … (Punctuate section 3)."""

    stream: Relation
    every: int
    delay: int
    spot: Spot
    alias: str | None


@dataclass(frozen=True)
class Imputed:
    """s IMPUTE attributes FROM archive USING query (Feedback section 6)."""

    stream: Relation
    fills: tuple[Name, ...]
    archive: str
    query: str
    batch: int
    budget: int | None
    overwrite: bool
    spot: Spot
    alias: str | None


@dataclass(frozen=True)
class Joined:
    """Streams joined by one operator: keys by ON or by USING, one window or one for each."""

    streams: tuple[Relation, ...]
    on: Piece | None
    using: tuple[Name, ...]
    windows: tuple[int, ...]
    how: str
    thrifty: bool
    impatient: bool
    spot: Spot


@dataclass(frozen=True)
class Pace:
    """WITH PACE ON MAX(a.ts, b.ts) 1 MINUTE (Feedback section 3.3)."""

    on: tuple[tuple[Name, Name], ...]  # a stream of the union, and its time attribute
    within: int
    feedback: bool


@dataclass(frozen=True)
class United:
    """UNION keeps to the order of time, UNION ALL to the order of arrival."""

    streams: tuple[Relation, ...]
    in_order: bool
    pace: Pace | None
    spot: Spot


Relation = Named | Derived | Applied | Merged | Punctuated | Imputed | Joined | United


@dataclass(frozen=True)
class Item:
    """One item of a SELECT list; no piece stands for `*`."""

    piece: Piece | None
    alias: Name | None
    spot: Spot


@dataclass(frozen=True)
class Window:
    """TUMBLE(ts, length), HOP(ts, slide, size), or ROWS(rows, slide), which has no time."""

    time: Name | None
    size: int
    slide: int
    spot: Spot


@dataclass(frozen=True)
class Grouping:
    """GROUP BY keys, window; a key may be written with the stream it is of."""

    keys: tuple[Piece, ...]
    window: Window
    speculative: Spot | None


@dataclass(frozen=True)
class Select:
    items: tuple[Item, ...]
    source: Relation
    where: Piece | None
    group: Grouping | None
    having: Piece | None
    spot: Spot


@dataclass(frozen=True)
class Defined:
    """CREATE VIEW name AS query, or WITH name AS (query)."""

    name: Name
    query: Query


@dataclass(frozen=True)
class Scoped:
    """WITH a AS (…), b AS (…) query."""

    views: tuple[Defined, ...]
    query: Query


Query = Select | Relation | Scoped


@dataclass(frozen=True)
class Declared:
    """CREATE STREAM name (attributes) TIMESTAMP BY …"""

    name: Name
    attributes: tuple[Spot, ...]
    time: TimeSpec
    time_spot: Spot


@dataclass(frozen=True)
class Delivered:
    """INSERT INTO sink query, or a query alone, whose sink is `result`."""

    sink: Name
    query: Query
    explained: bool


Statement = Declared | Defined | Delivered
