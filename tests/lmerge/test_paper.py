"""LMerge's tables and examples."""

from __future__ import annotations

import pytest
from merging import Merging

from interpunct.model.element_forms import from_marks, marks_schema, to_marks
from interpunct.model.elements import adjust, elements, insert, stable
from interpunct.model.page import Page
from interpunct.model.tdb import equivalent, freeze_status, tdb, violations
from interpunct.operators.lmerge import MergePolicy
from interpunct.testing.compatibility import Watch, chattiness, outputs
from interpunct.testing.revisable import SCHEMA

INF = 2**62

# Table I as elements is Table II; the arrivals in the order of its rows.
PHY1 = [insert("B", 8, "∞"), insert("A", 6, 12), adjust("B", 8, "∞", 10), stable(11), stable("∞")]
PHY2 = [
    insert("A", 6, 7),
    insert("B", 8, 15),
    adjust("A", 6, 7, 12),
    adjust("B", 8, 15, 10),
    stable("∞"),
]
LEASES = [(6, 12, "A"), (8, 10, "B")]


def table(rows):
    return tdb(SCHEMA, elements(SCHEMA, rows)).rows()


def test_table_i_and_example_1_two_streams_track_the_same_leases() -> None:
    assert table(PHY1[:3]) == table(PHY2[:4]) == LEASES


def test_table_ii_both_physical_streams_have_the_logical_tdb() -> None:
    one, other = elements(SCHEMA, PHY1), elements(SCHEMA, PHY2)
    assert equivalent(SCHEMA, one, other)
    assert table(PHY1) == table(PHY2) == LEASES
    assert not violations(SCHEMA, one, keyed=True)
    assert not violations(SCHEMA, other, keyed=True)


def test_table_ii_a_stable_is_not_propagated_before_the_output_can_bear_it() -> None:
    """A must become 12 and B at most 15 before stable(11), from the stream that says it."""
    run = Merging("R3")
    for row in PHY2[:2]:
        assert run.rows(1, row) == elements(SCHEMA, [row]).rows()
    for row in PHY1[:3]:
        assert run.rows(0, row) == []
    assert (
        run.rows(0, stable(11))
        == elements(SCHEMA, [adjust("A", 6, 7, 12), adjust("B", 8, 15, 10), stable(11)]).rows()
    )
    run.rows(1, *PHY2[2:])
    assert tdb(SCHEMA, run.output).rows() == LEASES


def marks(*rows):
    return from_marks(SCHEMA, Page.of_rows(marks_schema(SCHEMA), rows).frame)


S5 = marks(
    ("open", 1, "A"), ("open", 2, "B"), ("open", 3, "C"), ("close", 4, "A"), ("close", 5, "B")
)
U5 = marks(
    ("open", 1, "A"), ("close", 4, "A"), ("open", 2, "B"), ("close", 5, "B"), ("open", 3, "C")
)
W6 = marks(
    ("open", 2, "B"), ("close", 6, "B"), ("open", 1, "A"), ("open", 3, "C"), ("close", 4, "A"),
    ("close", 5, "B"),
)  # fmt: skip


def test_example_2_open_and_close_prefixes_are_equivalent() -> None:
    expected = [(1, 4, "A"), (2, 5, "B"), (3, INF, "C")]
    assert [tdb(SCHEMA, f).rows() for f in (S5, U5, W6)] == [expected] * 3


@pytest.mark.parametrize("frame", [S5, U5, W6])
def test_example_2_elements_become_marks_and_elements_again(frame) -> None:
    assert from_marks(SCHEMA, to_marks(SCHEMA, frame)).equals(frame)


def test_example_3_adjusts_come_to_one_insert() -> None:
    chain = [insert("A", 6, 20), adjust("A", 6, 20, 30), adjust("A", 6, 30, 25)]
    assert table(chain) == table([insert("A", 6, 25)]) == [(6, 25, "A")]
    assert table([*chain, adjust("A", 6, 25, 6)]) == []


def test_example_3_stable_forbids_what_comes_before_it() -> None:
    rows = [
        insert("A", 6, 12),
        stable(11),
        insert("B", 10, 20),
        adjust("A", 6, 12, 10),
        insert("C", 11, 13),
        adjust("C", 11, 13, 11),
        adjust("D", 20, 22, 23),
    ]
    found = [(v.row, v.rule) for v in violations(SCHEMA, elements(SCHEMA, rows))]
    assert found == [
        (2, "it inserts before what is stable"),
        (3, "its Ve is before what is stable"),
        (6, "there is no such event to adjust"),
    ]


# Table III: who says what, in the order of its rows.
TABLE_III = [
    (0, insert("A", 6, 10)),
    (1, insert("A", 6, 12)),
    (1, insert("B", 7, 14)),
    (0, adjust("A", 6, 10, 15)),
    (1, adjust("A", 6, 12, 15)),
    (1, stable(16)),
]
OUT1 = [
    insert("A", 6, 10),
    adjust("A", 6, 10, 12),
    insert("B", 7, 14),
    adjust("A", 6, 12, 15),
    stable(16),
]
OUT2 = [insert("A", 6, 15), insert("B", 7, 14), stable(16)]
OUT3 = [insert("A", 6, 10), insert("B", 7, 14), adjust("A", 6, 10, 15), stable(16)]
POLICIES = {
    "Out1": (MergePolicy(adjusts="every"), OUT1),
    "Out2": (MergePolicy(inserts="half-frozen"), OUT2),
    "Out3": (MergePolicy(), OUT3),
}


@pytest.mark.parametrize("variant", ["R3", "R4"])
@pytest.mark.parametrize("out", POLICIES)
def test_table_iii_and_example_4_each_policy_has_its_output(out: str, variant: str) -> None:
    policy, expected = POLICIES[out]
    run = Merging(variant, policy=policy)
    for port, row in TABLE_III:
        run.rows(port, row)
    if (variant, out) == ("R4", "Out1"):  # a further insert of an event is not a revision there
        expected = [insert("A", 6, 10), insert("B", 7, 14), adjust("A", 6, 10, 15), stable(16)]
    assert run.output.rows() == elements(SCHEMA, expected).rows()


def test_table_iii_the_reference_outputs_are_those_of_the_paper() -> None:
    found = outputs(TABLE_III)
    assert [elements(SCHEMA, rows).rows() for rows in found] == [
        elements(SCHEMA, rows).rows() for rows in (OUT1, OUT2, OUT3)
    ]
    counts = [chattiness(elements(SCHEMA, rows)) for rows in found]
    assert [c.elements for c in counts] == [5, 3, 4]
    assert [c.adjusts for c in counts] == [2, 0, 1]


def test_example_5_an_output_is_compatible_if_it_says_no_more_than_its_inputs() -> None:
    """Each open has at most one close: inserts that end, once, and nothing of the output's own."""
    watch = Watch(2)
    watch.arrives(0, insert("A", 1, 4))
    watch.arrives(1, insert("B", 2, 5))
    watch.emits(insert("A", 1, 4))
    watch.emits(insert("B", 2, 5))
    assert not watch.faults()
    for port in (0, 1):
        watch.arrives(port, stable(9))
    assert watch.faults() == []  # nothing is frozen on the output yet
    watch.emits(insert("C", 3, 6))
    watch.emits(stable(9))
    assert watch.faults() == ["C2: (('C',), 3) is final with 6, on no input"]


# Section III-C: the inputs I1, I2 and the outputs O1, O2, O3.
I1 = [insert("A", 2, 16), insert("B", 3, 10), insert("C", 4, 18), stable(14), insert("D", 15, 20)]
I2 = [insert("A", 2, 12), insert("B", 3, 10), insert("C", 4, 18), stable(11), insert("E", 17, 21)]
O1 = [insert("A", 2, INF), insert("B", 3, 10), insert("C", 4, INF), stable(11)]
O2 = [*I1[:3], stable(14), insert("D", 15, 20), insert("E", 17, 21)]
O3 = [insert("A", 2, 12), insert("C", 4, 18), stable(13), insert("D", 15, 20)]


def compared(output) -> list[str]:
    watch = Watch(2)
    for port, rows in enumerate((I1, I2)):
        for row in rows:
            watch.arrives(port, row)
    for row in output:
        watch.emits(row)
    return sorted(watch.faults())


def test_section_iii_c_o1_and_o2_are_compatible() -> None:
    assert compared(O1) == compared(O2) == []


def test_section_iii_c_o3_is_not_for_two_reasons() -> None:
    assert compared(O3) == [
        "C2: (('A',), 2) is final with 12, on no input",
        "C3: (('A',), 2) is half frozen on an input and not here",
        "C3: (('B',), 3) is final with 10 on an input and None here",
    ]


def test_section_iii_c_freeze_status() -> None:
    events = tdb(SCHEMA, elements(SCHEMA, I1))
    assert freeze_status(events, 14)["status"].to_list() == [
        "half frozen", "fully frozen", "half frozen", "unfrozen",
    ]  # fmt: skip
