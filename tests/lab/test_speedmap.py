"""Experiment 2, small: what must hold however fast the machine is."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib import image

from interpunct.flow.feedback import follow
from interpunct.lab import feedback_speed_map as experiment
from interpunct.lab.detectors import CITY, DETECTORS, FREEWAY, PAGE_SIZES, SEGMENTS, aarhus, freeway
from interpunct.lab.feedback_speed_map import FeedbackSpeedMap, Setup
from interpunct.lab.map_pictures import HEIGHT, WIDTH, SpeedMap, picture
from interpunct.lab.schemes import Case
from interpunct.lab.zooming import F0, F1, F2, F3, SCHEMES, Drive, restrained
from interpunct.model.errors import FeedError
from interpunct.model.feedback import Feedback

HOURS = 0.2
REPORTS = 36  # in that time
UNSEEN = SEGMENTS - 1


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> FeedbackSpeedMap:
    path = aarhus_file(tmp_path_factory.mktemp("data"))
    return experiment.feedback_speed_map(Setup(HOURS, turns=1, data=path, workers=0))


def aarhus_file(folder: Path) -> Path:
    """Seven segments, heard of every five minutes, one of them a slot late."""
    slots, segments = 60, 7
    ticks = np.repeat(np.arange(slots) * 300_000, segments) + 1_406_936_400_000  # 23:40
    number = np.tile(np.arange(segments), slots)
    arrival = np.arange(len(ticks)) + np.where(number == 3, segments, 0)
    frame = pl.DataFrame(
        {
            "arrival_id": arrival, "ts": pl.Series(ticks).cast(pl.Datetime("ms")),
            "segment_id": 158_000 + number, "avg_speed_kmh": 30 + number,
            "avg_travel_s": 100 + number, "vehicle_count": number,
        }
    )  # fmt: skip
    path = folder / "aarhus.parquet"
    frame.write_parquet(path)
    return path


def test_the_stream_is_the_paper_s_and_the_seed_decides_the_rest() -> None:
    recording = freeway(HOURS)
    assert recording.frame.height == REPORTS * SEGMENTS * DETECTORS
    assert recording.segments == list(range(SEGMENTS))
    assert recording.frame.equals(freeway(HOURS).frame)
    assert not recording.frame.equals(freeway(HOURS, seed=2).frame)


def test_the_quality_filter_drops_what_fails_and_little_else() -> None:
    recording = freeway(HOURS)
    results = recording.flow().run({"sensors": recording.frame})["map"]
    kept = results["n"].sum() / recording.frame.height
    assert 0.9 < kept < 0.96
    assert results["speed"].is_between(20, 80).all(), "no failing detector has spoilt an average"
    assert results.height == REPORTS * SEGMENTS


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("speed", (101, 5, 10.0)), ("volume", (50, 18, 10.0)), ("occupancy", (50, 5, 96.0)),
        ("standing", (0, 3, 10.0)), ("empty", (40, 0, 0.0)), ("length", (50, 5, 90.0)),
    ],
)  # fmt: skip
def test_every_test_of_the_filter_tells_good_from_bad(
    name: str, bad: tuple[int, int, float]
) -> None:
    recording = replace(freeway(HOURS), tests={name: FREEWAY[name]})
    for (speed, volume, occupancy), kept in (((50, 5, 8.0), 1), (bad, 0)):
        report = f'{{"speed":{speed},"volume":{volume},"occupancy":{occupancy}}}'
        frame = recording.frame.head(1).with_columns(pl.lit(report).alias("report"))
        assert recording.flow().run({"sensors": frame})["map"].height == kept


def test_a_view_is_feedback_that_ends() -> None:
    recording = freeway(HOURS)
    views = list(Drive(recording.segments, 2, *recording.span).views())
    assert len(views) == 6
    assert str(views[1]) == "¬[segment ≠ 4, ts ∈ ['2009-03-02 05:02:00', '2009-03-02 05:04:00')]"
    assert len({v.segment for v in views}) == 6
    assert all(a.end == b.start for a, b in pairwise(views))


def test_schemes_go_as_far_as_they_say() -> None:
    recording = freeway(HOURS)
    reached = {}
    for scheme in (F1, F2, F3):
        graph = restrained(recording.flow(), scheme).graph
        schema = graph.nodes["map"].streams[0].schema
        text = str(next(Drive(recording.segments, 2, *recording.span).views()))
        steps = list(follow(graph, "map", Feedback.parse(text, schema).pattern))
        reached[scheme] = [step.node for step in steps]
        (average,) = [step.response for step in steps if step.node == "average"]
        assert average is not None
        assert bool(average.guard_output) == (scheme == F1)
        assert bool(average.purge) == (scheme != F1)
    assert reached[F1] == reached[F2] == ["map", "average"]
    assert reached[F3] == ["map", "average", "quality", "reading", "sensors"]


def test_what_is_viewed_is_identical_in_every_scheme(result: FeedbackSpeedMap) -> None:
    assert result.outcomes.keys() == {*(f"freeway_{size}" for size in PAGE_SIZES), "aarhus"}
    for outcome in result.outcomes.values():
        assert outcome.identical
        assert all(count > 0 for count in outcome.viewed.values())


@pytest.mark.parametrize("minutes", [2, 4, 6])
def test_each_scheme_spares_what_it_says(result: FeedbackSpeedMap, minutes: int) -> None:
    reports = REPORTS * SEGMENTS * DETECTORS
    for size in PAGE_SIZES:
        runs = {s: result.outcomes[f"freeway_{size}"].runs[Case(s, minutes)][0]
                for s in (F1, F2, F3)}  # fmt: skip
        assert runs[F1].skipped == {"average": REPORTS * UNSEEN}, "results that do not leave"
        assert runs[F3].skipped == {"sensors": reports // SEGMENTS * UNSEEN}, "read and not taken"
        assert set(runs[F2].skipped) == {"average"}
        assert 0.9 < runs[F2].skipped["average"] / runs[F3].skipped["sensors"] < 0.96
        assert {run.pictures for run in runs.values()} == {REPORTS}
        assert {run.messages for run in runs.values()} == {12 // minutes}


def test_without_feedback_every_segment_is_drawn(result: FeedbackSpeedMap) -> None:
    for size in PAGE_SIZES:
        run = result.outcomes[f"freeway_{size}"].runs[Case(F0)][0]
        assert (run.pictures, run.messages, run.skipped) == (REPORTS * SEGMENTS, 0, {})


def test_aarhus_is_read_from_midnight_on_late_as_it_is(tmp_path: Path) -> None:
    recording = aarhus(aarhus_file(tmp_path), 2.0)
    assert str(recording.frame["ts"].min()) == "2014-08-02 00:00:00+00:00"
    assert not recording.frame["ts"].is_sorted()
    found = recording.flow().run({"sensors": recording.frame})
    assert not found.late
    assert found["map"].height == 4 * 7
    assert set(recording.tests) == set(CITY)


def test_data_that_is_not_there_is_an_error_and_none_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match="simulated freeway alone"):
        experiment.feedback_speed_map(Setup(HOURS, data=tmp_path, workers=0))


def test_the_report_has_seconds_and_savings_by_frequency(
    result: FeedbackSpeedMap, tmp_path: Path
) -> None:
    shown = result.to_json()
    assert shown["seconds"].keys() == set(SCHEMES)
    for scheme in (F1, F2, F3):
        assert (
            shown["seconds"][scheme].keys() == shown["saved_pct"][scheme].keys() == {"2", "4", "6"}
        )
    assert shown["expected"]["freeway_360_what_is_viewed_is_identical"]
    assert shown["spark"] is None
    experiment.plot_speed_map(result, tmp_path / "figure-7.png")
    assert (tmp_path / "figure-7.png").stat().st_size > 10_000


def test_a_picture_is_a_png_in_the_colour_of_the_speed(tmp_path: Path) -> None:
    shown = {}
    for speed in (10.0, 80.0):
        path = tmp_path / f"{speed}.png"
        path.write_bytes(picture(3, speed))
        shown[speed] = image.imread(path)
        assert shown[speed].shape[:2] == (HEIGHT, WIDTH)
    road = (shown[10.0] != shown[80.0]).any(axis=2)
    assert 0.01 < road.mean() < 0.1
    assert shown[10.0][road][0][0] > shown[80.0][road][0][0], "slow is red"


def test_the_map_draws_every_result_it_is_given() -> None:
    drawn = SpeedMap()
    drawn(pl.DataFrame({"segment": [1, 2], "speed": [20.0, 70.0]}))
    assert drawn.pictures == 2
    assert drawn.seconds > 0
