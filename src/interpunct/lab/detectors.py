"""Traffic detectors for the speed map: a simulated freeway, and the roads of Aarhus if present.

    report: '{"speed":54.2,"volume":7,"occupancy":12.6}'     each detector, every 20 seconds

A detector sends text. The plan of Figure 4 (b) of Feedback reads it, filters what a detector in
order cannot have said, and averages by segment:

    sensors ── quality filter ── AVERAGE ── map

The paper names the filter and not its tests; these are the usual ones for loop detectors: bounds,
values that exclude each other, and the length of vehicle that speed and occupancy amount to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from interpunct.api import Flow
from interpunct.model.errors import FeedError
from interpunct.model.page import Page
from interpunct.model.schema import Schema, to_ticks
from interpunct.progress.timestamps import TimeSpec, bounds, external

SCHEMA = "segment bigint, detector bigint, ts timestamp, report string"
SECOND = 1_000_000
MINUTE = 60 * SECOND
SEGMENTS, DETECTORS, EVERY = 9, 40, 20  # of the paper's freeway; seconds between reports
PAGE_SIZES = (SEGMENTS * DETECTORS, 6 * SEGMENTS * DETECTORS)  # a report of all, and two minutes
START = to_ticks(datetime(2009, 3, 2, 5, tzinfo=UTC))
FAULTY = 0.05  # of the reports

FREEWAY = {  # miles an hour, vehicles in 20 seconds, per cent of the time
    "speed": "speed between 0 and 100",
    "volume": "volume between 0 and 17",
    "occupancy": "occupancy between 0 and 95",
    "standing": "not (speed = 0 and volume > 0)",
    "empty": "not (volume = 0 and (speed > 0 or occupancy > 0))",
    "length": "volume = 0 or 5280 * speed * occupancy / (18000 * volume) between 5 and 60",
}
CITY = {  # kilometres an hour, vehicles in five minutes, seconds
    "speed": "speed between 1 and 150",
    "volume": "volume between 0 and 500",
    "travel": "travel between 1 and 3600",
    "length": "speed * travel / 3.6 between 50 and 30000",
}

AARHUS = "aarhus_traffic_2014-08.parquet"
PLACES = (".", "data", "../shared/data")  # where it is looked for, from the current directory
LATEST = 15  # minutes by which the latest of its reports are late


@dataclass(frozen=True)
class Recording:
    """A stream of reports, what is done with it, and how a person would look at it."""

    name: str
    frame: pl.DataFrame = field(repr=False)  # in the order of arrival
    time: TimeSpec
    fields: tuple[str, ...]  # of a report
    tests: Mapping[str, str]  # of the quality filter
    window: timedelta
    page_sizes: tuple[int, ...]
    minutes: tuple[int, ...]  # between two switches of the viewer

    def flow(self, *, partial: bool = False) -> Flow:
        """The plan: read and filter, average, map; with `partial` also the answers to demands."""
        flow = Flow(f"zoom-{self.name}")
        sensors = flow.source("sensors", SCHEMA, time=self.time)
        read = {name: _field(name) for name in self.fields}
        reading = sensors.select("segment", "ts", name="reading", **read)
        good = reading.where(" and ".join(f"({t})" for t in self.tests.values()), name="quality")
        average = good.aggregate(
            by="segment", every=self.window, speed="avg(speed)", n="count(*)", name="average"
        )
        flow.sink("map", average)
        if partial:
            flow.sink("now", average.partial)
        return flow

    def pages(self, size: int) -> list[Page]:
        schema = Schema.of(SCHEMA)
        cuts = range(0, self.frame.height, size)
        return [Page(schema, self.frame.slice(start, size)) for start in cuts]

    @property
    def segments(self) -> list[int]:
        return sorted(self.frame["segment"].unique().to_list())

    @property
    def span(self) -> tuple[int, int]:
        """The first window and the last tuple, in ticks."""
        ticks = self.frame["ts"].to_physical()
        width = self.window // timedelta(microseconds=1)
        first, last = int(ticks.min()), int(ticks.max())  # type: ignore[arg-type]
        return first // width * width, last


def _field(name: str) -> pl.Expr:
    """A number of a report; null where it is not one."""
    return pl.col("report").str.json_path_match(f"$.{name}").cast(pl.Float64, strict=False)


def freeway(hours: float = 18.0, seed: int = 1) -> Recording:
    """Experiment 2: 9 segments of 40 detectors, each heard of every 20 seconds."""
    random = np.random.default_rng(seed)
    moments = START + np.arange(round(hours * 3600 / EVERY)) * EVERY * SECOND
    detectors = np.tile(np.arange(SEGMENTS * DETECTORS), len(moments))
    ticks = np.repeat(moments, SEGMENTS * DETECTORS)
    values = _readings(random, ticks, detectors // DETECTORS)
    frame = _reports(
        pl.Series(detectors // DETECTORS), pl.Series(detectors), pl.Series(ticks), values
    )
    return Recording(
        "freeway", frame, external("ts", ordered=True), tuple(values), FREEWAY,
        timedelta(seconds=EVERY), PAGE_SIZES, (2, 4, 6),
    )  # fmt: skip


def _readings(
    random: np.random.Generator, ticks: np.ndarray, segments: np.ndarray
) -> dict[str, np.ndarray]:
    """Speeds that sink with traffic, which has a rhythm of its own on each segment; some reports
    are of detectors that fail: stuck at nothing, or far too fast."""
    busy = 0.5 + 0.4 * np.sin(ticks / SECOND / 3600 * np.pi / 4 + segments)
    volume = random.poisson(2 + 6 * busy).clip(0, 17)
    speed = (65 - 35 * busy + random.normal(0, 4, len(ticks))).clip(3)
    speed = np.where(volume == 0, 0, speed)
    length = random.normal(20, 2, len(ticks))  # of a vehicle, in feet
    occupancy = volume * length * 18000 / 5280 / speed.clip(1)
    fault = random.random(len(ticks)) / FAULTY
    speed = np.where(fault < 0.5, 0, np.where(fault < 1, 10 * speed + 101, speed))
    return {"speed": speed.round(1), "volume": volume, "occupancy": occupancy.round(1).clip(0, 100)}


def _reports(
    segments: pl.Series, detectors: pl.Series, ticks: pl.Series, values: Mapping[str, np.ndarray]
) -> pl.DataFrame:
    """What detectors send, as text."""
    text = pl.DataFrame(values).select(pl.struct(pl.all()).struct.json_encode().alias("report"))
    head = {"segment": segments, "detector": detectors, "ts": ticks}
    types = Schema.of(SCHEMA).polars
    return pl.DataFrame(head).hstack(text).cast(types)  # type: ignore[arg-type]


def find_aarhus(given: Path | None) -> Path | None:
    """The recording: where it was said to be, else wherever it usually is, else None."""
    if given is None:
        found = (Path(place) / AARHUS for place in PLACES)
        return next((path for path in found if path.is_file()), None)
    path = given / AARHUS if given.is_dir() else given
    if not path.is_file():
        raise FeedError(
            "--data", f"a file, or a directory that holds {AARHUS}", str(given),
            "Leave the option out to run on the simulated freeway alone.",
        )  # fmt: skip
    return path


def aarhus(path: Path, hours: float = 18.0) -> Recording:
    """449 road segments, heard of every five minutes, up to a quarter of an hour late; from the
    first midnight of the recording on."""
    wanted = ["arrival_id", "ts", "segment_id", "avg_speed_kmh", "vehicle_count", "avg_travel_s"]
    recorded = pl.read_parquet(path, columns=wanted).sort("arrival_id", maintain_order=True)
    ticks = recorded["ts"].dt.epoch("us")
    day = (int(ticks[0]) // (1440 * MINUTE) + 1) * 1440 * MINUTE
    taken = ticks.is_between(day, day + round(hours * 60 * MINUTE), closed="left")
    rows = recorded.filter(taken)
    named = {"speed": "avg_speed_kmh", "volume": "vehicle_count", "travel": "avg_travel_s"}
    values = {name: rows[column].to_numpy() for name, column in named.items()}
    frame = _reports(rows["segment_id"], rows["segment_id"], ticks.filter(taken), values)
    one = frame["segment"].n_unique()
    late = external("ts", bounds=bounds(skew=timedelta(minutes=LATEST)))
    return Recording(
        "aarhus", frame, late, tuple(values), CITY, timedelta(minutes=30), (one,),
        (30, 60, 90),
    )  # fmt: skip
