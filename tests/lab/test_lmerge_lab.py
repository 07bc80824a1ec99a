"""The experiments on logical merge with few elements: what each is about can be seen already."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpunct.lab import lmerge_chattiness as chatty
from interpunct.lab import lmerge_cleanse as cleanse
from interpunct.lab import lmerge_cutover as cutover
from interpunct.lab import lmerge_delays as delays
from interpunct.lab import lmerge_stable as stables
from interpunct.lab.lmerge_streams import SCHEMA, Shape, replicas
from interpunct.model.frames import stacked
from interpunct.model.tdb import equivalent, violations


def test_replicas_are_sound_equivalent_and_different() -> None:
    shape = Shape(1_500, disorder=0.5, delay=300, groups=20, window=100, life=400)
    one, other = (stacked([p.frame for p in pages]) for pages in replicas(shape, 2, seed=1))
    assert not violations(SCHEMA, one, keyed=True)
    assert equivalent(SCHEMA, one, other)
    assert one.rows() != other.rows()


def test_figure_4_a_merge_is_less_chatty_than_its_inputs(tmp_path: Path) -> None:
    result = chatty.lmerge_chattiness(chatty.Setup(2_000, disorder=(0.0, 0.5)))
    shown = result.to_json()
    assert all(shown["expected"].values()), shown
    assert [row["disorder"] for row in shown["rows"]] == [0.0, 0.5]
    chatty.plot_chattiness(result, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_figure_5_frequent_stables_leave_less_to_remember(tmp_path: Path) -> None:
    setup = stables.Setup(8_000, shares=(0.0001, 0.01), page=500, repeat=1, workers=0)
    result = stables.lmerge_stable(setup)
    shown = result.to_json()
    assert len(shown["rows"]) == 10
    assert result.measured["R3", 0.01].events <= result.measured["R3", 0.0001].events
    assert "R4_is_slower_when_stables_are_frequent" in shown["expected"]
    stables.plot_stable(result, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_figure_6_cleansing_waits_and_keeps_every_input(tmp_path: Path) -> None:
    result = cleanse.lmerge_cleanse(cleanse.Setup(6_000, (2, 4), workers=0))
    shown = result.to_json()
    assert shown["expected"]["outputs_have_the_table_of_the_inputs"]
    cleansed, direct = result.measured["C+R1", 4], result.measured["R3", 4]
    assert cleansed.nbytes > 1.5 * result.measured["C+R1", 2].nbytes
    assert direct.nbytes < 1.5 * result.measured["R3", 2].nbytes
    assert cleansed.latency_s > direct.latency_s
    assert 0.2 < direct.adjusts < 0.6
    cleanse.plot_cleanse(result, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize("scenario", ["bursty", "congestion"])
def test_figures_7_and_8_the_output_does_not_stall_with_its_inputs(
    scenario: str, tmp_path: Path
) -> None:
    congested = ((0.5, 1.5), (1.5, 3.0), (2.5, 3.5))
    result = delays.lmerge_delays(delays.Setup(scenario, seconds=5, congested=congested))
    shown = result.to_json()
    assert all(shown["expected"].values()), shown["rows"]
    assert len(shown["per_s"]["output"]) == 50
    delays.plot_delays(result, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_figure_9_feedback_lets_the_slower_plan_catch_up(tmp_path: Path) -> None:
    result = cutover.lmerge_cutover(cutover.Setup(20_000, page=50, life=20))
    expected = result.expected()
    assert expected["outputs_have_one_table"]
    assert expected["without_feedback_no_faster_than_the_better_plan"]
    alone, told = result.plans[cutover.TOGETHER], result.plans[cutover.FEEDBACK]
    assert alone.seconds > 3 * told.seconds
    assert told.skipped > 10_000
    cutover.plot_cutover(result, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
