"""What the measure of throughput makes of its times; the measuring itself is done by hand."""

from __future__ import annotations

from interpunct.lab.throughput import Setup, Throughput


def test_a_ratio_is_of_what_was_measured_in_one_turn_and_the_median_of_the_turns() -> None:
    """The second turn found the machine slow, for everybody."""
    native, ours = [[4.0, 4.0], [1.0, 1.0], [2.0, 2.0]], [[4.0, 8.0], [2.0, 2.0], [2.0, 2.0]]
    ways = {"native": native, "identity": ours, "interpunct": ours, "fused": native}
    found = Throughput(Setup(), {"coarse": ways})
    assert found.ratio("coarse", "interpunct", "native") == 1.5
    assert found.ratios()["identity"] == {"coarse": 1.0, "coarse_fused": 1 / 1.5}
    assert found.to_json()["expected"]["native_coarse_at_least_1"]
