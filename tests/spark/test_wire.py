"""What leaves the last stage: pages by their names, everything else as notes. No JVM."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
    passing,
    to_leaving,
    to_pandas,
)
from interpunct.spark.writers import Told

MOMENTS = st.integers(-(2**52), 2**52)  # as far as the columns between stages are exact
NAMES = st.sampled_from(["map", "two words", 'quo"te', "[1]"])


@given(
    st.lists(
        st.one_of(
            st.builds(lambda n, m: Row(0, OUT, f"{BEAT}{n}", greatest=m), NAMES, MOMENTS),
            st.builds(lambda n, m: Row(1, OUT, f"{PROOF}{n}", greatest=m), NAMES, MOMENTS),
            st.builds(lambda m: Row(1, OUT, WAKE, greatest=m), MOMENTS),
            st.builds(lambda n: Row(0, OUT, f"{LATE}{n}", page=b"page"), NAMES),
            st.builds(lambda n, k: Row(0, OUT, f"{SINK}{n}", rows=k), NAMES, st.integers(0, 9)),
            st.builds(lambda n: Row(0, OUT, f"{FEEDBACK}{n}:0", 1, -1, page="¬[*]".encode()),
                      NAMES),
        ),
        max_size=8,
    )
)  # fmt: skip
def test_notes_say_what_the_rows_said_and_pages_keep_their_names(rows: list[Row]) -> None:
    """Also of rows that came through an earlier stage, as Spark gives them to the last."""
    for given_rows in (rows, passing(to_pandas(rows))):
        left = to_leaving(given_rows).to_pandas()
        told = Told([Note.of(text) for text in left["stream"]])
        pages = [r.stream for r in rows if r.page is not None and r.stream.startswith(LATE)]
        assert left["stream"][left["page"].notna()].to_list() == pages
        filled = {r.stream for r in rows if r.stream.startswith(SINK) and r.rows} | set(pages)
        assert told.outputs == filled
        for kind in (BEAT, PROOF, WAKE):
            mine = [r for r in rows if r.stream.startswith(kind)]
            assert told.least(kind) == {
                r.stream.removeprefix(kind): min(
                    s.greatest for s in mine if s.stream == r.stream and s.greatest is not None
                )
                for r in mine
            }
        said = [(n.stream, n.sender, n.rows, n.words) for n in told.notes if n.words is not None]
        assert said == [
            (r.stream, 1, -1, "¬[*]") for r in rows if r.stream.startswith(FEEDBACK)
        ]  # fmt: skip
