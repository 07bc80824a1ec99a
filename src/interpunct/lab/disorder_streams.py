"""Streams for the comparison of Punctuate: bids that come in rushes, and recorded network logs.

    bids per second    ╭─╮     ╭─╮     ╭─╮      ten times as many at the height as in the lull,
                    ───╯ ╰─────╯ ╰─────╯ ╰──    one in ten delayed on its way

How many tuples are on the way in a second is not the same at all times, and that is where counting
tuples (slack) and reading a clock (punctuation) come apart. With `swing` 1 the rate is constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from interpunct.lab.heartbeat_streams import read_zeek

SECOND = 1_000_000
RATE = 200.0  # bids per second, in the mean
RUSH_S = 60.0  # from one rush to the next
DELAYED, DELAY_S = 0.1, 2.0  # the share of bids that are delayed, and by how much in the mean
OPEN, OPENS_S = 20, 3  # auctions open at a time, and the seconds after which the next one opens

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Disordered:
    """Tuples (key, ts, arrived, value) as they arrive; windows and delays that suit them."""

    name: str
    frame: pl.DataFrame
    window: int  # microseconds
    delays: tuple[int, ...]  # the same; whole windows, so that a punctuation closes one

    @property
    def ticks(self) -> Ints:
        return self.frame.get_column("ts").to_physical().to_numpy()

    @property
    def moments(self) -> Ints:
        return self.frame.get_column("arrived").to_numpy()


def bids(seconds: float, swing: float, seed: int) -> Disordered:
    """The generated auction: bids on the auctions open at the time."""
    random = np.random.default_rng(seed)
    event = _rushing(random, seconds, swing)
    delayed = random.random(len(event)) < DELAYED
    arrival = event + np.where(delayed, random.exponential(DELAY_S, len(event)), 0.0)
    age = random.integers(0, OPEN, len(event))
    auction = (event // OPENS_S).astype(np.int64) - age
    price = random.lognormal(3, 0.5, len(event)) * (1 + age / OPEN)
    frame = _arriving(_micros(arrival), _micros(event), auction, price.round(2), SECOND // 5)
    return Disordered("bids", frame, SECOND, tuple(d * SECOND for d in (1, 2, 4, 8)))


def _rushing(random: np.random.Generator, seconds: float, swing: float) -> Floats:
    """Moments of a Poisson process whose rate goes up and down by `swing`: of those at the
    greatest rate, as many are kept as there should be."""
    grid = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    mean = float((swing ** (np.sin(grid) / 2)).mean())
    greatest = RATE * swing**0.5 / mean
    at = np.sort(random.uniform(0, seconds, random.poisson(greatest * seconds)))
    kept = swing ** ((np.sin(2 * np.pi * at / RUSH_S) - 1) / 2)
    return at[random.random(len(at)) < kept]


def logs(path: Path) -> Disordered:
    """Network logs by log: stamped when a connection began, written when it was over."""
    frame = read_zeek(path)
    written = frame["write_ts"].dt.epoch("us").to_numpy()
    began = frame["ts"].dt.epoch("us").to_numpy()
    log = frame["path"].rank("dense").cast(pl.Int64).to_numpy()
    arriving = _arriving(written, began, log, (written - began) / SECOND, SECOND // 2)
    return Disordered("zeek", arriving, 10 * SECOND, tuple(d * SECOND for d in (10, 30, 80, 300)))


def _micros(seconds: Floats) -> Ints:
    return (seconds * SECOND).astype(np.int64)


def _arriving(arrival: Ints, event: Ints, key: Ints, value: Floats, batch: int) -> pl.DataFrame:
    """In the order of arrival; what comes within `batch` is handed over at its end, in a page."""
    order = np.argsort(arrival, kind="stable")
    columns = {
        "key": key[order],
        "ts": event[order],
        "arrived": (arrival[order] // batch + 1) * batch,
        "value": value[order],
    }
    return pl.DataFrame(columns).with_columns(pl.col("ts").cast(pl.Datetime("us", "UTC")))
