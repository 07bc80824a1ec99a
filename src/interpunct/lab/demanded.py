"""Demanded feedback: a partial answer now, and the final one as ever (Feedback section 3.4).

    ─ report ─ report ─┃─ report ─ ▶ final average of the minute
                       ┗ ![segment = 3] ─ ▶ average so far, marked as such

Reports of all detectors come every 20 seconds and are averaged by the minute. After the first and
after the second report of a minute somebody demands the average of a segment, of another one each
time. How soon is the answer there, how far is it from the final one, and is that still the same?
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from interpunct.engine.run import Engine
from interpunct.lab.detectors import DETECTORS, EVERY, SEGMENTS, Recording, freeway
from interpunct.lab.isolated import Report, silent
from interpunct.model.page import Page
from interpunct.progress.clock import ScriptedClock

if TYPE_CHECKING:
    from interpunct.lab.demanded_spark import SparkDemands

REPORTS = 60 // EVERY  # in a minute
PAGE = SEGMENTS * DETECTORS  # a report of all detectors


@dataclass(frozen=True)
class Setup:
    minutes: int = 60
    seed: int = 1
    spark: bool = False
    spark_minutes: int = 4


def recorded(minutes: int, seed: int) -> Recording:
    """The freeway, with averages by the minute, and one more report to end the last of them."""
    hours = (REPORTS * minutes + 1) * EVERY / 3600
    return replace(freeway(hours, seed), window=timedelta(minutes=1))


def with_demands(recording: Recording) -> Iterator[tuple[Page, str | None]]:
    """The reports, and what is demanded after each: nothing when its minute is over anyway."""
    pages = recording.pages(PAGE)
    for number, page in enumerate(pages):
        asked = number % REPORTS != REPORTS - 1 and number < len(pages) - 1
        yield page, f"![segment = {4 * number % SEGMENTS}]" if asked else None


@dataclass
class Demands:
    """What was delivered, final and partial; and of each answer how many pages had come in since
    the demand, or in the how many-th batch after it the answer was, and the milliseconds."""

    unit: str = "pages"
    final: list[pl.DataFrame] = field(default_factory=list)
    partial: list[pl.DataFrame] = field(default_factory=list)
    asked: int = 0
    waited: list[int] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)

    @property
    def finals(self) -> pl.DataFrame:
        return pl.concat(self.final).sort("ts", "segment")

    def answers(self) -> pl.DataFrame:
        """Each partial answer with its error, and by how many reports it was made."""
        final = self.finals.select("segment", "ts", final="speed", all="n")
        found = pl.concat(self.partial).join(final, on=["segment", "ts"], how="left")
        reports = (REPORTS * pl.col("n") / pl.col("all")).round().cast(pl.Int64)
        return found.with_columns(
            (pl.col("speed") - pl.col("final")).abs().alias("error"), reports.alias("reports")
        )

    def to_json(self) -> dict[str, Any]:
        answers = self.answers()
        by_reports = answers.group_by("reports").agg(pl.col("error").mean()).sort("reports")
        return {
            "demands": self.asked,
            "answers": answers.height,
            f"waited_{self.unit}_at_most": max(self.waited, default=None),
            "answer_ms": round(statistics.median(self.milliseconds), 2),
            "mean_absolute_error": round(float(answers["error"].mean()), 3),  # type: ignore[arg-type]
            "error_by_reports": {f"{n} of {REPORTS}": round(e, 3) for n, e in by_reports.rows()},
            "mean_final": round(float(answers["final"].mean()), 3),  # type: ignore[arg-type]
        }


def run_process(recording: Recording, demanding: bool) -> Demands:
    """The recording in process, a report a page."""
    found = Demands()
    deliver = {"map": found.final.append, "now": found.partial.append}
    engine = Engine(recording.flow(partial=True).graph, ScriptedClock(), deliver=deliver)
    for page, text in with_demands(recording):
        engine.feed("sensors", page)
        engine.settle()
        if text is None or not demanding:
            continue
        before, began = len(found.partial), time.perf_counter()
        engine.feedback("map", text)
        engine.settle()
        found.asked += 1
        if len(found.partial) > before:
            found.waited.append(0)
            found.milliseconds.append(1000 * (time.perf_counter() - began))
    engine.finish("sensors")
    engine.settle()
    return found


@dataclass(frozen=True)
class Demanded:
    setup: Setup
    process: Demands = field(repr=False)
    unchanged: bool  # the final answers, by the demands
    spark: SparkDemands | None = field(default=None, repr=False)

    def expected(self) -> dict[str, bool]:
        asked = self.process.asked
        found = {
            "every_answer_is_there_before_the_next_page": len(self.process.waited) == asked,
            "final_answers_are_unchanged": self.unchanged,
        }
        more = {} if self.spark is None else self.spark.expected()
        return {**found, **{f"spark_{name}": holds for name, holds in more.items()}}

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "demanded",
            "seed": self.setup.seed,
            "minutes": self.setup.minutes,
            "feedback": f"![segment = k] after each report but the last of a minute's {REPORTS}",
            "error_in": "miles an hour, against the final average",
            "process": self.process.to_json(),
            "spark": None if self.spark is None else self.spark.to_json(),
            "expected": self.expected(),
        }


def demanded(setup: Setup, report: Report = silent) -> Demanded:
    """With demands and without, in process; and on Spark, if asked for."""
    recording = recorded(setup.minutes, setup.seed)
    report(0.1, "in process")
    process, plain = (run_process(recording, demanding) for demanding in (True, False))
    spark = None
    if setup.spark:
        from interpunct.lab.demanded_spark import demanded_spark

        report(0.4, "on Spark")
        spark = demanded_spark(recorded(setup.spark_minutes, setup.seed))
    return Demanded(setup, process, process.finals.equals(plain.finals), spark)
