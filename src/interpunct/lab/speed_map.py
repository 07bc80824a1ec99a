"""The speed map: the main job, on Spark, beside the same job in plain PySpark.

Road sensors report the speed of each segment; probe vehicles report theirs, out of order, some
wrong, and for a while not at all. Vehicle speeds are averaged over 20 seconds and joined to the
sensors' (Feedback section 1). Both jobs read the same recording at the speed it was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from interpunct.api import Flow
from interpunct.model.durations import duration
from interpunct.model.errors import FlowError
from interpunct.model.schema import to_ticks
from interpunct.progress.clock import RealClock
from interpunct.progress.timestamps import bounds, external
from interpunct.spark.replay import replay
from interpunct.spark.writers import Parquet

SECOND = 1_000_000
SEGMENTS = 9
SKEW = "5 seconds"
WINDOW = "20 seconds"


@dataclass(frozen=True)
class Plan:
    """How long the recording is, when the vehicles are quiet, and where files go."""

    seconds: int = 100
    quiet: tuple[int, int] = (25, 65)
    vehicles_per_second: int = 60
    seed: int = 1
    folder: Path = Path("out/speed-map")


@dataclass
class Delivered:
    """When rows came out of a job, on its own replay's clock, which starts with its first batch."""

    began: int | None = None  # clock of the first batch, in microseconds
    batches: list[tuple[int, int]] = field(default_factory=list)  # clock, rows

    @property
    def rows(self) -> list[tuple[float, int]]:
        """Seconds since the replay began, and rows."""
        return [((at - (self.began or at)) / 1e6, n) for at, n in self.batches]

    def between(self, low: float, high: float) -> int:
        return sum(n for at, n in self.rows if low <= at < high)

    def when(self, rows: int) -> float | None:
        """The second at which so many rows had come out."""
        reached = np.cumsum([n for _, n in self.rows]) >= rows
        return self.rows[int(reached.argmax())][0] if reached.any() else None

    @property
    def total(self) -> int:
        return sum(n for _, n in self.batches)


def flow() -> Flow:
    """The job as a flow."""
    flow = Flow("speed-map")
    ddl = "segment bigint, ts timestamp, speed double"
    sensors = flow.source("sensors", ddl, time=external("ts", bounds(skew=SKEW)))
    vehicles = flow.source("vehicles", ddl, time=external("ts", bounds(skew=SKEW)))
    probe = vehicles.where("speed between 0 and 120").aggregate(
        by="segment", every=WINDOW, speed="avg(speed)", n="count(*)"
    )
    flow.sink("map", sensors.join(probe, on="segment", within=WINDOW, how="left"))
    return flow


def plain(sensors: DataFrame, vehicles: DataFrame) -> DataFrame:
    """The same job as PySpark users write it: one guessed delay for each source."""
    probe = (
        vehicles.where("speed between 0 and 120")
        .withWatermark("ts", SKEW)
        .groupBy(F.window("ts", WINDOW), "segment")
        .agg(F.avg("speed").alias("probe_speed"), F.count("*").alias("n"))
        .select(F.col("segment").alias("probe_segment"), "probe_speed", "n",
                F.window_time("window").alias("until"))
    )  # fmt: skip
    close = F.expr("segment = probe_segment AND ts >= until - INTERVAL 40 SECONDS AND ts <= until")
    return sensors.withWatermark("ts", SKEW).join(probe, close, "left_outer")


def record(plan: Plan) -> dict[str, Path]:
    """Write the recording: tuples in the order they arrive. It begins with a window, so that a run
    looks the same at any time of the day."""
    random = np.random.default_rng(plan.seed)
    window = duration(WINDOW, "window")
    start = RealClock().now() // window * window
    times = np.arange(0, plan.seconds * SECOND, 2 * SECOND)
    ticks, segments = np.repeat(times, SEGMENTS), np.tile(np.arange(SEGMENTS), len(times))
    delay = random.integers(0, SECOND // 2, len(ticks))
    sensors = _frame(start, ticks, segments, _speeds(random, ticks, segments), delay)
    size = plan.seconds * plan.vehicles_per_second
    ticks = np.sort(random.integers(0, plan.seconds * SECOND, size))
    segments = random.integers(0, SEGMENTS, size)
    speeds = _speeds(random, ticks, segments)
    wrong = random.random(size) < 0.02
    delay = np.minimum(random.exponential(1.2, size), 30) * SECOND
    vehicles = _frame(start, ticks, segments, np.where(wrong, 999.0, speeds), delay)
    low, high = (start + s * SECOND for s in plan.quiet)
    arrival = pl.col("arrival").cast(pl.Int64)
    vehicles = vehicles.filter(~arrival.is_between(low, high))
    return {n: _write(f, plan, n) for n, f in (("sensors", sensors), ("vehicles", vehicles))}


def _speeds(random: np.random.Generator, ticks: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Each segment has its own rhythm of congestion."""
    wave = np.sin(ticks / SECOND / 15 + segments)
    return np.asarray(55 + 25 * wave + random.normal(0, 4, len(ticks)))


def _frame(
    start: int, ticks: np.ndarray, segments: np.ndarray, speeds: np.ndarray, delay: np.ndarray
) -> pl.DataFrame:
    stamped = (start + ticks).astype(np.int64)
    frame = pl.DataFrame({"segment": segments, "ts": stamped, "speed": speeds.clip(0),
                          "arrival": stamped + delay.astype(np.int64)})  # fmt: skip
    moments = pl.col("ts", "arrival").cast(pl.Datetime("us", "UTC"))
    return frame.with_columns(moments).sort("arrival", maintain_order=True)


def _write(frame: pl.DataFrame, plan: Plan, name: str) -> Path:
    path = plan.folder / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(path)
    return path


@dataclass
class Race:
    """Both jobs, running."""

    plan: Plan
    queries: dict[str, StreamingQuery]
    delivered: dict[str, Delivered]
    clock: RealClock

    def elapsed(self) -> float:
        """Seconds on the clock of the job that began last; 0 until both have."""
        for name, query in self.queries.items():
            progress = query.recentProgress
            if self.delivered[name].began is None and progress:
                self.delivered[name].began = to_ticks(
                    datetime.fromisoformat(progress[0]["timestamp"])
                )
        began = [d.began for d in self.delivered.values()]
        known = [b for b in began if b is not None]
        return (self.clock.now() - max(known)) / 1e6 if len(known) == len(began) else 0.0

    def watch(self, every: int = 1) -> Iterator[float]:
        """Moments to look, until the recording and what is due after it have gone by."""
        last = self.plan.seconds + 12
        ours, plain = self.queries["interpunct"], self.queries["plain"]
        while self.elapsed() < last:
            if ours.awaitTermination(every) or not plain.isActive:
                break
            yield min(1.0, self.elapsed() / last)

    def stop(self) -> None:
        for query in self.queries.values():
            query.stop()
            error = query.exception()
            if error is not None:
                raise error


def start(spark: SparkSession, plan: Plan) -> Race:
    """Begin both jobs over the same recording."""
    paths = record(plan)
    clock = RealClock()
    delivered = {"interpunct": Delivered(), "plain": Delivered()}

    def counted(name: str, write: Callable[[DataFrame, int], None]) -> Callable[..., None]:
        def deliver(rows: DataFrame, batch: int) -> None:
            rows.persist()
            count = rows.count()
            if count:
                write(rows, batch)
                delivered[name].batches.append((clock.now(), count))
            rows.unpersist()

        return deliver

    def feed(name: str) -> DataFrame:
        return replay(spark, str(paths[name]), arrival="arrival", speed=1.0, partitions=1)

    folder = plan.folder
    ours = flow().start(
        spark, {n: feed(n) for n in paths}, checkpoint=str(folder / "checkpoint"),
        sinks={"map": counted("interpunct", Parquet(str(folder / "map")))},
    )  # fmt: skip
    baseline = plain(feed("sensors"), feed("vehicles"))
    query = (
        baseline.writeStream.queryName("plain")
        .foreachBatch(counted("plain", Parquet(str(folder / "plain"))))
        .option("checkpointLocation", str(folder / "plain-checkpoint"))
        .start()
    )
    return Race(plan, {"interpunct": ours.query, "plain": query}, delivered, clock)


@dataclass(frozen=True)
class Outcome:
    """What a person wants to see in the end."""

    plan: Plan
    delivered: dict[str, Delivered]
    speeds: pl.DataFrame  # segment, ts (start of window), speed, n

    @property
    def counted(self) -> tuple[int, int]:
        """The seconds in which a job that waits for vehicles delivers nothing: what was due before
        they fell quiet has come out ten seconds later."""
        low, high = self.plan.quiet
        return low + 10, high

    @property
    def windows(self) -> list[datetime]:
        """All from the first to the last, those too in which no vehicle was seen."""
        seen: list[datetime] = self.speeds["ts"].unique().sort().to_list()
        if not seen:
            return []
        length = timedelta(microseconds=duration(WINDOW, "window"))
        return [seen[0] + n * length for n in range((seen[-1] - seen[0]) // length + 1)]

    def lead(self) -> tuple[int, float, float] | None:
        """Where plain is furthest behind: how many rows, and the seconds at which each had them."""
        ours, theirs = (self.delivered[n] for n in ("interpunct", "plain"))
        had = np.cumsum([n for _, n in theirs.rows])
        reached = [
            (rows, ours.when(rows), at) for rows, (at, _) in zip(had, theirs.rows, strict=True)
        ]
        known = [(int(rows), first, at) for rows, first, at in reached if first is not None]
        return max(known, key=lambda found: found[2] - found[1], default=None)

    def to_json(self) -> dict[str, object]:
        quiet = {n: d.between(*self.counted) for n, d in self.delivered.items()}
        more = quiet["interpunct"] > quiet["plain"]
        return {
            "seconds": self.plan.seconds,
            "seed": self.plan.seed,
            "quiet": list(self.plan.quiet),
            "rows": {n: d.total for n, d in self.delivered.items()},
            "rows_during_quiet": quiet,
            "result": str(self.plan.folder / "map"),
            "expected": {"interpunct_goes_on_while_the_vehicles_are_quiet": more},
        }


def outcome(race: Race) -> Outcome:
    """Read the written result back."""
    written = sorted((race.plan.folder / "map").glob("**/*.parquet"))
    if not written:
        raise FlowError(
            "speed map", f"rows within {race.plan.seconds} s", "none",
            "The machine is busy: run it again when it is not, or longer (--seconds 160).",
        )  # fmt: skip
    rows = pl.read_parquet(written)
    probe = rows.filter(pl.col("n").is_not_null())
    speeds = probe.group_by("segment", pl.col("ts_right").alias("ts")).agg(
        pl.col("speed_right").first().alias("speed"), pl.col("n").first()
    )
    return Outcome(race.plan, race.delivered, speeds.sort("segment", "ts"))


def picture(result: Outcome, path: Path) -> None:
    """Rows delivered over time by both jobs, and the map itself."""
    from interpunct.lab.figures import figure, saved

    drawing, (left, right) = figure(2, "Speed map: the vehicles go quiet, the map goes on")
    end = max(result.plan.seconds, *(t for d in result.delivered.values() for t, _ in d.rows))
    for name, style in (("interpunct", "-"), ("plain", "--")):
        rows = [(0.0, 0), *result.delivered[name].rows, (end, 0)]
        times, counts = [t for t, _ in rows], np.cumsum([n for _, n in rows])
        left.step(times, counts, style, where="post", label=name)
    left.axvspan(*result.plan.quiet, color="0.9", label="vehicles quiet")
    left.set(xlabel="seconds", ylabel="rows delivered")
    left.legend()
    windows = result.windows
    grid = np.full((SEGMENTS, max(1, len(windows))), np.nan)
    for segment, ts, speed, _ in result.speeds.iter_rows():
        grid[segment, windows.index(ts)] = speed
    drawn = right.imshow(grid, aspect="auto", cmap="RdYlGn", vmin=20, vmax=90)
    right.set_xticks(range(len(windows)), [f"{w:%H:%M:%S}" for w in windows])
    right.set_facecolor("0.8")  # which is seen where there is no speed
    right.set(xlabel="20-second window", ylabel="segment",
              title="average vehicle speed; grey: no vehicle seen")  # fmt: skip
    drawing.colorbar(drawn, ax=right)
    saved(drawing, path)
