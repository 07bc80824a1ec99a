"""The merge on the page: who leads, who is not believed, and how far each input is."""

from __future__ import annotations

from watching import SECOND, merge

from interpunct.engine.merge_vitals import InputVitals, MergeVitals, together
from interpunct.model.schema import END_OF_TIME
from interpunct.studio.look import LIGHT
from interpunct.studio.merge_panel import MergePanel
from interpunct.studio.merging import Merging


def test_a_merge_tells_who_leads_and_who_is_not_believed() -> None:
    merging = Merging()
    merging.add(10 * SECOND, None)
    merging.add(10 * SECOND, merge(8, 6, "a"))
    merging.add(12 * SECOND, merge(8, 9, "b"))
    merging.add(14 * SECOND, merge(12, 9, "a", "quarantined", "insert(…) contradicts x"))
    assert list(merging.events) == [
        "00:00:10 a is there", "00:00:10 b is there", "00:00:10 a leads", "00:00:12 b leads",
        "00:00:14 b is quarantined: insert(…) contradicts x", "00:00:14 a leads",
    ]  # fmt: skip
    assert [(m["a"], m["b"], m["out"]) for m in merging.moments] == [(2, 4, 2), (4, 3, 3),
                                                                    (2, 5, 2)]  # fmt: skip


def test_a_merge_whose_time_is_no_clocks_is_measured_by_its_furthest_input() -> None:
    inputs = {"a": InputVitals("joined", 90), "b": InputVitals("joined", 70),
              "c": InputVitals("joining")}  # fmt: skip
    merging = Merging()
    merging.add(SECOND, MergeVitals("R4", 90, "a", inputs, clocked=False))
    assert merging.moments[-1] == {"at": 1000, "a": 0, "b": 20, "out": 0}
    ended = MergeVitals("R4", END_OF_TIME, "a", {"a": InputVitals("joined", END_OF_TIME)}, False)
    merging.add(2 * SECOND, ended)
    assert merging.moments[-1] == {"at": 2000}
    panel = MergePanel(merging, None, True, LIGHT)
    assert "∞" in panel.state.text
    assert "ticks" in panel.plot.title.text


def test_lanes_of_a_merge_agree_on_a_leader_whom_all_believe() -> None:
    before, after = merge(8, 9, "b"), merge(8, 7, "a", "quarantined")
    both = together("R3", True, [before, after])
    assert (both.leader, both.stable) == ("a", 8 * SECOND)
    assert (both.inputs["b"].status, both.inputs["b"].stable) == ("quarantined", 7 * SECOND)
    assert together("R3", True, []) == MergeVitals("R3")
