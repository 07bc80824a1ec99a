"""`interpunct lab`: the experiments on logical merge."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer
from rich.table import Table

from interpunct.cli.lab import Json, NoPlot, Plot, Seed
from interpunct.cli.shell import Experiment, carry_out


def lmerge_variants(
    elements: Annotated[
        int, typer.Option("--elements", min=1000, help="Of all inputs together.")
    ] = 200_000,
    page: Annotated[
        int, typer.Option("--page", min=1, help="Elements that arrive at once.")
    ] = 1000,
    repeat: Annotated[
        int, typer.Option("--repeat", min=1, help="Timed runs of each, of which the best counts.")
    ] = 3,
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


def add_to(app: typer.Typer) -> None:
    """These commands, among the others of `interpunct lab`."""
    app.command("lmerge-variants")(lmerge_variants)
