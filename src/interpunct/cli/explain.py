"""`interpunct explain`: what a flow would do, before anything runs."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from interpunct.api import Flow
from interpunct.cli.options import Json
from interpunct.cli.targets import load_flow
from interpunct.flow.feedback import explain_feedback, follow
from interpunct.flow.merge_nodes import in_process_only
from interpunct.flow.outline import Outline
from interpunct.flow.planner import stages
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
    as_json: Json = False,
) -> None:
    """The stages, lanes and operators of a flow; with --feedback, what each operator would do with
    a pattern.

    Example: interpunct explain speeds.py:flow --feedback "¬[segment=3, ts ≤ '2026-01-01 09:00:00']"
    """
    flow = load_flow(target)
    said = None if feedback is None else _spoken(flow, sink, feedback)
    if as_json:
        typer.echo(json.dumps(_told(flow, said, labels=labels), indent=2, ensure_ascii=False))
    elif said is None:
        typer.echo(flow.explain(labels=labels))
    else:
        typer.echo(explain_feedback(flow.graph, *said))


def _spoken(flow: Flow, sink: str | None, text: str) -> tuple[str, Feedback]:
    """The sink that speaks, the only one unless it is named, and what it says."""
    sinks = {n.name: n.streams[0].schema for n in flow.graph.sinks}
    where = next(iter(sinks)) if sink is None and len(sinks) == 1 else sink
    if where is None or where not in sinks:
        names = ", ".join(sinks)
        raise FeedbackError(
            "explain", f"the sink that speaks, one of {names}", where or "none",
            f"Add --sink {next(iter(sinks))}.",
        )  # fmt: skip
    return where, Feedback.parse(text, sinks[where])


def _told(flow: Flow, said: tuple[str, Feedback] | None, *, labels: bool) -> dict[str, Any]:
    """The same for programs: operators, stages, and what each operator would do."""
    graph = flow.graph
    told: dict[str, Any] = Outline.of(graph).to_json()
    cut = [] if in_process_only(graph) else stages(graph)
    told["stages"] = [
        {
            "nodes": stage.nodes,
            "keys": {str(ref): [str(key) for key in keys] for ref, keys in stage.keys.items()},
        }
        for stage in cut
    ]
    if labels:
        told["labels"] = {name: sorted(label) for name, label in flow.labels().items()}
    if said is not None:
        sink, feedback = said
        steps = follow(graph, sink, feedback.pattern)
        told["feedback"] = [
            {"node": s.node, "hears": str(s.pattern), "does": s.response and s.response.actions}
            for s in steps
        ]
    return told
