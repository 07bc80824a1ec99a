"""The demonstration: a freeway of nine segments with a wandering jam, as a query on Spark.

    sensors ───────────────┐
                           ├─ together ─ average ─ map          someone zooms into segments 3 to 5:
    vehicles ─ quality ────┘                                    ¬[segment ∉ {3, 4, 5}, ts ≤ …]

Road sensors report every second, vehicles whenever they like, up to some seconds late, some wrong,
and in every minute for a quarter of it not at all. Then the union waits for them, and the studio
shows who is to blame. The recording is replayed at its own speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from pyspark.sql import SparkSession

from interpunct.api import Flow
from interpunct.progress.clock import RealClock
from interpunct.progress.timestamps import bounds, external
from interpunct.spark.query import FlowQuery
from interpunct.spark.replay import replay
from interpunct.studio.map_view import MapView

SECOND = 1_000_000
SEGMENTS = 9
DDL = "segment bigint, ts timestamp, speed double"
WINDOW = "2s"
TRIGGER = "500 milliseconds"
MOST_LATE = 6.0  # seconds: a few come later than the bounds say
ABOUT = (
    "Late on purpose: a few vehicles report up to 6 s late, and their bounds allow for 3 s. "
    "They are kept in checkpoint/late/vehicles."
)


@dataclass(frozen=True)
class Traffic:
    """How much is recorded, and when in each minute the vehicles are quiet."""

    seconds: int = 1800
    vehicles_per_second: int = 400
    quiet: tuple[int, int] = (35, 50)
    seed: int = 1


def flow() -> Flow:
    """The speed map: what sensors and vehicles say, averaged by segment."""
    flow = Flow("speed-map")
    sensors = flow.source("sensors", DDL, time=external("ts", bounds(skew="1s")))
    vehicles = flow.source("vehicles", DDL, time=external("ts", bounds(skew="3s")))
    good = vehicles.where("speed between 0 and 120", name="quality")
    both = flow.union(sensors, good, name="together")
    averaged = both.aggregate(
        by="segment", every=WINDOW, speed="avg(speed)", n="count(*)", name="average"
    )
    flow.sink("map", averaged)
    return flow


def record(traffic: Traffic, folder: Path, ahead: int = 0) -> dict[str, Path]:
    """Write what will arrive, in the order of arrival, beginning `ahead` µs from now."""
    folder.mkdir(parents=True, exist_ok=True)
    random, start = np.random.default_rng(traffic.seed), RealClock().now() + ahead
    made = {"sensors": _sensors(random, traffic), "vehicles": _vehicles(random, traffic)}
    paths = {}
    for name, frame in made.items():
        moments = (pl.col("ts", "arrival") + start).cast(pl.Datetime("us", "UTC"))
        paths[name] = folder / f"{name}.parquet"
        frame.with_columns(moments).sort("arrival", maintain_order=True).write_parquet(paths[name])
    return paths


def start(
    spark: SparkSession, folder: Path, view: MapView, traffic: Traffic, ahead: int
) -> FlowQuery:
    """The query over a new recording, with the view as its sink.

    `ahead` is what Spark will need before it asks for the first row, about: so much later the
    traffic begins, so that its times are those of the clock.
    """
    paths = record(traffic, folder, ahead)
    feeds = {
        name: replay(spark, str(path), arrival="arrival", speed=1.0, partitions=1)
        for name, path in paths.items()
    }
    return flow().start(
        spark, feeds, checkpoint=str(folder / "checkpoint"), sinks={"map": view},
        trigger={"processingTime": TRIGGER},
    )  # fmt: skip


def speed_map() -> MapView:
    return MapView("map", place="segment", value="speed", width=WINDOW, span=(15.0, 75.0))


def _sensors(random: np.random.Generator, traffic: Traffic) -> pl.DataFrame:
    times = np.arange(0, traffic.seconds * SECOND, SECOND)
    ticks, segments = np.repeat(times, SEGMENTS), np.tile(np.arange(SEGMENTS), len(times))
    return _frame(ticks, segments, _speeds(random, ticks, segments),
                  random.uniform(0, 0.4, ticks.size))  # fmt: skip


def _vehicles(random: np.random.Generator, traffic: Traffic) -> pl.DataFrame:
    size = traffic.seconds * traffic.vehicles_per_second
    ticks = np.sort(random.integers(0, traffic.seconds * SECOND, size))
    segments = random.integers(0, SEGMENTS, size)
    speeds = np.where(random.random(size) < 0.02, 999.0, _speeds(random, ticks, segments))
    frame = _frame(ticks, segments, speeds, random.exponential(0.5, size).clip(0, MOST_LATE))
    low, high = (s * SECOND for s in traffic.quiet)
    return frame.filter(~(pl.col("arrival") % (60 * SECOND)).is_between(low, high))


def _speeds(
    random: np.random.Generator, ticks: npt.NDArray[np.int64], segments: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """A jam that wanders against the traffic, one segment in eight seconds, and comes again."""
    place = (SEGMENTS + 3 - ticks / SECOND / 8) % (SEGMENTS + 3) - 1.5
    jam = np.exp(-(((segments - place) / 1.3) ** 2))
    calm = 62 + 4 * np.sin(ticks / SECOND / 20 + segments)
    return np.asarray((calm - 42 * jam + random.normal(0, 3, ticks.size)).clip(2))


def _frame(
    ticks: npt.NDArray[np.int64],
    segments: npt.NDArray[np.int64],
    speeds: npt.NDArray[np.float64],
    delay: npt.NDArray[np.float64],
) -> pl.DataFrame:
    arrival = ticks + (delay * SECOND).astype(np.int64)
    return pl.DataFrame({"segment": segments, "ts": ticks, "speed": speeds, "arrival": arrival})
