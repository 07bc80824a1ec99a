"""`interpunct lab`: the experiments on feedback."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from interpunct.cli import lab_tables as tables
from interpunct.cli.options import Json, NoPlot, Plot, Seed, Spark
from interpunct.cli.shell import carry_out


def imputation(
    tuples: Annotated[
        int, typer.Option("--tuples", min=2, help="Clean and dirty in turns.")
    ] = 5000,
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.1, help="Tuples a second; else as measured to be too many."),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance", min=0.001, help="Seconds; else as 12 dirty tuples take."),
    ] = None,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """How many imputed tuples come too late, with PACE's feedback to IMPUTE and without it.

    On the real clock, with a look-up in a database for every dirty tuple; about two minutes with
    the defaults.

    Example: interpunct lab imputation --tuples 2000
    """
    from interpunct.lab import imputation as experiment

    setup = experiment.Setup(tuples, rate, tolerance, seed)
    run = partial(experiment.imputation, setup)
    carry_out(
        "imputation", run, tables.imputation_table, as_json,
        experiment.plot_imputation, plot, no_plot,
    )  # fmt: skip


def desired(
    tuples: Annotated[
        int, typer.Option("--tuples", min=100, help="Each of which needs a look-up.")
    ] = 1500,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """How long what is desired waits behind a backlog of look-ups, and how long the rest.

    On the real clock, with a database; half a minute with the defaults.

    Example: interpunct lab desired --tuples 500
    """
    from interpunct.lab import desired as experiment

    run = partial(experiment.desired, experiment.Setup(tuples, seed))
    carry_out("desired", run, tables.desired_table, as_json)


def speedmap(
    hours: Annotated[float, typer.Option("--hours", min=0.2, help="Of the stream.")] = 18.0,
    turns: Annotated[int, typer.Option("--turns", min=1, help="Of all cases.")] = 3,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="The Aarhus recording (Parquet), or its directory."),
    ] = None,
    spark: Spark = False,
    seed: Seed = 1,
    as_json: Json = False,
    plot: Plot = None,
    no_plot: NoPlot = False,
) -> None:
    """What a driver's feedback saves: no scheme, or guards ever further upstream.

    All cases take turns, on one thread: about twenty-five minutes with the defaults, and ten more
    on Spark.

    Example: interpunct lab speedmap --hours 2 --turns 1
    """
    from interpunct.lab import feedback_speed_map as experiment

    setup = experiment.Setup(hours, turns, seed, data, spark)
    run = partial(experiment.feedback_speed_map, setup)
    carry_out(
        "speedmap", run, tables.speedmap_table, as_json, experiment.plot_speed_map, plot, no_plot
    )


def demanded(
    minutes: Annotated[int, typer.Option("--minutes", min=1, help="Of the stream.")] = 60,
    spark: Annotated[
        bool, typer.Option("--spark", help="On Spark as well, for four minutes of the stream.")
    ] = False,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """How soon a demand is answered from open windows, and how far off the answer is.

    A few seconds in process, a minute on Spark.

    Example: interpunct lab demanded --minutes 10 --json
    """
    from interpunct.lab import demanded as experiment

    run = partial(experiment.demanded, experiment.Setup(minutes, seed, spark))
    carry_out("demanded", run, tables.demanded_table, as_json)


def add_to(app: typer.Typer) -> None:
    """These commands, among the others of `interpunct lab`."""
    app.command("imputation")(imputation)
    app.command("desired")(desired)
    app.command("speedmap")(speedmap)
    app.command("demanded")(demanded)
