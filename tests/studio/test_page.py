"""The page without a browser: what it draws, what zooming says, who may act."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import polars as pl
from bokeh.core.validation import check_integrity
from bokeh.document import Document
from hypothesis import given
from hypothesis import strategies as st
from watching import SECOND, InProcess, merge

import interpunct as ip
from interpunct.engine.blame import Blame
from interpunct.flow.outline import Outline
from interpunct.studio import demo, drawing, panels
from interpunct.studio.access import Access
from interpunct.studio.look import DARK, LIGHT
from interpunct.studio.map_view import MapView
from interpunct.studio.merging import Merging
from interpunct.studio.page import Page
from interpunct.studio.room import Room
from interpunct.studio.zoom import Zoom


def opened(allowed: bool = True, merging: bool = False) -> tuple[InProcess, Room, Page]:
    flow = InProcess()
    for _ in range(8):
        flow.turn()
    room = Room(flow, Access("secret"), [flow.view], clock=flow.clock)
    if merging:
        room.merging = Merging()
        room.merging.add(20 * SECOND, merge(8, 6, "a"))
    room.look()
    return flow, room, Page(room, Document(), "ann", allowed, "light")


def drawn(page: Page, name: str) -> dict[str, list[object]]:
    return {key: list(values) for key, values in page.data[name].data.items()}


# The graph --------------------------------------------------------------------------------------


def test_every_node_is_below_what_it_reads_and_none_overlap() -> None:
    outline = Outline.of(demo.flow().graph)
    layout = drawing.Layout.of(outline)
    for maker, _, reader in outline.edges:
        assert layout.at[maker][1] - layout.at[reader][1] >= 1
    assert layout.at["quality"][0] == layout.at["vehicles"][0]
    places = sorted(layout.at.values(), key=lambda p: (p[1], p[0]))
    for (x0, y0), (x1, y1) in pairwise(places):
        assert y1 - y0 >= 1 or x1 - x0 >= 1
    assert all(0 < x < layout.columns and 0 < y < layout.rows for x, y in places)


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3), max_size=9))
def test_any_graph_fits_its_drawing(reads: list[list[int]]) -> None:
    flow = ip.Flow("any")
    streams = [flow.source("s", "v bigint")]
    for number, picks in enumerate(reads):
        chosen = [streams[p % len(streams)] for p in dict.fromkeys(picks)]
        distinct = list({s.ref: s for s in chosen}.values())
        made = distinct[0].where("v > 0", name=f"n{number}") if len(distinct) == 1 else (
            flow.union(*distinct, in_order=False, name=f"n{number}"))  # fmt: skip
        streams.append(made)
    for number, stream in enumerate(streams):
        flow.sink(f"out{number}", stream)
    layout = drawing.Layout.of(Outline.of(flow.graph))
    rows: dict[float, list[float]] = {}
    for x, y in layout.at.values():
        assert 0 < x < layout.columns
        rows.setdefault(y, []).append(x)
    for xs in rows.values():
        assert all(b - a >= 0.999 for a, b in pairwise(sorted(xs)))


def test_feedback_is_drawn_upwards_where_guards_are() -> None:
    flow, room, page = opened()
    assert drawn(page, "returns")["x0"] == []
    assert room.send("map", "¬[segment ≠ 3]", "10s")
    flow.turn()
    room.look()
    page.update()
    backs = drawn(page, "returns")
    assert len(backs["x0"]) == len(Outline.of(flow.graph).edges)  # it has come all the way
    assert all(a < b for a, b in zip(backs["y0"], backs["y1"], strict=True))
    assert DARK.feedback not in drawn(page, "boxes")["edge"]
    assert LIGHT.feedback in drawn(page, "boxes")["edge"]


# Zooming ----------------------------------------------------------------------------------------


def test_a_zoom_sends_feedback_is_renewed_and_ends() -> None:
    flow, room, page = opened()
    page._zoomed(flow.view, 2.5, 5.5)
    for _ in range(12):
        flow.turn()
        room.look()
    assert 2 <= room.sent <= 4  # said once, and again each time that half of it was over
    before = flow.snapshot().vitals.skipped
    assert before > 0
    assert "∉" in str(room.said[-1])
    page._zoomed(flow.view, -0.5, 8.5)
    sent = room.sent
    for _ in range(20):
        flow.turn()
        room.look()
    assert room.sent == sent
    ended = flow.snapshot()
    assert all(v.guards == 0 for v in ended.vitals.operators.values())
    last = flow.view.shown().filter(pl.col("at") == flow.view.shown()["at"].max())
    assert last["place"].to_list() == list(range(9))  # all segments have come back


def test_what_one_of_two_people_looks_at_is_computed() -> None:
    zoom = Zoom("segment", 10 * SECOND)
    zoom.look("ann", [3])
    zoom.look("ben", [4, 5])
    assert zoom.wanted == {3, 4, 5}
    assert zoom.due(0) == ("¬[segment ∉ {3, 4, 5}]", 10 * SECOND)
    zoom.look("ben", None)
    assert zoom.wanted is None
    assert zoom.due(20 * SECOND) is None
    zoom.leave("ben")
    slow = zoom.due(20 * SECOND, batch=2 * SECOND)
    assert slow == ("¬[segment ∉ {3}]", 18 * SECOND)  # ahead of what a slow query does next
    assert zoom.due(21 * SECOND) is None  # what was said still holds
    zoom.look("ann", [4])
    assert zoom.due(21 * SECOND) == ("¬[segment ∉ {4}]", 10 * SECOND)
    zoom.leave("ann")
    assert zoom.due(99 * SECOND) is None


def test_who_may_only_look_cannot_act() -> None:
    flow, room, page = opened(allowed=False)
    page._zoomed(flow.view, 2.5, 5.5)
    page.words.value, page.sink.value = "¬[segment ≠ 3]", "map"
    page._said()
    flow.turn()
    room.look()
    page.update()
    assert room.sent == 0
    assert "You may look" in page.note.text
    assert flow.view.zoom.wanted is None


def test_feedback_that_makes_no_sense_is_refused_on_the_page() -> None:
    _, room, page = opened()
    page.words.value, page.sink.value = "¬[colour = 3]", "map"
    page._said()
    page.update()
    assert "colour" in page.note.text
    assert room.sent == 0


def test_what_people_write_is_shown_as_text() -> None:
    _, room, page = opened()
    room.trouble = "<script>alert(1)</script>"
    page.update()
    assert "<script>" not in page.note.text


def test_someone_who_sees_everything_keeps_it_computed_for_all() -> None:
    flow, room, page = opened()
    other = Page(room, Document(), "ben", True, "dark")
    page._zoomed(flow.view, 2.5, 5.5)
    assert flow.view.zoom.wanted is None
    other.gone()
    assert flow.view.zoom.wanted == {3, 4, 5}


def test_a_renewal_never_speaks_of_less_time_than_was_promised() -> None:
    zoom = Zoom("segment", 10 * SECOND)
    zoom.look("ann", [3])
    assert zoom.due(0, batch=4 * SECOND) == ("¬[segment ∉ {3}]", 26 * SECOND)
    assert zoom.due(6 * SECOND, batch=SECOND) == ("¬[segment ∉ {3}]", 20 * SECOND)
    assert zoom.due(20 * SECOND, batch=SECOND) == ("¬[segment ∉ {3}]", 14 * SECOND)


def test_the_note_says_what_is_in_force_and_when_nothing_is_any_more() -> None:
    flow, room, page = opened()
    page._zoomed(flow.view, 2.5, 5.5)
    flow.turn()
    room.look()
    page.update()
    assert "1</b> time; in force: " in page.note.text
    assert "¬[segment∉{3, 4, 5}, ts≤00:" in page.note.text  # of its end the time of day alone
    page._zoomed(flow.view, None, None)
    room.look()
    page.update()
    assert "in force: " in page.note.text  # until its time has come
    for _ in range(20):
        flow.turn()
        room.look()
    page.update()
    assert "nothing is in force any more" in page.note.text
    assert "∉" not in page.note.text


def test_what_is_written_and_accepted_is_listed_beside_the_zoom_until_its_end() -> None:
    flow, room, page = opened()
    page.words.value, page.sink.value = "~[segment = 4]", "map"
    page._said()
    page._zoomed(flow.view, 2.5, 5.5)
    for _ in range(8):  # in which the zoom is renewed
        flow.turn()
        room.look()
    page.update()
    assert "¬[segment=4, ts≤00:" in page.note.text
    assert page.note.text.count("¬[segment∉{3, 4, 5}, ts≤00:") == 1
    for _ in range(40):
        flow.turn()
        room.look()
    page.update()
    assert "¬[segment=4" not in page.note.text
    assert "¬[segment∉{3, 4, 5}" in page.note.text


def test_what_other_programs_have_said_is_listed_as_long_as_it_holds() -> None:
    flow, room, page = opened()
    schema = flow.graph.nodes["map"].streams[0].schema
    flow.others = [ip.Feedback.parse("¬[segment = 4]", schema)]
    room.look()
    page.update()
    assert "from here" in page.note.text
    assert "0</b> times; in force: " in page.note.text
    assert "¬[segment=4]" in page.note.text
    flow.others = []
    room.look()
    page.update()
    assert "segment=4" not in page.note.text


def test_why_feedback_was_refused_is_shown_until_the_next_thing_is_done() -> None:
    flow, room, page = opened()
    page.sink.value = "map"
    for act in (page._show_all, lambda: page._zoomed(flow.view, 2.5, 5.5), page._said):
        page.words.value = "¬[colour = 3]"
        page._said()
        flow.turn()
        room.look()  # which renews the zoom, and answers nothing
        page.update()
        assert "colour" in page.note.text
        page.words.value = "¬[segment = 3]"
        act()
        page.update()
        assert "colour" not in page.note.text


def test_someone_who_leaves_wants_nothing_any_more() -> None:
    flow, _, page = opened()
    page._zoomed(flow.view, 2.5, 5.5)
    assert flow.view.zoom.wanted == {3, 4, 5}
    page.gone()
    assert flow.view.zoom.wanted is None


# The rest ---------------------------------------------------------------------------------------


def test_light_and_dark_are_two_looks_of_one_page() -> None:
    _, _, page = opened(merging=True)
    page._switch()
    assert page.look is DARK
    assert page.merge is not None
    assert {r.glyph.line_color for r in page.merge.plot.renderers} == {
        DARK.text, *DARK.series[:2]
    }  # fmt: skip
    assert page.toggle.label == "light"
    assert {r.glyph.line_color for r in page.graph.renderers if r.name == "data"} == {DARK.data}
    page._switch()
    assert page.look is LIGHT


def test_the_page_shows_heartbeats_blame_and_counts() -> None:
    flow, room, page = opened()
    for _ in range(3):
        flow.turn(vehicles=False)
        room.look()
    page.update()
    assert "vehicles" in page.blame.text
    assert "released by a tuple stamped" in page.blame.text  # to whoever points at it
    assert all(int(n) > 0 for n in re.findall(r'class="n " title="(\d+)"', page.blame.text))
    assert "heartbeat" in page.sources.text
    assert "together" in page.operators.text
    assert "batch" in page.head.text


def test_the_page_tells_a_query_that_ended_from_one_that_is_not_heard_of() -> None:
    flow, room, page = opened()
    now = flow.snapshot()
    assert now.query is not None
    for silent, said in ((False, "has ended"), (True, "not heard of: killed?")):
        room.history.add(replace(now, query=replace(now.query, running=False, silent=silent)))
        page.update()
        assert f'id="ended">{said}<' in page.head.text
    assert set(page.lines) == {"sensors", "vehicles", "results"}


def test_who_holds_nothing_blames_nobody() -> None:
    _, room, page = opened()
    waits = Blame("map", "vehicles", "idle", 0, 9, 5, 4, 7, "a tuple")
    now = room.history.now
    assert now is not None
    room.history.add(replace(now, vitals=replace(now.vitals, waiting=(waits,))))
    page.update()
    assert "Nobody is waited for" in page.blame.text
    held = replace(waits, holds=2)
    room.history.add(replace(now, vitals=replace(now.vitals, waiting=(waits, held))))
    page.update()
    assert page.blame.text.count("<tr>") == 2  # its head, and one line


def test_a_page_before_the_first_batch_says_that_it_waits() -> None:
    flow = InProcess()
    room = Room(flow, Access("secret"), [flow.view], clock=flow.clock)
    page = Page(room, Document(), "ann", True, "light")
    plots = [page.maps[0][1], page.behind, page.taken, page.latency]
    assert all(panels.waiting(plot).visible for plot in plots)
    assert {plot.x_range.end for plot in plots} == {flow.clock.now() / 1000}  # no year 1970
    assert not check_integrity(page.document.models).warning
    for _ in range(12):
        flow.turn()
        room.look()
    page.update()
    assert not any(panels.waiting(plot).visible for plot in plots)


def test_a_scale_forgets_what_has_gone_out_of_sight() -> None:
    plot = panels.line_figure("anything", 100)
    panels.follow(plot, 0, 120, [(5, 4000), (90, 200)])
    assert plot.y_range.end == 4400
    panels.follow(plot, 10, 130, [(5, 4000), (90, 200)])
    assert round(plot.y_range.end) == 220


def test_what_is_late_on_purpose_is_said_where_it_is_counted() -> None:
    _, room, page = opened()
    room.about = demo.ABOUT
    page.update()
    assert "purpose" not in page.sources.text  # nothing is late yet
    now = room.history.now
    assert now is not None
    late = {n: replace(s, late=3) for n, s in now.vitals.sources.items()}
    room.history.add(replace(now, vitals=replace(now.vitals, sources=late)))
    page.update()
    assert "Late on purpose" in page.sources.text


def test_a_query_that_cannot_be_seen_does_not_take_the_page_with_it() -> None:
    flow, room, page = opened()

    def gone() -> None:
        raise OSError("no such folder")

    flow.snapshot = gone  # type: ignore[method-assign, assignment]
    room.look()
    page.update()
    assert "no such folder" in page.note.text
    del flow.snapshot
    room.look()
    page.update()
    assert "no such folder" not in page.note.text


def test_a_map_keeps_its_last_minutes_and_each_result_once() -> None:
    view = MapView("map", width="2s", keep="1m")
    schema = {"segment": pl.Int64, "ts": pl.Datetime("us", "UTC"), "speed": pl.Float64}
    for second in (0, 2, 2, 50, 120):
        rows = [(s, second * SECOND, 40.0 + second) for s in range(3)]
        frame = pl.DataFrame(rows, ["segment", "ts", "speed"], orient="row")
        view.show(frame.cast(schema))
    assert view.shown()["at"].unique().to_list() == [120 * SECOND]
    assert view.places == (0, 2)
    assert view.visible(-0.5, 2.5) is None
    assert view.visible(0.6, 1.6) == [1]
