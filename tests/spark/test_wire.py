"""What travels between stages, and what leaves the last one. No JVM."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from interpunct.model.page import Page
from interpunct.model.schema import Schema
from interpunct.spark.wire import (
    BEAT,
    FEEDBACK,
    LATE,
    OUT,
    PROOF,
    SINK,
    WAKE,
    Note,
    Row,
    opened,
    sketch,
    sketched,
    to_batch,
    to_leaving,
    to_pandas,
)
from interpunct.spark.writers import Told

MOMENTS = st.integers(-(2**62), 2**62)
NAMES = st.sampled_from(["map", "two words", 'quo"te', "[1]", "Größe ≤"])
SCHEMA = Schema.of("v bigint")
NOTES = st.one_of(
    st.builds(lambda n, m: Note(f"{BEAT}{n}", greatest=m), NAMES, MOMENTS),
    st.builds(lambda n, m: Note(f"{PROOF}{n}", greatest=m), NAMES, MOMENTS),
    st.builds(lambda m: Note(WAKE, greatest=m), MOMENTS),
    st.builds(lambda n, k: Note(f"{SINK}{n}", rows=k), NAMES, st.integers(0, 9)),
    st.builds(lambda n: Note(f"{FEEDBACK}{n}:0", 1, -1, words="¬[*, ≤ 3]"), NAMES),
)
PAGES = st.builds(
    lambda name, values: (f"{LATE}{name}", pl.DataFrame({"v": values}, {"v": pl.Int64})),
    NAMES,
    st.lists(MOMENTS, max_size=4),
)
LOADS = st.one_of(st.lists(NOTES, min_size=1, max_size=4), PAGES)


def rows_of(loads: list[list[Note] | tuple[str, pl.DataFrame]]) -> list[Row]:
    return [
        Row.of_notes(7, OUT, load)
        if isinstance(load, list)
        else Row.of_page(7, OUT, Page(SCHEMA, load[1]), load[0], 3)
        for load in loads
    ]


@given(st.lists(LOADS, min_size=1, max_size=6))
def test_a_load_is_read_as_it_was_written_on_either_way_to_spark(
    loads: list[list[Note] | tuple[str, pl.DataFrame]],
) -> None:
    rows = rows_of(loads)
    for sent in (to_batch(rows).to_pandas(), to_pandas(rows)):
        assert list(sent.columns) == ["lane", "stage", "load"]
        for load, arrived in zip(loads, sent["load"], strict=True):
            for held in (opened(arrived), opened(memoryview(arrived))):
                if isinstance(held, Page):
                    assert (held.stream, held.sender) == (load[0], 3)
                    assert held.frame.equals(load[1])
                else:
                    assert held == load


@given(st.lists(LOADS, max_size=6))
def test_notes_leave_as_they_were_and_pages_keep_their_names(
    loads: list[list[Note] | tuple[str, pl.DataFrame]],
) -> None:
    left = to_leaving(row.load for row in rows_of(loads)).to_pandas()
    told = Told([Note.of(text) for text in left["stream"]])
    notes = [note for load in loads if isinstance(load, list) for note in load]
    pages = [load[0] for load in loads if isinstance(load, tuple)]
    assert left["stream"][left["page"].notna()].to_list() == pages
    assert [n for n in told.notes if n.stream not in pages] == notes
    filled = {n.stream for n in notes if n.stream.startswith(SINK) and n.rows} | set(pages)
    assert told.outputs == filled
    for kind in (BEAT, PROOF, WAKE):
        mine = [n for n in notes if n.stream.startswith(kind)]
        assert told.least(kind) == {
            n.stream.removeprefix(kind): min(
                m.greatest for m in mine if m.stream == n.stream and m.greatest is not None
            )
            for n in mine
        }


@given(st.one_of(st.none(), st.binary(max_size=20)))
def test_a_sketch_passes_as_words(behind: bytes | None) -> None:
    assert sketch(Note.of(str(Note("cars", words=sketched(behind)))).words) == behind
