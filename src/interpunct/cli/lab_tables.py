"""What `interpunct lab` prints for people: one table for each experiment."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from interpunct.cli.shell import Experiment
from interpunct.lab import bench as benchmark
from interpunct.lab import ets_latency as latency
from interpunct.lab import ets_memory as memory
from interpunct.lab import plan_heartbeats as plans

CASES = "A without ETS, B with periodic ones (so many a second), C on demand, D without timestamps"


def disorder_table(result: Experiment) -> Table:
    numbers = result.to_json()
    table = Table(title="Three ways with disorder", box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("stream, δ", no_wrap=True)
    table.add_column("way", no_wrap=True)
    for column in ("size", "mean s", "p99 s", "tuple s", "held", "lost %"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, stream in numbers["streams"].items():
        for delay, ways in stream["delays_s"].items():
            for way, o in ways.items():
                size = "" if o["slack"] is None else f"{o['slack']}"
                waits = (f"{o[key]:.1f}" for key in ("mean_s", "p99_s", "tuple_wait_s"))
                table.add_row(
                    f"{name}, {delay} s",
                    way,
                    size,
                    *waits,
                    f"{o['peak']}",
                    f"{100 * o['loss']:.3f}",
                )
        table.add_section()
    if numbers["left_out"]:
        table.caption = "Left out: " + "; ".join(numbers["left_out"])
    return table


def heartbeats_table(result: Experiment) -> Table:
    numbers = result.to_json()
    table = Table(title=f"Learned skew bounds, pages of {numbers['page_tuples']} tuples")
    table.add_column("stream")
    table.add_column("bounds", no_wrap=True)
    for column in ("in time %", "wait s", "p99 s", "buffer"):
        table.add_column(column, justify="right")
    for name, stream in numbers["streams"].items():
        for way, found in stream["ways"].items():
            waits = (f"{found[key]:,.2f}" for key in ("mean_wait_s", "p99_wait_s"))
            share = f"{100 * found['completeness']:.3f}"
            table.add_row(name, way, share, *waits, f"{found['peak_buffer']:,}")
        table.add_section()
    if numbers["left_out"]:
        table.caption = "Left out: " + "; ".join(numbers["left_out"])
    return table


def many_table(result: Experiment) -> Table:
    numbers = result.to_json()
    table = Table(title="A heartbeat for each source, and for each group")
    for column in ("sources", "groups"):
        table.add_column(column, justify="right")
    for way in ("each", "grouped"):
        for column in (f"{way}: million tuples/s", "kB", "lag ms"):
            table.add_column(column, justify="right")
    shown = (("tuples_per_s", 1e6, ".2f"), ("state_bytes", 1e3, ",.0f"), ("lag_ms", 1, ".1f"))
    for count in map(str, numbers["sources"]):
        cells = [
            f"{numbers[key][way][count] / scale:{form}}" if count in numbers[key][way] else "-"
            for way in ("each", "grouped")
            for key, scale, form in shown
        ]
        table.add_row(f"{int(count):,}", str(numbers["groups"][count]), *cells)
    return table


def throughput_table(result: Experiment) -> Table:
    numbers = result.to_json()
    table = Table(title="Rows per second on Spark, in millions")
    shapes = numbers["rows_per_s"]
    table.add_column("")
    for shape in shapes:
        table.add_column(shape, justify="right")
    for way in ("interpunct", "fused", "native", "identity"):
        rates = (f"{r[way] / 1e6:.2f}" if way in r else "" for r in shapes.values())
        table.add_row(way, *rates)
    for against, ratios in numbers["ratio"].items():
        for way, suffix in (("interpunct", ""), ("fused", "_fused")):
            found = (ratios.get(shape + suffix) for shape in shapes)
            table.add_row(f"{way} / {against}", *("" if r is None else f"{r:.2f}" for r in found))
    return table


def idle_table(outcome: Experiment) -> Table:
    result = outcome.to_json()
    table = Table(title=f"One of two streams quiet for {result['quiet_seconds']} s")
    table.add_column("")
    for way in ("plain", "interpunct"):
        table.add_column(way, justify="right")
    rows = {
        "windows during the quiet": "windows_during_quiet",
        "join rows during the quiet": "joined_during_quiet",
        "rows in all": "rows_total",
        "rows dropped by Spark": "rows_dropped",
    }
    for name, key in rows.items():
        table.add_row(name, f"{result['plain'][key]:,}", f"{result['interpunct'][key]:,}")
    latency = (f"{result[way]['latency_batches']['p50']}" for way in ("plain", "interpunct"))
    table.add_row("batches from heartbeat to window, median", *latency)
    for job in ("windows", "join"):
        times = (f"{result[way]['trigger_ms_p50'][job]:,.0f}" for way in ("plain", "interpunct"))
        table.add_row(f"ms a batch, {job}", *times)
    return table


def latency_table(result: latency.EtsLatency) -> Table:
    setup = result.setup
    table = Table(title="Output latency: 50 and 0.05 tuples per second, 95 % pass")
    table.add_column("case")
    for clock in (f"{setup.seconds:g} s", f"{setup.simulated_seconds:g} s simulated"):
        for column in (f"mean ms, {clock}", "p99 ms", "idle-waiting %"):
            table.add_column(column, justify="right")
    for case, outcome in result.real.items():
        simulated = result.simulated[case]
        table.add_row(str(case), *_latency_cells(outcome), *_latency_cells(simulated))
    steps = f"Simulated steps cost {result.step_cost_us} µs each, as measured here."
    table.caption = f"{CASES}\n{steps}"
    return table


def _latency_cells(outcome: Any) -> list[str]:
    idle = f"{outcome.idle_waiting_pct:.2f}"
    return [f"{outcome.mean_ms:,.3f}", f"{outcome.p99_ms:,.3f}", idle]


def memory_table(result: memory.EtsMemory) -> Table:
    setup = result.setup
    table = Table(title=f"Peak queue in {setup.seconds:g} s, {setup.step_cost_ms:g} ms per step")
    table.add_column("case")
    table.add_column("tuples and punctuations", justify="right")
    for case, outcome in result.outcomes.items():
        table.add_row(str(case), f"{outcome.peak_queue:,}")
    table.caption = CASES
    return table


def plans_table(result: plans.PlanHeartbeats) -> Table:
    setup = result.setup
    table = Table(title=f"Two joins, S3 lags {setup.lag:g} s, {setup.step_cost_ms:g} ms per step")
    for column in ("O1", "heartbeats", "label of O1"):
        table.add_column(column)
    for column in ("mean ms", "p99 ms", "peak queue", "results"):
        table.add_column(column, justify="right")
    for case, outcomes in result.outcomes.items():
        for mode, o in outcomes.items():
            numbers = (f"{o.mean_ms:,.2f}", f"{o.p99_ms:,.2f}", f"{o.peak:,}", f"{o.results:,}")
            table.add_row(case, mode, f"{{{', '.join(o.label)}}}", *numbers)
    return table


def bench_table(result: benchmark.Bench) -> Table:
    sizes = result.setup.page_sizes
    table = Table(title="Input tuples per second, by tuples per page")
    table.add_column("operator")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    table.add_column("growth", justify="right")
    for operator in benchmark.OPERATORS:
        speeds = [f"{result.tuples_per_s(operator, size):,.0f}" for size in sizes]
        table.add_row(operator, *speeds, f"{result.growth(operator):.2f}")
    results = [f"{result.output_per_s('join', size):,.0f}" for size in sizes]
    table.add_row("join, results", *results, "")
    table.caption = "growth: the time of a tuple with four times as many tuples, 1 if none"
    return table


def trigger_table(result: Experiment) -> Table:
    numbers = result.to_json()
    table = Table(title=f"A batch of {numbers['rows_a_batch']:,} rows")
    table.add_column("way")
    for column in ("ms, median", "native = 1"):
        table.add_column(column, justify="right")
    for way, milliseconds in numbers["trigger_ms"].items():
        ratio = numbers["ratio"].get(way, 1.0)
        table.add_row(way.replace("_", " "), f"{milliseconds:,.0f}", f"{ratio:.2f}")
    idle = numbers["idle"]
    table.caption = f"Idle for {idle['seconds']} s: {idle['batches']} batches."
    return table


def imputation_table(result: Experiment) -> Table:
    numbers = result.to_json()
    title = f"{numbers['tuples']:,} tuples, {numbers['rate_per_s']:.0f} a second, "
    table = Table(title=f"{title}{numbers['tolerance_s']:.2f} s tolerated")
    table.add_column("feedback")
    for column in ("dropped %", "looked up", "in vain", "purged", "seconds"):
        table.add_column(column, justify="right")
    for way in ("without", "with"):
        counts = (f"{numbers[key][way]:,}" for key in ("looked_up", "looked_up_in_vain", "purged"))
        seconds = f"{numbers['seconds'][way]:.1f}"
        table.add_row(way, f"{numbers['dropped_pct'][way]:.1f}", *counts, seconds)
    table.caption = numbers["archive"]
    return table


def desired_table(result: Experiment) -> Table:
    numbers = result.to_json()
    table = Table(title=f"{numbers['tuples']:,} tuples, {numbers['rate_per_s']:.0f} a second")
    table.add_column(numbers["feedback"])
    for column in ("desired, median s", "rest, median s"):
        table.add_column(column, justify="right")
    for way, medians in numbers["median_latency_s"].items():
        table.add_row(way, *(f"{medians[which]:.3f}" for which in ("desired", "rest")))
    table.caption = numbers["archive"]
    return table


def speedmap_table(result: Experiment) -> Table:
    numbers = result.to_json()
    table = Table(title=f"Speed map, {numbers['hours']:g} hours, medians of {numbers['turns']}")
    for column in ("stream", "page"):
        table.add_column(column)
    for column in ("switch min", "F0 s", "F1 s", "F2 s", "F3 s", "F1 saves %", "F2 %", "F3 %"):
        table.add_column(column, justify="right")
    for name, stream in numbers["streams"].items():
        _schemes(table, name.split("_")[0], stream["page_tuples"], stream)
    if spark := numbers["spark"]:
        _schemes(table, "Spark", spark["rows_a_batch"], spark)
    if numbers["left_out"]:
        table.caption = "Left out: " + "; ".join(numbers["left_out"])
    return table


def _schemes(table: Table, stream: str, page: int, found: dict[str, Any]) -> None:
    """A row for each time that the driver stays."""
    schemes = ("F1", "F2", "F3")
    for minutes in found["saved_pct"]["F3"]:
        seconds = [found["seconds"]["F0"], *(found["seconds"][s][minutes] for s in schemes)]
        saved = [found["saved_pct"][s][minutes] for s in schemes]
        cells = [f"{x:.1f}" for x in (*seconds, *saved)]
        table.add_row(stream, f"{page:,}", minutes, *cells)
    table.add_section()


def demanded_table(result: Experiment) -> Table:
    numbers = result.to_json()
    table = Table(title=escape(numbers["feedback"]))
    table.add_column("")
    for column in ("demands", "answers", "ms, median", "mean error", "mean final"):
        table.add_column(column, justify="right")
    for way in ("process", "spark"):
        if found := numbers[way]:
            counts = (f"{found[key]:,}" for key in ("demands", "answers"))
            amounts = ("answer_ms", "mean_absolute_error", "mean_final")
            table.add_row(way, *counts, *(f"{found[key]:,.2f}" for key in amounts))
    return table
