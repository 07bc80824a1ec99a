"""Logical merges, few elements: the numbers are there, and payloads are shared or are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpunct.lab.lmerge_variants import (
    VARIANTS,
    LmergeVariants,
    Setup,
    lmerge_variants,
    plot_variants,
)


@pytest.fixture(scope="module")
def result() -> LmergeVariants:
    return lmerge_variants(Setup(4_000, (2, 4), page=500, repeat=1, workers=0))


def test_every_variant_is_measured_with_every_number_of_inputs(result: LmergeVariants) -> None:
    shown = result.to_json()
    assert shown["experiment"] == "lmerge-variants"
    for key in ("elements_per_s", "output_per_s", "peak_bytes"):
        assert shown[key].keys() == set(VARIANTS)
        assert all(found.keys() == {"2", "4"} for found in shown[key].values())
    assert "R3_memory_at_most_1.3_times_that_of_fewest_inputs" in shown["expected"]


def test_r3_plus_shares_payloads_and_r3_minus_does_not(result: LmergeVariants) -> None:
    """Of half as many events R3+ holds half as much, and R3- as much again for each input."""
    events = result.by_variant("events")
    assert events["R3"]["2"] <= 2_000
    assert events["R3-"]["2"] == 3 * events["R3"]["2"]
    assert events["R3-"]["4"] == 5 * events["R3"]["4"]
    assert result.measured["R3", 4].nbytes < result.measured["R3-", 4].nbytes / 3
    assert all(result.measured[v, n].events <= 1 for v in ("R0", "R1", "R2") for n in (2, 4))


def test_the_figure_is_drawn(result: LmergeVariants, tmp_path: Path) -> None:
    plot_variants(result, tmp_path / "variants.png")
    assert (tmp_path / "variants.png").stat().st_size > 10_000
