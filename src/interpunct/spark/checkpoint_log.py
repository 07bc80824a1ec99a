"""What Spark itself writes into a checkpoint of the batches of a query.

    offsets/7    written before batch 7 runs: a version, then when it began, in JSON
    commits/7    written when it is done

It tells of batches where nobody else does: a query made of `flow.to_df` is not ours to look at.
"""

from __future__ import annotations

import json

from interpunct.engine.vitals import Logged
from interpunct.spark.files import JsonFolder

MILLISECOND = 1_000  # µs


def logged(checkpoint: str) -> Logged | None:
    """The batches that the log of a checkpoint knows of; None where there is no log."""
    folder = JsonFolder(checkpoint)
    begun, done = _last(folder, "offsets"), _last(folder, "commits")
    if begun is None:
        return None
    finished = None if done is None else _began(folder, done)
    current = None if begun == done else _began(folder, begun)
    return Logged(0 if done is None else done + 1, finished, current)


def _last(folder: JsonFolder, log: str) -> int | None:
    """The greatest number of a batch in a log; Spark keeps the last hundred or so."""
    names = (name.rpartition("/")[2] for name in folder.names(log))
    return max((int(name) for name in names if name.isdigit()), default=None)


def _began(folder: JsonFolder, batch: int) -> int | None:
    """When a batch began, in µs of the clock; None where that is not to be read."""
    line = next((x for x in folder.lines(f"offsets/{batch}") if x.startswith("{")), "{}")
    try:
        at = json.loads(line).get("batchTimestampMs")
    except ValueError:  # of a version to come
        return None
    return None if at is None else int(at) * MILLISECOND
