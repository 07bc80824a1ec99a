"""A running query as a notebook shows it: is it alive, what did its batches do, who waits for whom.

speed-map   running, batch 12
batch   rows in   rows a second   milliseconds        operator   waits for   behind   …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import polars as pl
from pyspark.sql.streaming.query import StreamingQuery

from interpunct.flow.drawing import table

BATCHES = 8  # that are shown, the last ones


def shown(name: str, query: StreamingQuery, blame: pl.DataFrame | None) -> str:
    """The state of a query, its last batches, and its blame where that is known."""
    batches = table(("batch", "at", "rows in", "milliseconds"), _batches(query.recentProgress))
    return (
        f"<div><p><b>{escape(name)}</b> {escape(_state(query))}</p>{batches}"
        f"{_blamed(blame) if blame is not None else ''}</div>"
    )


def _state(query: StreamingQuery) -> str:
    if query.isActive:
        return str(query.status["message"])
    failure = query.exception()
    return "ended" if failure is None else f"failed: {str(failure).splitlines()[0]}"


def _batches(progress: Sequence[Mapping[str, Any]]) -> list[tuple[object, ...]]:
    """The last batches, those without a row too: they are the ones that wait."""
    return [
        (p["batchId"], str(p["timestamp"])[11:19], p["numInputRows"], p["batchDuration"])
        for p in list(progress)[-BATCHES:]
    ]


def _blamed(blame: pl.DataFrame) -> str:
    if not blame.height:
        return "<p>Nothing waits.</p>"
    columns = ("operator", "holds", "source", "quiet", "release")
    header = ("operator", "holds", "waits for", "which is", "released by")
    return table(header, blame.select(columns).rows())
