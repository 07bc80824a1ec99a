"""The operator reference, written by the operators themselves.

    python -m interpunct.flow.reference > docs/operators.md

Each operator of `specimens.py` is built as a flow would build it, asked for its feedback table
(Feedback section 4.3), and given a few tuples and a punctuation to see what it keeps and passes on.
So the page cannot say of an operator what it does not do.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from interpunct.flow.builder import FlowBuilder
from interpunct.flow.merge_nodes import revisable
from interpunct.flow.nodes import Context, Node
from interpunct.flow.specimens import ENTRIES, Entry
from interpunct.model.late import is_late
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.operators import lmerge
from interpunct.operators.contract import Emission, Operator
from interpunct.operators.lmerge import LogicalMerge
from interpunct.operators.source import SourceOperator

TIMES = (10, 30, 50)  # of the tuples that an operator is tried with
HEARTBEAT = 100

HEAD = """# Operators

What does each operator keep, what does it do with a punctuation, and what would it do if told that
some tuples are not wanted? This page is printed by the operators (`python -m
interpunct.flow.reference`), so it is what they do. *Tried* means: with three tuples stamped 10, 30
(whose speed is null) and 50 on the first input, then the heartbeat 100 on all inputs, and in
another run the punctuation `[segment=3]` on all inputs. In the feedback tables a *guard* keeps
tuples out, *purge* drops what is held, *propagate* tells the operators before it; `¬` and the
notation are explained in [Telling upstream what you want](feedback.md).
"""


def reference() -> str:
    """The page, in Markdown."""
    return "\n".join([HEAD, *map(section, ENTRIES)])


def section(entry: Entry) -> str:
    """One operator: what it does, what it keeps and passes on, and its feedback table.

    >>> from interpunct.flow.specimens import ENTRIES
    >>> print(section(ENTRIES[1]).splitlines()[0])
    ## where
    """
    flow = FlowBuilder("specimen")
    node = flow.nodes[entry.build(flow)]
    lines = [f"## {entry.name}", "", *_called(entry), _said_of(node.prototype), ""]
    lines += [f"- **holds** {entry.holds}", f"- **punctuation** {entry.passes}"]
    lines += [f"- **output** {_outputs(node)}"]
    tried = list(_tried(node))
    lines += [f"- **tried** {'; '.join(tried)}"] if tried else []
    lines += [f"- {entry.note}"] if entry.note else []
    return "\n".join([*lines, "", *_table(entry, node.prototype), ""])


def _called(entry: Entry) -> list[str]:
    """The call as a user writes it, with its arguments."""
    if inspect.isclass(entry.call):
        return []
    on = "flow" if entry.call.__qualname__.startswith(FlowBuilder.__name__) else "stream"
    return [f"`{on}.{entry.call.__name__}{_arguments(entry.call)}`", ""]


def _arguments(call: Callable[..., Any]) -> str:
    parameters = [p for n, p in inspect.signature(call).parameters.items() if n != "self"]
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return str(inspect.Signature(bare))


def _said_of(operator: Operator) -> str:
    """The first sentences of the operator's own module, or of the class where they share one."""
    merges = isinstance(operator, LogicalMerge)
    text = inspect.getdoc(lmerge if merges else inspect.getmodule(type(operator))) or ""
    return " ".join(text.split("\n\n")[0].split())


def _outputs(node: Node) -> str:
    if not node.outputs:
        return "none"
    notes = [str(node.outputs[0].properties)]
    notes += ["may idle-wait"] if node.prototype.idle_waiting else []
    notes += ["needs its input in order"] if node.prototype.order_sensitive else []
    notes += ["a late output" if is_late(o.schema) else "another output" for o in node.outputs[1:]]
    return "; ".join(notes)


def _tried(node: Node) -> Iterator[str]:
    """What was seen of it, on streams of tuples; revisable ones have elements, not punctuation."""
    fresh = node.build(Context())
    if isinstance(fresh, SourceOperator) or any(revisable(s.schema) for s in fresh.inputs):
        return
    schema = fresh.inputs[0].schema
    fresh.accept(0, Page(schema, _rows(schema.polars)))
    before = fresh.held()
    promised = _promised(fresh, [Punctuation.heartbeat(s.schema, HEARTBEAT) for s in fresh.inputs])
    after = fresh.held()
    yield f"{before.tuples} rows held before the heartbeat, {after.tuples} after"
    if not fresh.outputs or revisable(fresh.output):
        return
    yield f"the heartbeat {promised}"
    if all("segment" in s.schema for s in fresh.inputs):
        other = node.build(Context())
        said = [Punctuation.parse("[segment=3]", s.schema) for s in other.inputs]
        yield f"`[segment=3]` {_promised(other, said)}"


def _promised(operator: Operator, said: list[Punctuation]) -> str:
    """The last punctuation on output 0 after each input has had one."""
    emission = Emission()
    for port, punctuation in enumerate(said):
        schema = operator.inputs[port].schema
        emission.extend(operator.accept(port, Page(schema, schema.empty(), (punctuation,))))
    found = [p for port, page in emission.pages if port == 0 for p in page.punctuations]
    return f"goes on as `{found[-1]}`" if found else "stays here"


def _rows(columns: dict[str, Any]) -> pl.DataFrame:
    """Three tuples: segments 1 to 3, speeds and times."""
    values: dict[str, list[Any]] = {"segment": [1, 2, 3], "speed": [45.0, None, 65.0]}
    data = {name: values.get(name, list(TIMES)) for name in columns}
    return pl.DataFrame(data, schema=columns)


def _table(entry: Entry, operator: Operator) -> Iterator[str]:
    """The rows of its own table for the patterns that were asked for."""
    yield "| assumed away | case | what it does |"
    yield "|---|---|---|"
    for asked in entry.asked:
        text, port = (asked, 0) if isinstance(asked, str) else asked
        schema = operator.outputs[port].schema if operator.outputs else operator.inputs[0].schema
        response = operator.characterise(Pattern.parse(text, schema), port)
        where = f" of output {port}" if port else ""
        case = "" if response is None else f"`{response.case}`"
        does = "ignores it" if response is None else _ticked(response.actions)
        yield f"| `¬{text}`{where} | {case} | {does} |"


def _ticked(actions: str) -> str:
    """Patterns set as code: they begin with a bracket and end with one."""
    return actions.replace("[", "`[").replace("]", "]`")


if __name__ == "__main__":
    sys.stdout.write(reference())
