"""An archive of speeds that takes its time, and sensors that fail: for the experiments on IMPUTE.

The archive is an SQLite file with a table of old readings and no index, so that a look-up reads
all of it: the mean speed of a segment around a minute of the day.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

SEGMENTS = 10
MINUTES = 24 * 60
SCHEMA = "id bigint, ts timestamp, segment bigint, minute bigint, speed double"
QUERY = """
    select avg(speed) as speed from readings
    where segment = :segment and abs(minute - :minute) <= 15
"""
ABOUT = "SQLite file, {rows:,} old readings, no index: each look-up scans them all"


@contextmanager
def speed_archive(rows: int, seed: int) -> Iterator[str]:
    """The path of an archive with that many readings, for as long as it is needed."""
    rng = np.random.default_rng(seed)
    minutes = rng.integers(0, MINUTES, rows)
    segments = rng.integers(0, SEGMENTS, rows)
    speeds = 55 - 20 * np.cos(4 * np.pi * minutes / MINUTES) + rng.normal(0, 5, rows)
    with TemporaryDirectory(prefix="interpunct-") as folder:
        path = Path(folder) / "speeds.db"
        database = sqlite3.connect(path)
        database.execute("create table readings (segment int, minute int, speed real)")
        columns = (segments.tolist(), minutes.tolist(), speeds.tolist())
        database.executemany("insert into readings values (?, ?, ?)", zip(*columns, strict=True))
        database.commit()
        database.close()
        yield str(path)


def sensors(tuples: int, interval: int, dirty_every: int, seed: int) -> pl.DataFrame:
    """A reading every `interval` microseconds; the last of each `dirty_every` lacks its speed."""
    rng = np.random.default_rng(seed)
    ids = np.arange(tuples)
    speeds = np.where(ids % dirty_every == dirty_every - 1, np.nan, rng.normal(55, 10, tuples))
    return pl.DataFrame(
        {
            "id": ids,
            "ts": pl.Series(ids * interval).cast(pl.Datetime("us", "UTC")),
            "segment": rng.integers(0, SEGMENTS, tuples),
            "minute": rng.integers(0, MINUTES, tuples),
            "speed": pl.Series(speeds).fill_nan(None),
        }
    )
