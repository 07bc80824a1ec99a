"""`interpunct explain`: what a flow would do, before anything runs."""

from __future__ import annotations

from typing import Annotated

import typer

from interpunct.cli.targets import load_flow
from interpunct.flow.feedback import explain_feedback
from interpunct.model.errors import FeedbackError
from interpunct.model.feedback import Feedback


def explain(
    target: Annotated[str, typer.Argument(help="file.py:flow or module:flow.")],
    feedback: Annotated[
        str | None,
        typer.Option("--feedback", help="Such as \"¬[segment=3, ts ≤ '2026-01-01 09:00:00']\"."),
    ] = None,
    sink: Annotated[
        str | None, typer.Option(help="Where the feedback enters, if there are several sinks.")
    ] = None,
    labels: Annotated[
        bool, typer.Option("--labels", help="Which sources each operator waits for.")
    ] = False,
) -> None:
    """The stages, lanes and operators of a flow; with --feedback, what each operator would do with
    a pattern.

    Example: interpunct explain speeds.py:flow --feedback "¬[segment=3, ts ≤ '2026-01-01 09:00:00']"
    """
    flow = load_flow(target)
    if feedback is None:
        typer.echo(flow.explain(labels=labels))
        return
    sinks = {n.name: n.streams[0].schema for n in flow.graph.sinks}
    where = next(iter(sinks)) if sink is None and len(sinks) == 1 else str(sink)
    if where not in sinks:
        raise FeedbackError("explain", f"--sink, one of {', '.join(sinks)}", where, "Name one.")
    typer.echo(explain_feedback(flow.graph, where, Feedback.parse(feedback, sinks[where])))
