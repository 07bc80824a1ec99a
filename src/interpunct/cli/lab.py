"""`interpunct lab`: the papers' experiments and the benchmark, again on this machine."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from interpunct.cli import lab_tables as tables
from interpunct.cli.options import Json, NoPlot, Plot, Seed, Workers
from interpunct.cli.shell import Commands, carry_out
from interpunct.lab import bench as benchmark
from interpunct.lab import ets_latency as latency
from interpunct.lab import ets_memory as memory
from interpunct.lab import plan_heartbeats as plans

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The papers' experiments and the benchmark, on this machine.\n\n"
    "Example: interpunct lab ets-memory --seconds 300",
)


class Shape(StrEnum):
    """The jobs whose throughput is measured."""

    FINE = "fine"
    COARSE = "coarse"
    UNION = "union"
    JOIN = "join"


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
    setup = latency.Setup(seconds, simulated_seconds, seed, workers=workers, asleep=asleep)
    run = partial(latency.ets_latency, setup)
    carry_out(
        "ets-latency", run, tables.latency_table, as_json, latency.plot_latency, plot, no_plot
    )


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
    setup = memory.Setup(seconds, step_cost, seed, workers=workers)
    run = partial(memory.ets_memory, setup)
    carry_out("ets-memory", run, tables.memory_table, as_json, memory.plot_memory, plot, no_plot)


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
    setup = plans.Setup(seconds, lag, step_cost, seed, workers)
    run = partial(plans.plan_heartbeats, setup)
    carry_out("plan-heartbeats", run, tables.plans_table, as_json, plans.plot_plan, plot, no_plot)


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

    setup = many.Setup(pages=pages, groups=groups, seed=seed)
    run = partial(many.many_sources, setup)
    carry_out("many-sources", run, tables.many_table, as_json, many.plot_many, plot, no_plot)


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
    setup = benchmark.Setup(tuples=tuples, repeat=repeat, seed=seed)
    run = partial(benchmark.bench, setup)
    carry_out("bench", run, tables.bench_table, as_json, benchmark.plot_bench, plot, no_plot)


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

    setup = idle.Setup(quiet_seconds, seed)
    run = partial(idle.idle_source, setup)
    carry_out("idle-source", run, tables.idle_table, as_json, idle.plot_idle, plot, no_plot)


@app.command("throughput")
def throughput(
    rows: Annotated[int, typer.Option("--rows", min=10_000, help="In a batch.")] = 4_000_000,
    batches: Annotated[
        int, typer.Option("--batches", min=2, help="Of a turn, the first half to warm up.")
    ] = 10,
    turns: Annotated[
        int, typer.Option("--turns", min=1, help="Of each way, after three to warm up.")
    ] = 2,
    shapes: Annotated[
        list[Shape] | None, typer.Option("--shape", help="Only this job; may be given again.")
    ] = None,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Rows per second on Spark of averages, a union, a join: a flow, native, a pass-through.

    The ways take turns over the same recordings; about forty minutes with the defaults.

    Example: interpunct lab throughput --shape coarse --rows 1000000 --json
    """
    from interpunct.lab import throughput as rates

    chosen = tuple(str(shape) for shape in shapes or Shape)
    setup = rates.Setup(rows=rows, batches=batches, turns=turns, shapes=chosen, seed=seed)
    run = partial(rates.throughput, setup)
    carry_out("throughput", run, tables.throughput_table, as_json)


@app.command("trigger-cost")
def trigger_cost(
    batches: Annotated[
        int, typer.Option("--batches", min=16, max=90, help="Of a turn; the first 12 do not count.")
    ] = 30,
    turns: Annotated[
        int, typer.Option("--turns", min=1, help="Of each way, after one to warm up.")
    ] = 4,
    idle_seconds: Annotated[
        int, typer.Option("--idle-seconds", min=1, help="For which an ended stream is watched.")
    ] = 15,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Milliseconds of a batch of 1,000 rows on Spark: native, a flow of one stage, of two.

    Each as a DataFrame (flow.to_df) and through foreachBatch (flow.start). The ways take turns over
    one recording; about seven minutes with the defaults.

    Example: interpunct lab trigger-cost --turns 2 --json
    """
    from interpunct.lab import trigger_cost as cost

    setup = cost.Setup(batches=batches, turns=turns, idle_seconds=idle_seconds, seed=seed)
    run = partial(cost.trigger_cost, setup)
    carry_out("trigger-cost", run, tables.trigger_table, as_json)


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

    setup = learned.Setup(seconds, spikes, page, seed, data)
    run = partial(learned.heartbeats, setup)
    carry_out(
        "heartbeats", run, tables.heartbeats_table, as_json, learned.plot_heartbeats, plot, no_plot
    )


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

    setup = ways.Setup(seconds, swing, seed, data, workers)
    run = partial(ways.disorder, setup)
    carry_out("disorder", run, tables.disorder_table, as_json, ways.plot_disorder, plot, no_plot)
