"""The Punctuate paper: its operators, its figures and its comparisons."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl

import interpunct as ip
from interpunct.flow.stream import FlowStream
from interpunct.model.late import Reason
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import EPOCH, Schema
from interpunct.operators.contract import Stream
from interpunct.operators.punctuate import Punctuate

SECOND = 1_000_000
BID = Schema.of("time bigint, person string, price double, item string", time="time")
TIMER = Schema.of("time bigint", time="time")


def at(seconds: float) -> Any:
    return EPOCH + timedelta(seconds=seconds)


def arriving(rows: list[tuple[Any, ...]], *names: str) -> ip.Feed:
    """Rows whose first value is when they arrive, in seconds."""
    frame = pl.DataFrame(rows, schema=["arrival", *names], orient="row")
    return ip.feed(frame.with_columns(pl.col("arrival").map_elements(at, pl.Datetime("us", "UTC"))),
                   arrival="arrival")  # fmt: skip


def run(flow: ip.Flow, feeds: dict[str, ip.Feed]) -> tuple[ip.Result, dict[str, list[Any]]]:
    """The result, and per sink when each tuple came: (second, *row)."""
    clock = ip.ScriptedClock()
    seen: dict[str, list[Any]] = {n.name: [] for n in flow.graph.sinks}

    def deliver(name: str) -> Any:
        return lambda frame: seen[name].extend((clock.now() / SECOND, *r) for r in frame.rows())

    return flow.run(feeds, clock=clock, sinks={name: deliver(name) for name in seen}), seen


# Section 2: the punctuate operator --------------------------------------------------------------


def test_figure_2_the_punctuation_matches_bids_up_to_its_time_for_all_items() -> None:
    bid = ip.Page.of_rows(BID, [(5567, "p1", 10.0, "i1"), (5568, "p1", 10.0, "i1")])
    punctuation = Punctuation.parse("[[,5567], *, *, *]", BID)
    assert punctuation.pattern.mask(bid.frame).to_list() == [True, False]
    assert punctuation.heartbeat_ticks == 5567
    assert str(punctuation) == "[≤ 5567, *, *, *]"


def punctuate() -> Punctuate:
    return Punctuate("auction", Stream(BID), Stream(TIMER))


def test_figure_2_a_timer_value_becomes_a_punctuation_of_the_shape_of_the_data() -> None:
    emission = punctuate().accept(1, ip.Page.of_rows(TIMER, [(5567,)]))
    ((port, page),) = emission.pages
    assert (port, page.schema, page.height) == (0, BID, 0)
    assert page.punctuations == (Punctuation.parse("[[,5567], *, *, *]", BID),)


def test_punctuate_enforces_its_own_punctuations_and_says_how_late_a_bid_was() -> None:
    operator = punctuate()
    operator.accept(1, ip.Page.of_rows(TIMER, [(5567,)]))
    bids = [(5567, "p1", 10.0, "i1"), (5568, "p2", 11.0, "i1"), (5500, "p3", 12.0, "i1")]
    pages = dict(operator.accept(0, ip.Page.of_rows(BID, bids)).pages)
    assert pages[0].frame["person"].to_list() == ["p2"]
    late = pages[1].frame.select("person", "_source", "_reason", "_lateness", "_heartbeat")
    assert late.rows() == [
        ("p1", "auction", Reason.LATE.value, 0, 5567),
        ("p3", "auction", Reason.LATE.value, 67, 5567),
    ]


def auction(**policy: str) -> tuple[ip.Flow, FlowStream]:
    flow = ip.Flow("auction")
    disorder = ip.bounds(delay="1h")  # the stream itself guarantees nothing worth waiting for
    time = ip.external("time", bounds=disorder, ets="never")
    bids = flow.source("bids", "time timestamp, person string, price double", time=time)
    return flow, bids.punctuate(**policy)  # type: ignore[arg-type]


def test_the_policy_of_section_2_bids_that_arrive_too_late_are_invalid() -> None:
    flow, bids = auction(every="60s", delay="5m")
    flow.sink("valid", bids)
    flow.sink("invalid", bids.late)
    rows = [
        (60, at(50), "prompt", 1.0),
        (400, at(130), "four and a half minutes late", 2.0),
        (421, at(100), "five minutes and more late", 3.0),
    ]
    _, seen = run(flow, {"bids": arriving(rows, "time", "person", "price")})
    assert [row[2] for row in seen["valid"]] == ["prompt", "four and a half minutes late"]
    assert [(row[2], row[6]) for row in seen["invalid"]] == [("five minutes and more late", 20.0)]


# Section 3: nearly-ordered attributes, and slack ------------------------------------------------

# The last bid of the first minute is out of order; then the stream goes quiet for ten minutes.
NEARLY = [
    (10, at(10), "a", 1.0),
    (61, at(61), "b", 2.0),
    (62, at(50), "c", 4.0),
    (63, at(62), "d", 8.0),
    (700, at(700), "e", 16.0),
]


def minutes(stream: FlowStream) -> FlowStream:
    return stream.aggregate(every="60s", total="sum(price)")


def test_the_advantage_over_slack_a_quiet_stream_still_makes_progress() -> None:
    flow, bids = auction(every="10s", delay="30s")
    flow.sink("out", minutes(bids))
    feeds = {"bids": arriving(NEARLY, "time", "person", "price")}
    _, punctuated = run(flow, feeds)

    baseline = ip.Flow("aurora")
    time = ip.external("time", bounds=ip.bounds(delay="1h"), ets="never")
    raw = baseline.source("bids", "time timestamp, person string, price double", time=time)
    baseline.sink("out", minutes(raw.slack(3, window="60s")))
    _, slacked = run(baseline, feeds)

    first = (at(0), 5.0)  # both count the bid that was out of order
    assert punctuated["out"][0] == (90.0, *first)
    assert slacked["out"][0] == (700.0, *first)  # three more tuples had to be read


def test_slack_too_small_for_the_disorder_loses_the_bid_to_the_late_output() -> None:
    flow = ip.Flow("aurora")
    time = ip.external("time", bounds=ip.bounds(delay="1h"), ets="never")
    raw = flow.source("bids", "time timestamp, person string, price double", time=time)
    slacked = raw.slack(0, window="60s")
    flow.sink("out", minutes(slacked))
    flow.sink("late", slacked.late)
    _, seen = run(flow, {"bids": arriving(NEARLY, "time", "person", "price")})
    assert [row[2] for row in seen["late"]] == ["c"]
    assert seen["out"][0] == (61.0, at(0), 1.0)


def test_other_operators_take_advantage_of_the_punctuations() -> None:
    flow, bids = auction(every="10s", delay="30s")
    cheap, dear = bids.split("price < 4")
    both = flow.union(minutes(cheap), minutes(dear), in_order=True)
    flow.sink("out", both)
    _, seen = run(flow, {"bids": arriving(NEARLY, "time", "person", "price")})
    assert seen["out"][:2] == [(90.0, at(0), 1.0), (90.0, at(0), 4.0)]


# Section 4: maintaining order -------------------------------------------------------------------

PACKETS = [(float(n), at(n), n) for n in range(1, 11)]
DEAD = [(60.0, at(60), 99)]  # the reconstruction has nothing to say for a minute


def reconstruction(*, punctuated: bool, in_order: bool = True) -> tuple[ip.Flow, FlowStream]:
    """Figure 3: whole packets and reconstructed ones, each with a timer, merged."""
    flow = ip.Flow("gigascope")
    streams = []
    for name in ("packets", "reconstructed"):
        stream = flow.source(
            name, "ts timestamp, id bigint", time=ip.external("ts", ordered=True, ets="never")
        )
        streams.append(stream.punctuate(every="1s", delay="2s") if punctuated else stream)
    united = flow.merge(*streams) if in_order else flow.union(*streams, in_order=False)
    flow.sink("out", united)
    return flow, united


FEEDS = {"packets": arriving(PACKETS, "ts", "id"), "reconstructed": arriving(DEAD, "ts", "id")}


def test_figure_3_without_punctuations_the_merge_blocks_on_the_dead_input() -> None:
    flow, _ = reconstruction(punctuated=False)
    _, seen = run(flow, FEEDS)
    assert [row[0] for row in seen["out"]][:10] == [60.0] * 10


def test_figure_3_with_punctuations_the_merge_goes_on_and_stays_in_order() -> None:
    flow, _ = reconstruction(punctuated=True)
    _, seen = run(flow, FEEDS)
    assert [row[2] for row in seen["out"]] == [*range(1, 11), 99]
    # Each packet leaves when the timer of the dead input has passed its time: two seconds later.
    assert [row[0] for row in seen["out"]][:10] == [float(n + 2) for n in range(1, 11)]


def test_the_last_step_of_section_4_items_leave_as_they_arrive_and_progress_is_known() -> None:
    flow, united = reconstruction(punctuated=True, in_order=False)
    flow.sink("counts", united.aggregate(every="5s", n="count(*)"))
    _, seen = run(flow, FEEDS)
    assert [row[0] for row in seen["out"]] == [*(float(n) for n in range(1, 11)), 60.0]
    # An aggregate behind it needs no order: it closes windows by the punctuations alone.
    assert seen["counts"][:2] == [(7.0, at(0), 4), (12.0, at(5), 5)]


def test_punctuations_bound_how_disordered_the_union_can_become() -> None:
    flow, united = reconstruction(punctuated=True, in_order=False)
    flow.sink("sorted", united.sort())
    rows = [(0.5, at(0.5), 7), (5.5, at(4.5), 8), (9.0, at(5.0), 9)]
    result, seen = run(flow, {**FEEDS, "reconstructed": arriving(rows, "ts", "id")})
    assert [row[1] for row in seen["sorted"]] == sorted(row[1] for row in seen["sorted"])
    assert {row[2] for row in seen["sorted"]} == {*range(1, 11), 8, 7}
    # The bid of second 5 that came at second 9 was too late for the policy of two seconds.
    assert [frame["id"].to_list() for frame in result.late.values()] == [[9]]
