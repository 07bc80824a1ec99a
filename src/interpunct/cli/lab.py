"""`interpunct lab`: the papers' experiments and the benchmark, again on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from interpunct.cli import lab_tables as tables
from interpunct.cli.shell import Commands, figure_path, progress, show
from interpunct.lab import bench as benchmark
from interpunct.lab import ets_latency as latency
from interpunct.lab import ets_memory as memory
from interpunct.lab import plan_heartbeats as plans

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Experiments.\n\nExample: interpunct lab ets-latency --seconds 10",
)

Json = Annotated[bool, typer.Option("--json", help="Pure JSON on stdout.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Where to write the figure (PNG).")]
NoPlot = Annotated[bool, typer.Option("--no-plot", help="Write no figure.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of the random arrivals and values.")]
Workers = Annotated[
    int, typer.Option("--workers", min=0, help="Processes that simulate; 0 for none but this one.")
]


@app.command("ets-latency")
def ets_latency(
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, help="Of the real clock, for each case.")
    ] = 60.0,
    simulated_seconds: Annotated[
        float, typer.Option("--simulated-seconds", min=0.1, help="Of scripted time, for each case.")
    ] = 3600.0,
    asleep: Annotated[
        bool,
        typer.Option("--asleep", help="Sleep between tuples; else a twin of the query runs on."),
    ] = False,
    seed: Seed = 1,
    workers: Workers = 2,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Latency and idle-waiting of a union: no, periodic and on-demand ETS, latent timestamps.

    The eight cases run one after another on the real clock, then simulated: about a quarter of an
    hour with the defaults.

    Example: interpunct lab ets-latency --seconds 10 --simulated-seconds 600
    """
    path = figure_path(plot, no_plot, as_json, "ets-latency")
    setup = latency.Setup(seconds, simulated_seconds, seed, workers=workers, asleep=asleep)
    with progress("ets-latency") as report:
        result = latency.ets_latency(setup, report)
    if path is not None:
        latency.plot_latency(result, path)
    show(result.to_json(), lambda: tables.latency_table(result), as_json, path)


@app.command("ets-memory")
def ets_memory(
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, help="Of scripted time, for each case.")
    ] = 1200.0,
    step_cost: Annotated[
        float, typer.Option("--step-cost", min=0.001, help="What a step takes, in milliseconds.")
    ] = memory.STEP_COST_MS,
    seed: Seed = 1,
    workers: Workers = 2,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Peak queue size of the same query, in scripted time: no, periodic and on-demand ETS.

    An operator that consumes a page takes the step cost; what arrives meanwhile queues.

    Example: interpunct lab ets-memory --seconds 300 --step-cost 0.4
    """
    path = figure_path(plot, no_plot, as_json, "ets-memory")
    setup = memory.Setup(seconds, step_cost, seed, workers=workers)
    with progress("ets-memory") as report:
        result = memory.ets_memory(setup, report)
    if path is not None:
        memory.plot_memory(result, path)
    show(result.to_json(), lambda: tables.memory_table(result), as_json, path)


@app.command("plan-heartbeats")
def plan_heartbeats(
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="Of scripted time, for each plan.")
    ] = 120.0,
    lag: Annotated[
        float, typer.Option("--lag", min=0, help="Seconds by which the third stream lags.")
    ] = 30.0,
    step_cost: Annotated[
        float, typer.Option("--step-cost", min=0.001, help="What a step takes, in milliseconds.")
    ] = plans.STEP_COST_MS,
    seed: Seed = 1,
    workers: Workers = 2,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Latency and memory of two joins: operator-level, query-level and memory-aware heartbeats.

    An operator that consumes a page takes the step cost; what arrives meanwhile queues.

    Example: interpunct lab plan-heartbeats --seconds 60 --lag 30
    """
    path = figure_path(plot, no_plot, as_json, "plan-heartbeats")
    setup = plans.Setup(seconds, lag, step_cost, seed, workers)
    with progress("plan-heartbeats") as report:
        result = plans.plan_heartbeats(setup, report)
    if path is not None:
        plans.plot_plan(result, path)
    show(result.to_json(), lambda: tables.plans_table(result), as_json, path)


@app.command("many-sources")
def many_sources(
    pages: Annotated[
        int, typer.Option("--pages", min=20, help="Of 10,000 tuples, for each number of sources.")
    ] = 500,
    groups: Annotated[
        int, typer.Option("--groups", min=1, help="At most, with a heartbeat each.")
    ] = 16,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Heartbeats for 10 to 100,000 sensors, each by itself and in groups: tuples per second, bytes.

    Example: interpunct lab many-sources --groups 16 --json
    """
    from interpunct.lab import many_sources as many

    path = figure_path(plot, no_plot, as_json, "many-sources")
    with progress("many-sources") as report:
        result = many.many_sources(many.Setup(pages=pages, groups=groups, seed=seed), report)
    if path is not None:
        many.plot_many(result, path)
    numbers = result.to_json()
    show(numbers, lambda: tables.many_table(numbers), as_json, path)


@app.command("bench")
def bench(
    tuples: Annotated[
        int,
        typer.Option("--tuples", min=100, help="At the greatest page size; 4 times for growth."),
    ] = 1_000_000,
    repeat: Annotated[
        int, typer.Option("--repeat", min=1, help="Runs of each, of which the best counts.")
    ] = 3,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Tuples per second of select, union, join and average, on one thread.

    Example: interpunct lab bench --tuples 200000 --json
    """
    path = figure_path(plot, no_plot, as_json, "bench")
    setup = benchmark.Setup(tuples=tuples, repeat=repeat, seed=seed)
    with progress("bench") as report:
        result = benchmark.bench(setup, report)
    if path is not None:
        benchmark.plot_bench(result, path)
    show(result.to_json(), lambda: tables.bench_table(result), as_json, path)


@app.command("idle-source")
def idle_source(
    quiet_seconds: Annotated[
        int, typer.Option("--quiet-seconds", min=5, help="Of stream time, for the one stream.")
    ] = 30,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """A quiet source on Spark: native windows and a native join, plain and synchronized.

    The four queries run one after another, a second of stream time a batch: two or three minutes
    with the default.

    Example: interpunct lab idle-source --quiet-seconds 10
    """
    from interpunct.lab import idle_source as idle

    path = figure_path(plot, no_plot, as_json, "idle-source")
    with progress("idle-source") as report:
        result = idle.idle_source(idle.Setup(quiet_seconds, seed), report)
    if path is not None:
        idle.plot_idle(result, path)
    show(result.to_json(), lambda: tables.idle_table(result.to_json()), as_json, path)


@app.command("throughput")
def throughput(
    rows: Annotated[int, typer.Option("--rows", min=10_000, help="In a batch.")] = 4_000_000,
    batches: Annotated[int, typer.Option("--batches", min=3, help="Of a turn.")] = 4,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Rows per second on Spark of averages, a union, a join: a flow, native, a pass-through.

    The ways take turns over the same recordings; about ten minutes with the defaults.

    Example: interpunct lab throughput --rows 1000000 --json
    """
    from interpunct.lab import throughput as rates

    with progress("throughput") as report:
        result = rates.throughput(rates.Setup(rows=rows, batches=batches, seed=seed), report)
    numbers = result.to_json()
    show(numbers, lambda: tables.throughput_table(numbers), as_json, None)


@app.command("trigger-cost")
def trigger_cost(
    batches: Annotated[
        int, typer.Option("--batches", min=16, max=90, help="Of a turn; the first 12 do not count.")
    ] = 30,
    turns: Annotated[int, typer.Option("--turns", min=1, help="Of each way.")] = 5,
    idle_seconds: Annotated[
        int, typer.Option("--idle-seconds", min=1, help="For which an ended stream is watched.")
    ] = 15,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Milliseconds of a batch of 1,000 rows on Spark: native, a flow of one stage, of two.

    The ways take turns over one recording; about four minutes with the defaults.

    Example: interpunct lab trigger-cost --turns 2 --json
    """
    from interpunct.lab import trigger_cost as cost

    setup = cost.Setup(batches=batches, turns=turns, idle_seconds=idle_seconds, seed=seed)
    with progress("trigger-cost") as report:
        numbers = cost.trigger_cost(setup, report).to_json()
    show(numbers, lambda: tables.trigger_table(numbers), as_json, None)


@app.command("heartbeats")
def heartbeats(
    seconds: Annotated[
        float, typer.Option("--seconds", min=60.0, help="Length of the generated stream.")
    ] = 3600.0,
    spikes: Annotated[int, typer.Option("--spikes", min=0, help="Of latency, in it.")] = 4,
    page: Annotated[int, typer.Option("--page", min=1, help="Tuples that arrive at once.")] = 100,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="The Zeek logs (Parquet), or the directory they are in."),
    ] = None,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Skew bounds learned from the stream, against the best fixed one in hindsight.

    Late tuples, waiting and buffer for each way of estimating, on a stream with latency spikes and,
    where they are found, on recorded network logs.

    Example: interpunct lab heartbeats --seconds 600 --spikes 1
    """
    from interpunct.lab import heartbeats as learned

    path = figure_path(plot, no_plot, as_json, "heartbeats")
    with progress("heartbeats") as report:
        result = learned.heartbeats(learned.Setup(seconds, spikes, page, seed, data), report)
    if path is not None:
        learned.plot_heartbeats(result, path)
    numbers = result.to_json()
    show(numbers, lambda: tables.heartbeats_table(numbers), as_json, path)


@app.command("disorder")
def disorder(
    seconds: Annotated[
        float, typer.Option("--seconds", min=30.0, help="Length of the generated stream.")
    ] = 300.0,
    swing: Annotated[
        float, typer.Option("--swing", min=1.0, help="Bids at the height of a rush, to the lull.")
    ] = 10.0,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="The Zeek logs (Parquet), or the directory they are in."),
    ] = None,
    seed: Seed = 1,
    workers: Workers = 2,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Slack, sorting and punctuation: latency, memory and loss on the same disordered bids.

    In scripted time, and where they are found on recorded network logs as well; two or three
    minutes with the defaults.

    Example: interpunct lab disorder --seconds 60 --swing 4
    """
    from interpunct.lab import disorder as ways

    path = figure_path(plot, no_plot, as_json, "disorder")
    with progress("disorder") as report:
        result = ways.disorder(ways.Setup(seconds, swing, seed, data, workers), report)
    if path is not None:
        ways.plot_disorder(result, path)
    numbers = result.to_json()
    show(numbers, lambda: tables.disorder_table(numbers), as_json, path)
