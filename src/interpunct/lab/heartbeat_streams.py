"""Disordered streams to learn bounds from: recorded network logs, and a stream with spikes.

    latency          ╱╲                        ╱╲
                    ╱  ╲                      ╱  ╲        for one tuple in five
    ───────────────╱────╲────────────────────╱────╲────── for the others

A generated stream has two ways to us. One is always quick; the other is now and then congested, and
its latency climbs and falls again over minutes. Between the spikes hardly anything is late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from interpunct.model.errors import FeedError

ZEEK = "zeek_wrccdc_2018.parquet"
LOGS = ("ssl", "dns")
PLACES = (".", "data", "../shared/data")  # where it is looked for, from the current directory
RATE = 100.0  # tuples per second of the generated stream
CONGESTED = 0.2  # the share of tuples that go the way which spikes
QUICK_S = 0.05  # median latency otherwise
PEAK_S = (5.0, 15.0)  # how high a spike goes
RAMP_S = (20.0, 60.0)  # how long it climbs, and how long it falls

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Arrivals:
    """A stream in the order it arrived, in pages: microseconds of arrival, ticks of time."""

    name: str
    moments: Ints  # when each page arrived
    ticks: tuple[Ints, ...]  # the timestamps in it

    @property
    def tuples(self) -> int:
        return sum(len(page) for page in self.ticks)

    @property
    def seconds(self) -> float:
        return float(self.moments[-1] - self.moments[0]) / 1e6

    def __iter__(self) -> Iterator[tuple[int, Ints]]:
        return zip(self.moments.tolist(), self.ticks, strict=True)


def in_pages(name: str, arrival: Ints, ticks: Ints, page: int) -> Arrivals:
    """Pages of so many tuples; a page arrives, all of it, when its last tuple does."""
    order = np.argsort(arrival, kind="stable")
    arrival, ticks = arrival[order], ticks[order]
    begins = np.arange(0, len(arrival), page)
    lasts = np.minimum(begins + page, len(arrival)) - 1
    return Arrivals(name, arrival[lasts], tuple(np.split(ticks, begins[1:])))


def spiky(seconds: float, spikes: int, seed: int, page: int) -> Arrivals:
    """The generated stream."""
    random = np.random.default_rng(seed)
    count = round(seconds * RATE)
    event = np.sort(random.uniform(0, seconds, count))
    latency = random.lognormal(np.log(QUICK_S), 0.5, count)
    centres = (np.arange(spikes) + random.uniform(0.2, 0.8, spikes)) * seconds / spikes
    for centre in centres:
        peak, ramp = random.uniform(*PEAK_S), random.uniform(*RAMP_S)
        level = peak * np.clip(1 - np.abs(event - centre) / ramp, 0, None)
        share = np.minimum(random.exponential(1, count), 2)  # of the congestion, for each tuple
        latency += np.where(random.random(count) < CONGESTED, level * share, 0)
    arrival = ((event + latency) * 1e6).astype(np.int64)
    return in_pages("spikes", arrival, (event * 1e6).astype(np.int64), page)


def find_zeek(given: Path | None) -> Path | None:
    """The recorded logs: where they were said to be, else wherever they usually are, else None."""
    if given is None:
        found = (Path(place) / ZEEK for place in PLACES)
        return next((path for path in found if path.is_file()), None)
    path = given / ZEEK if given.is_dir() else given
    if not path.is_file():
        raise FeedError(
            "--data", f"a file, or a directory that holds {ZEEK}", str(given),
            "Leave the option out to run on the generated stream alone.",
        )  # fmt: skip
    return path


def read_zeek(path: Path) -> pl.DataFrame:
    """The logs, or an error that says which columns they lack."""
    frame = pl.read_parquet(path)
    wanted = {"path", "write_ts", "ts"}
    if not wanted <= set(frame.columns):
        raise FeedError(
            str(path), "the columns path (log), write_ts (arrival) and ts (event)",
            ", ".join(frame.columns), "Rename the columns.",
        )  # fmt: skip
    return frame


def zeek(path: Path, page: int) -> Iterator[Arrivals]:
    """Network logs, stamped when a connection began and written later: all as one stream, then
    the two greatest of those that are out of order by themselves."""
    frame = read_zeek(path)
    for name, part in {"zeek": frame, **{f"zeek_{log}": _log(frame, log) for log in LOGS}}.items():
        if len(part):
            micros = part.select(pl.col("write_ts", "ts").dt.epoch("us"))
            yield in_pages(name, micros["write_ts"].to_numpy(), micros["ts"].to_numpy(), page)


def _log(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame.filter(pl.col("path") == name)
