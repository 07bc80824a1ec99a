"""`interpunct feedback`: tell a running flow what is no longer wanted, wanted first, or now."""

from __future__ import annotations

from typing import Annotated

import typer


def feedback(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint of a flow, as given to start.")],
    sink: Annotated[str, typer.Argument(help="The sink that speaks.")],
    text: Annotated[
        str, typer.Argument(help="~[…] (or ¬[…]) assumed, ?[…] desired, ![…] demanded.")
    ],
) -> None:
    """Send feedback to a flow that runs on Spark; its next batch carries it to every lane.

    Example: interpunct feedback ckpt/map map "~[segment ≠ 3, ts ≤ '2026-01-01 09:00:00']"
    """
    from interpunct.spark.channel import Channel, Message
    from interpunct.spark.hints import Hints

    channel = Channel.of(checkpoint)
    said = channel.parse(sink, text)
    channel.send(Message.of(sink, said))
    typer.echo(f"sent to {sink}: {said}")
    query = Hints(f"{checkpoint}/interpunct").query()
    if query is not None and not query.running:
        typer.echo(
            "The query has ended: nobody reads this until it is started again from the same "
            "checkpoint.", err=True,
        )  # fmt: skip
