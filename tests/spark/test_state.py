"""A lane's state on Spark's store is a dict, whatever is small enough to go with the records."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from interpunct.model.page import Page
from interpunct.model.schema import Schema
from interpunct.operators.state import DictState, State, Value
from interpunct.spark.state import RECORDS, ROOM, SMALL, SparkState
from tests.spark.test_cost_of_state import Store

SCHEMA = Schema.of("v bigint")
SIZES = (1, 3, 150, SMALL // 8 + 1)  # rows: small, small, half a small page, too large


class Listing(Store):
    """Spark's iterator, which lanes do not use but `scan` does."""

    def iterator(self):  # type: ignore[no-untyped-def]
        return (((k,), (v,)) for k, v in list(self.values.items()))

    def removeKey(self, key: tuple[str]) -> None:
        self.values.pop(key[0], None)


def page(rows: int) -> Page:
    return Page(SCHEMA, pl.DataFrame({"v": range(rows)}, SCHEMA.polars))


def shown(value: Value | None) -> object:
    return value.frame["v"].to_list() if isinstance(value, Page) else value


def entries(state: State) -> dict[str, object]:
    return {key: shown(value) for key, value in state.scan("")}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abc"), st.sampled_from(SIZES)),
        st.tuples(st.just("record"), st.sampled_from("xyz"), st.integers(0, 9)),
        st.tuples(st.just("remove"), st.sampled_from("abcxyz"), st.just(0)),
        st.tuples(st.just("fresh"), st.just(""), st.sampled_from(SIZES)),
        st.tuples(st.just("batch"), st.just(""), st.just(0)),
    ),
    max_size=30,
)


@given(STEPS)
def test_it_holds_what_a_dict_would_through_any_restart(steps: list[tuple[str, str, int]]) -> None:
    store = Listing()
    mine, model = SparkState(store), DictState()
    for number, (step, key, size) in enumerate(steps):
        match step:
            case "put":
                for state in (mine, model):
                    state.put(key, page(size))
            case "fresh":
                for state in (mine, model):
                    state.put(f"fresh{number}", page(size), fresh=True)
            case "record":
                for state in (mine, model):
                    state.put(key, b"%d" % size)
            case "remove" if key in model.entries:
                for state in (mine, model):
                    state.remove(key)
            case "batch":
                mine.flush()
                mine = SparkState(store)
        assert entries(mine) == {k: shown(v) for k, v in model.scan("")}
        for name in model.entries:
            assert shown(mine.get(name)) == shown(model.get(name))


def test_small_pages_cost_no_calls_of_their_own_and_what_they_take_is_bounded() -> None:
    store = Store()
    state = SparkState(store)
    for number in range(3):
        state.put(f"pane@{number}", page(3), fresh=True)
    state.flush()
    assert (list(store.values), store.calls) == ([RECORDS], 2)
    for number in range(3, 200):
        state.put(f"pane@{number}", page(3), fresh=True)
    state.flush()
    assert len(store.values) > 100, "the rest has entries of its own"
    assert len(store.values[RECORDS]) < 2 * ROOM
