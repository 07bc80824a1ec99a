"""What can be seen of a flow from outside: the same from the engine and from a checkpoint."""

from __future__ import annotations

import doctest
from pathlib import Path

import polars as pl
import pytest
from watching import SECOND, InProcess

import interpunct as ip
from interpunct.engine import merge_vitals
from interpunct.engine.blame import Blame
from interpunct.engine.lane import Lane, LaneBatch, Said
from interpunct.engine.lane_source import Facts
from interpunct.engine.vitals import OperatorVitals, SourceVitals, Vitals, together
from interpunct.flow.planner import stages
from interpunct.operators.state import DictState
from interpunct.spark.hints import Hints
from interpunct.spark.reporter import seen
from interpunct.studio import access, exposition
from interpunct.studio.history import History, at_sources


@pytest.mark.parametrize("module", [access, exposition, merge_vitals])
def test_docstring_examples_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_vitals_survive_their_file() -> None:
    flow = InProcess()
    for _ in range(6):
        flow.turn()
    flow.send("map", "¬[segment ≠ 3]", "10s")
    flow.turn()
    vitals = flow.engine.vitals()
    assert Vitals.of_json(vitals.to_json()) == vitals
    assert vitals.operators["together"].held > 0
    assert vitals.operators["average"].guards == 1
    assert vitals.sources["vehicles"].rows == 7 * 90
    assert vitals.skipped >= 2 * 80  # of both sources, one turn's tuples of eight segments


def test_a_source_that_is_quiet_falls_behind_and_is_blamed() -> None:
    flow = InProcess()
    flow.turn()
    for _ in range(3):
        flow.turn(vehicles=False)
    lines = {line.operator: line for line in flow.engine.vitals().waiting}
    assert lines["together"].source == "vehicles"


def test_lanes_add_tuples_but_share_guards_and_rows() -> None:
    waits = Blame("both", "a", "idle", 2, 9, 5, 4, 7, "a tuple")
    lane = Vitals(
        {"both": OperatorVitals(held=2, guards=1, skipped=3, made=(4,))},
        {"a": SourceVitals(reached=5, heard=7, rows=10, late=1)},
        (waits,),
    )
    other = Vitals(
        {"both": OperatorVitals(held=5, guards=1, skipped=0, made=(1,))},
        {"a": SourceVitals(reached=4, heard=8, rows=10, late=2)},
    )
    both = together({0: [lane, other]})
    assert both.operators["both"] == OperatorVitals(held=7, guards=1, skipped=3, made=(5,))
    assert both.sources["a"] == SourceVitals(reached=4, heard=8, rows=10, late=3)
    assert both.waiting == (waits,)


def test_a_source_of_two_stages_is_told_of_by_the_first() -> None:
    first = Vitals({}, {"a": SourceVitals(reached=5, rows=10, late=3)})
    second = Vitals({}, {"a": SourceVitals(reached=4, rows=10, late=3)})
    assert together({1: [second], 0: [first]}).sources["a"].late == 3


def test_counts_go_on_when_a_lane_is_built_again(tmp_path: Path) -> None:
    hints = Hints(str(tmp_path / "interpunct"))
    before = Vitals({"x": OperatorVitals(made=(4, 1))}, {"a": SourceVitals(rows=9, late=2)})
    rebuilt = Vitals({"x": OperatorVitals(held=3, made=(2,))}, {"a": SourceVitals(rows=1)})
    hints.report(0, 5, rebuilt.after(Vitals.of_counts(before.counts())))
    vitals = seen(str(tmp_path)).vitals
    assert vitals.operators["x"] == OperatorVitals(held=3, made=(6, 1))
    assert (vitals.sources["a"].rows, vitals.sources["a"].late) == (10, 2)


def test_rows_that_feedback_left_out_are_not_counted_again_by_a_rebuilt_lane() -> None:
    flow = ip.Flow("speeds")
    time = ip.external("ts", ip.bounds(skew=1))
    flow.sink("map", flow.source("cars", "segment bigint, ts bigint", time=time))
    (stage,) = stages(flow.graph)
    state, frame = DictState(), pl.DataFrame({"segment": [3, 4, 5], "ts": [10, 11, 12]})
    lane = Lane(flow.graph, stage, 1, state)
    batch = LaneBatch(now=SECOND, feedback=[Said("map", "¬[segment ≠ 3, ts ≤ 99]")])
    batch.raw["cars"], batch.facts["cars"] = [frame], Facts(3, 12, 10)
    lane.run(batch)
    lane.save()
    before = lane.vitals()
    assert (before.sources["cars"].rows, before.skipped) == (3, 2)
    rebuilt = Lane(flow.graph, stage, 1, state)
    rebuilt.before = before
    rebuilt.run(LaneBatch(now=2 * SECOND))  # the source is quiet
    assert (rebuilt.vitals().sources["cars"].rows, rebuilt.vitals().skipped) == (3, 2)


def test_lag_is_what_the_results_are_behind_the_clock() -> None:
    flow = InProcess()
    assert flow.snapshot().lag is None
    for _ in range(8):
        flow.turn()
    snapshot = flow.snapshot()
    assert snapshot.lag == snapshot.at - snapshot.reached["map"]
    assert 3 * SECOND <= snapshot.lag <= 8 * SECOND


def test_history_has_rates_and_forgets() -> None:
    flow, history = InProcess(), History()
    for _ in range(6):
        flow.turn()
        history.add(flow.snapshot())
    rates = history.rates()
    assert rates["sensors", 0] == pytest.approx(90)
    assert rates["quality", 0] == pytest.approx(90)
    assert history.behind()["vehicles"][-1][1] == pytest.approx(3, abs=0.2)  # its bound
    for _ in range(700):
        history.add(flow.snapshot())
    assert len(history.seen) == 600


def test_saved_work_is_what_the_sources_left_out() -> None:
    flow = InProcess()
    for _ in range(6):
        flow.turn()
    assert at_sources(flow.snapshot()) == 0
    flow.send("map", "¬[segment ≠ 3]", "30s")
    flow.turn()
    assert at_sources(flow.snapshot()) == 2 * 80


def test_what_two_stages_repeat_before_their_shuffles_is_counted_once() -> None:
    """Lanes of a stage share its tuples; a source that enters two stages sends them to both."""
    lane = Vitals({"rows": OperatorVitals(held=1, skipped=2, made=(3, 1))})
    seen = together({0: [lane, lane], 1: [lane, lane]}).operators["rows"]
    assert seen.made == (6, 2)
    assert (seen.held, seen.skipped) == (4, 8)
