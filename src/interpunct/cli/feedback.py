"""`interpunct feedback`: tell a running flow what is no longer wanted, wanted first, or now."""

from __future__ import annotations

import json
import warnings
from typing import Annotated

import typer

from interpunct.cli.options import Json


def feedback(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint of a flow, as given to start.")],
    sink: Annotated[str, typer.Argument(help="The sink that speaks.")],
    text: Annotated[
        str, typer.Argument(help="~[…] (or ¬[…]) assumed, ?[…] desired, ![…] demanded.")
    ],
    lasting: Annotated[
        str | None,
        typer.Option(
            help="End it so long after what the sink has reached, such as 2m; a number alone is "
            "counted in ticks of its time."
        ),
    ] = None,
    undelimited: Annotated[
        bool,
        typer.Option("--undelimited", help="Accept a pattern without an end: it holds for ever."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Send feedback to a flow that runs on Spark; its next batch carries it to every lane.

    What is assumed must end in time: in the pattern itself, or with --lasting.

    Example: interpunct feedback ckpt/map map "~[segment ≠ 3, ts ≤ '2026-01-01 09:00:00']"

    Example: interpunct feedback ckpt/map map "~[segment ≠ 3]" --lasting 2m
    """
    from interpunct.spark.channel import Channel

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        said = Channel.of(checkpoint).hand_in(
            sink, text, lasting=_length(lasting), undelimited=undelimited
        )
    typer.echo(
        json.dumps({"sink": sink, "sent": str(said)}) if as_json else f"sent to {sink}: {said}"
    )
    for warning in warned:
        typer.echo(f"warning: {warning.message}", err=True)
    _tell_if_ended(checkpoint)


def _length(text: str | None) -> str | int | None:
    """A duration in words, or ticks."""
    return int(text) if text is not None and text.strip().isdecimal() else text


def _tell_if_ended(checkpoint: str) -> None:
    """Who sends to a query that has ended should know."""
    from interpunct.spark.hints import Hints

    query = Hints(f"{checkpoint}/interpunct").query()
    if query is not None and not query.running:
        ended = "has not been heard of lately" if query.silent else "has ended"
        typer.echo(
            f"The query {ended}: nobody reads this until it is started again from the same "
            "checkpoint.", err=True,
        )  # fmt: skip
