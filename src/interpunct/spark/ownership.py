"""A folder of results belongs to one query.

Batches count from 0 under a new checkpoint, and each replaces the folder of its number: a query
with a new checkpoint would replace, batch by batch, what the one before it has written. So a query
leaves its name, which is that of its checkpoint, in the folder, and another one is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from interpunct.model.errors import FlowError
from interpunct.spark.files import JsonFolder

OWNER = "_interpunct.json"  # Spark reads no file whose name begins so
BATCH = "batch="


def refuse_others(folders: Iterable[str], checkpoint: str, where: str) -> None:
    """Refuse folders in which another query has written; one that Arrow cannot reach passes."""
    query = _query_of(checkpoint)
    for folder in folders:
        try:
            owner = JsonFolder(folder).read(OWNER)
            written = JsonFolder(folder).begins(BATCH)
        except (OSError, ValueError, ImportError):
            continue
        theirs = owner["query"] != query if owner is not None else query is None
        if written and theirs:
            was = "" if owner is None else f", whose checkpoint is {owner['checkpoint']}"
            raise FlowError(
                where, "a path in which no other query has written",
                f"{folder} with batches of another one{was}",
                "They would be replaced: give it another path, or go on with that checkpoint.",
            )  # fmt: skip


def claim(folders: Iterable[str], query: str, checkpoint: str) -> None:
    """Leave the query's name in its folders."""
    for folder in folders:
        try:
            JsonFolder(folder).rewrite(OWNER, {"query": query, "checkpoint": checkpoint})
        except (OSError, ValueError, ImportError):
            continue  # nothing was checked there, either


def _query_of(checkpoint: str) -> str | None:
    """What Spark calls the query of a checkpoint; None of one that is new."""
    try:
        lines = JsonFolder(checkpoint).lines("metadata")
        return str(json.loads(lines[0])["id"]) if lines else None
    except (OSError, ValueError, ImportError):
        return None
