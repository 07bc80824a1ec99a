"""`interpunct lab`: the experiments on logical merge."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from interpunct.cli.options import Elements, Json, NoPlot, Plot, Repeat, Seed, Spark
from interpunct.cli.shell import Experiment, carry_out

Seconds = Annotated[int, typer.Option("--seconds", min=23, help="Of the streams.")]


def lmerge_variants(
    elements: Elements = 200_000,
    page: Annotated[
        int, typer.Option("--page", min=1, help="Elements that arrive at once.")
    ] = 1000,
    repeat: Repeat = 3,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Throughput and memory of the logical merges R0 to R4 and R3-, with 2 to 10 inputs.

    On one thread, events of an integer and 1,000 bytes; about five minutes with the defaults.

    Example: interpunct lab lmerge-variants --elements 100000 --json
    """
    from interpunct.lab import lmerge_variants as variants

    setup = variants.Setup(elements, page=page, repeat=repeat, seed=seed)
    run = partial(variants.lmerge_variants, setup)
    carry_out(
        "lmerge-variants", run, variants_table, as_json, variants.plot_variants, plot, no_plot
    )


def variants_table(result: Experiment) -> Table:
    numbers = result.to_json()
    table = Table(title=f"Logical merge, pages of {numbers['page_elements']:,} elements")
    table.add_column("variant")
    for inputs in numbers["inputs"]:
        table.add_column(f"{inputs} inputs: thousand/s", justify="right")
        table.add_column("MB", justify="right")
    for variant, speeds in numbers["elements_per_s"].items():
        cells = []
        for inputs, speed in speeds.items():
            size = numbers["peak_bytes"][variant][inputs] / 1e6
            cells += [f"{speed / 1e3:,.0f}", f"{size:,.1f}"]
        table.add_row(variant, *cells)
    return table


def lmerge_chattiness(
    tuples: Annotated[int, typer.Option("--tuples", min=500, help="Of each input.")] = 20_000,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Adjusts at the output of a merge and without one, with more and more disorder.

    About half a minute with the defaults.

    Example: interpunct lab lmerge-chattiness --tuples 5000 --json
    """
    from interpunct.lab import lmerge_chattiness as chatty

    run = partial(chatty.lmerge_chattiness, chatty.Setup(tuples, seed=seed))
    table = _table("Adjusts by share of disorder")
    carry_out("lmerge-chattiness", run, table, as_json, chatty.plot_chattiness, plot, no_plot)


def lmerge_stable(
    elements: Elements = 100_000,
    repeat: Repeat = 3,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Memory and throughput of the merges R0 to R4, with rare and with frequent stables.

    On one thread, events of an integer and 1,000 bytes; about two minutes with the defaults.

    Example: interpunct lab lmerge-stable --elements 50000 --json
    """
    from interpunct.lab import lmerge_stable as stables

    run = partial(stables.lmerge_stable, stables.Setup(elements, repeat=repeat, seed=seed))
    table = _table("Logical merge by share of stables")
    carry_out("lmerge-stable", run, table, as_json, stables.plot_stable, plot, no_plot)


def lmerge_cleanse(
    tuples: Annotated[int, typer.Option("--tuples", min=2000, help="Of each input.")] = 40_000,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Streams put in order before a simple merge, or merged as they are, with 2 to 10 inputs.

    On one thread; about four minutes with the defaults.

    Example: interpunct lab lmerge-cleanse --tuples 20000 --json
    """
    from interpunct.lab import lmerge_cleanse as cleanse

    run = partial(cleanse.lmerge_cleanse, cleanse.Setup(tuples, seed=seed))
    table = _table("Cleanse and R1, or R3 alone")
    carry_out("lmerge-cleanse", run, table, as_json, cleanse.plot_cleanse, plot, no_plot)


def lmerge_bursty(
    seconds: Seconds = 30,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Four inputs that stop now and then, and an output that does not.

    Example: interpunct lab lmerge-bursty --seconds 24 --json
    """
    _delays("bursty", seconds, seed, as_json, plot, no_plot)


def lmerge_congestion(
    seconds: Seconds = 30,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Three inputs that are slow for some seconds each, and an output that is not.

    Example: interpunct lab lmerge-congestion --json
    """
    _delays("congestion", seconds, seed, as_json, plot, no_plot)


def _delays(
    scenario: str, seconds: int, seed: int, as_json: bool, plot: Path | None, no_plot: bool
) -> None:
    from interpunct.lab import lmerge_delays as delays

    run = partial(delays.lmerge_delays, delays.Setup(scenario, seconds, seed))
    table = _table(f"Events out, {scenario} inputs")
    carry_out(f"lmerge-{scenario}", run, table, as_json, delays.plot_delays, plot, no_plot)


def lmerge_cutover(
    elements: Annotated[int, typer.Option("--elements", min=2000)] = 200_000,
    page: Annotated[int, typer.Option("--page", min=1, help="Elements between two stables.")] = 100,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """Two plans that are slow in turn, merged, with and without feedback to the slower one.

    Seconds are counted, not spent.

    Example: interpunct lab lmerge-cutover --json
    """
    from interpunct.lab import lmerge_cutover as cutover

    run = partial(cutover.lmerge_cutover, cutover.Setup(elements, page=page, seed=seed))
    table = _table("Plan switching with fast-forward")
    carry_out("lmerge-cutover", run, table, as_json, cutover.plot_cutover, plot, no_plot)


def lmerge_outages(
    log: Annotated[
        Path | None, typer.Option("--log", help="The outage log (Parquet); else it is looked for.")
    ] = None,
    changes: Annotated[
        int | None, typer.Option("--changes", min=1000, help="From its beginning; else all.")
    ] = None,
    spark: Spark = False,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Two replicas of a change log of power outages, merged to the log's own final state.

    On Spark about a minute more.

    Example: interpunct lab lmerge-outages --changes 40000 --json
    """
    from interpunct.lab import lmerge_outages as outages

    run = partial(outages.lmerge_outages, outages.Setup(log, changes, seed=seed, spark=spark))
    carry_out("lmerge-outages", run, _table("Outages of two replicas"), as_json)


def _table(title: str) -> Callable[[Experiment], Table]:
    """A table of an experiment's rows."""

    def made(result: Experiment) -> Table:
        rows = result.to_json()["rows"]
        table = Table(title=title)
        for name in rows[0]:
            table.add_column(name.replace("_", " "), justify="right")
        for row in rows:
            table.add_row(*map(_shown, row.values()))
        return table

    return made


def _shown(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def add_to(app: typer.Typer) -> None:
    """These commands, among the others of `interpunct lab`."""
    commands = (
        lmerge_variants, lmerge_chattiness, lmerge_stable, lmerge_cleanse, lmerge_bursty,
        lmerge_congestion, lmerge_cutover, lmerge_outages,
    )  # fmt: skip
    for command in commands:
        app.command(command.__name__.replace("_", "-"))(command)
