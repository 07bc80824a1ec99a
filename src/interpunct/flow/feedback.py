"""Feedback from people and programs: checked where it enters, and followed through a flow.

    query.feedback("map", "¬[segment ∉ {3, 4, 5}]", lasting="2m")      someone zoomed in

A `Desk` takes feedback for the sinks of a flow, and other programs hand it in at the channel of a
query. `judged` decides for both: it refuses what names unknown attributes, what contradicts
something said before, a demand that nobody answers, and what would leave guards behind for ever,
because no punctuation ever covers it (Feedback section 4.4). `follow` tells, before anything runs,
what each operator would do with a pattern: the tables of all operators, read from the sink upwards.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from interpunct.flow.graph import Graph
from interpunct.flow.nodes import Ref
from interpunct.model.durations import duration
from interpunct.model.errors import FeedbackError
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME, Schema
from interpunct.model.ticks import stretch, within
from interpunct.operators.responses import Response

Length = str | timedelta | int
MOST_UNDELIMITED = 16  # feedback without an end in time that a sink accepts when asked to


@dataclass(frozen=True)
class Step:
    """What one operator would do with feedback about one of its outputs; None: it is unaware."""

    node: str
    port: int
    pattern: Pattern
    response: Response | None


def follow(graph: Graph, node: str, pattern: Pattern, port: int = 0) -> Iterator[Step]:
    """The way of assumed feedback through a flow, from a node upwards.

    It ends where an operator propagates nothing, where all of several readers would have to say
    the same, and at the sources.
    """
    response = graph.nodes[node].prototype.characterise(pattern, port)
    yield Step(node, port, pattern, response)
    if response is None or response.when:
        return
    for entry, told in response.propagate.items():
        inputs = graph.nodes[node].inputs
        if entry < len(inputs) and _readers(graph, inputs[entry]) == 1:
            yield from follow(graph, inputs[entry].node, told, inputs[entry].port)


def explain_feedback(graph: Graph, sink: str, feedback: Feedback) -> str:
    """The tables of all operators for one pattern, as text."""
    lines = [f"{feedback} at {sink}"]
    for step in follow(graph, sink, feedback.pattern):
        kind = graph.nodes[step.node].kind
        said = "unaware: ignores it" if step.response is None else step.response.actions
        case = "" if step.response is None else f" {step.response.case}"
        lines.append(f"  {step.node} ({kind}){case}: {said}")
        lines += [f"    {name} is not told: {why}" for name, why in _untold(graph, step)]
    if feedback.intent is Intent.ASSUMED and not delimited(feedback.pattern):
        end = f"has no end in {feedback.pattern.schema.time or 'time'}"
        lines.append(f"It {end}, so it is refused, unless sent as lasting=… or undelimited.")
    return "\n".join(lines)


def _untold(graph: Graph, step: Step) -> Iterator[tuple[str, str]]:
    """The inputs at which assumed feedback ends, and why."""
    if step.response is None:
        return
    for entry, ref in enumerate(graph.nodes[step.node].inputs):
        if entry not in step.response.propagate:
            yield ref.node, "of its tuples alone nothing follows that could be left out"
        elif step.response.when:
            yield ref.node, f"only {step.response.when}"
        elif _readers(graph, ref) != 1:
            yield ref.node, "others read it too, and all of them would have to say the same"


def delimited(pattern: Pattern) -> bool:
    """Whether punctuation will cover the pattern one day: it ends in time."""
    time = pattern.schema.time
    if time is None:
        return False
    ticks = stretch(pattern.condition(time))
    return ticks is not None and ticks[1] is not None


def over(feedback: Feedback, reached: int) -> bool:
    """Whether it speaks of nothing that is still to come, now that its sink has come to this
    heartbeat; a demand was for one moment."""
    if feedback.intent is Intent.DEMANDED:
        return True
    schema = feedback.schema
    if schema.time is None or reached <= START_OF_TIME:
        return False
    return feedback.pattern.implies(Punctuation.heartbeat(schema, reached).pattern)


def ending(feedback: Feedback, sink: str, reached: int, lasting: Length) -> Feedback:
    """The feedback, for so long after what its sink has reached."""
    schema = feedback.schema
    if schema.time is None or reached <= START_OF_TIME:
        raise FeedbackError(
            f"feedback for sink {sink!r}", "a stream whose time has begun with lasting=…",
            "no heartbeat yet" if schema.time else "a stream without time",
            "Bound the time in the pattern itself, or wait for the first results; blame() says "
            "for which source they wait.",
        )  # fmt: skip
    end = reached + duration(lasting, f"feedback for sink {sink!r}")
    until = Pattern(schema, {schema.time: within(schema, None, end)})
    return Feedback(feedback.intent, feedback.pattern.intersect(until))


@dataclass(frozen=True)
class Voice:
    """What must be known of a sink to judge what it says: its schema, and whether somebody upstream
    answers demands; None where that is not known, and then demands pass."""

    schema: Schema
    answered: bool | None = None


def voices(graph: Graph) -> dict[str, Voice]:
    """The sinks of a flow, by their names."""
    return {
        n.name: Voice(
            n.streams[0].schema, any(_answers(graph, m) for m in _upstream(graph, n.name))
        )
        for n in graph.sinks
    }


def voice_of(known: Mapping[str, Voice], sink: str) -> Voice:
    """The sink of this name, or an error with those that there are."""
    if sink not in known:
        names = ", ".join(known)
        raise FeedbackError("feedback", f"one of the sinks {names}", repr(sink), "Name one.")
    return known[sink]


def judged(
    voice: Voice,
    sink: str,
    feedback: str | Feedback,
    before: Sequence[Feedback] = (),
    *,
    reached: int = START_OF_TIME,
    lasting: Length | None = None,
    undelimited: bool = False,
) -> Feedback:
    """Feedback for a sink that has come to the heartbeat `reached` as it is accepted, or an error;
    `before` is what the sink has said and still holds.

    `lasting` ends it in time: so long after what the sink has reached. `undelimited` accepts, with
    a warning and up to a cap, what no punctuation will ever cover.
    """
    heard = Feedback.parse(feedback, voice.schema) if isinstance(feedback, str) else feedback
    if lasting is not None:
        heard = ending(heard, sink, reached, lasting)
    _check_sense(sink, heard, before)
    if heard.intent is Intent.ASSUMED:
        _check_end(sink, heard, before, undelimited)
    elif heard.intent is Intent.DEMANDED and voice.answered is False:
        raise _unanswered(sink, heard)
    return heard


@dataclass
class Desk:
    """Where feedback for the sinks of a flow is handed in."""

    graph: Graph
    said: dict[str, list[Feedback]] = field(default_factory=dict)  # by sink, still in force

    def take(
        self,
        sink: str,
        feedback: str | Feedback,
        *,
        reached: int = START_OF_TIME,
        lasting: Length | None = None,
        undelimited: bool = False,
    ) -> Feedback:
        """Checked feedback for a sink that has come to the heartbeat `reached`, or an error; see
        `judged`."""
        voice = voice_of(self._voices, sink)
        self.reached(sink, reached)
        before = self.said.setdefault(sink, [])
        heard = judged(
            voice, sink, feedback, before, reached=reached, lasting=lasting, undelimited=undelimited
        )
        before.append(heard)
        return heard

    def reached(self, sink: str, heartbeat: int) -> None:
        """A sink has come this far: what spoke of earlier tuples alone is over, and so is every
        demand, which was for one moment."""
        schema = voice_of(self._voices, sink).schema
        if schema.time is None or heartbeat <= START_OF_TIME:
            return
        self.said[sink] = [f for f in self.said.get(sink, ()) if not over(f, heartbeat)]

    @cached_property
    def _voices(self) -> dict[str, Voice]:
        return voices(self.graph)


def _check_sense(sink: str, feedback: Feedback, before: Sequence[Feedback]) -> None:
    where = f"feedback for sink {sink!r}"
    if feedback.pattern.is_empty:
        raise FeedbackError(where, "a pattern that some tuple matches", str(feedback),
                            "Look for conditions that exclude each other.")  # fmt: skip
    if feedback.intent is Intent.ASSUMED:
        return
    for earlier in before:
        if earlier.intent is Intent.ASSUMED and feedback.pattern.implies(earlier.pattern):
            raise FeedbackError(
                where, "a wish for tuples that have not been assumed away",
                f"{feedback} after {earlier}",
                "What is assumed away stays away; wish for something else.",
            )  # fmt: skip


def _check_end(
    sink: str, feedback: Feedback, before: Sequence[Feedback], undelimited: bool
) -> None:
    """Feedback must be subordinate to what punctuation can bound (section 4.4)."""
    if delimited(feedback.pattern):
        return
    where = f"feedback for sink {sink!r}"
    if not undelimited:
        raise FeedbackError(
            where, "a pattern that ends in time, which punctuation will cover one day",
            str(feedback),
            _ways_out(feedback.schema.time),
        )  # fmt: skip
    endless = [f for f in before if f.intent is Intent.ASSUMED and not delimited(f.pattern)]
    if len(endless) >= MOST_UNDELIMITED:
        raise FeedbackError(
            where, f"at most {MOST_UNDELIMITED} patterns without an end", str(feedback),
            "The result has changed for good: start a query that does not compute the rest.",
        )  # fmt: skip
    warnings.warn(
        f"{where}: no punctuation covers {feedback}, so its guards stay for ever.",
        stacklevel=5,
    )


def _ways_out(time: str | None) -> str:
    """What to do about a pattern without an end."""
    stay = "undelimited=True (--undelimited) accepts guards that stay for ever."
    if time is None:
        return stay
    return f"Bound it in time: {time} ≤ '…', or lasting='5m' (--lasting 5m). Or {stay}"


def _unanswered(sink: str, feedback: Feedback) -> FeedbackError:
    """A demand needs somebody who answers it."""
    return FeedbackError(
        f"feedback for sink {sink!r}", "an operator upstream that answers demands",
        f"{feedback}, which nobody does",
        "Read the partial results of an aggregate, flow.sink('now', average.partial), "
        "or keep results until they are asked for with stream.poll(keep='10m').",
    )  # fmt: skip


def _upstream(graph: Graph, node: str) -> set[str]:
    """All nodes that lead to a node."""
    found, waiting = set[str](), [node]
    while waiting:
        read = {ref.node for ref in graph.nodes[waiting.pop()].inputs} - found
        found |= read
        waiting += read
    return found


def _answers(graph: Graph, name: str) -> bool:
    node = graph.nodes[name]
    if node.kind == "poll":
        return True
    return node.kind == "aggregate" and _readers(graph, Ref(name, 1)) > 0


def _readers(graph: Graph, ref: Ref) -> int:
    return sum(1 for port, _, _ in graph.consumers(ref.node) if port == ref.port)
