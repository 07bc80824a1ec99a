"""Order-preserving merge: the union of streams that are each already in order.

It is the merge step of a sort-merge join on streams (Punctuate section 4): it never reorders
within an input, so it refuses an input that is not known to be ordered. When an input is
intermittent or down, only punctuation on it lets the others pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from interpunct.model.errors import FlowError
from interpunct.operators.contract import Stream
from interpunct.operators.state import State
from interpunct.operators.union import Union


class Merge(Union):
    """Union that insists on ordered inputs."""

    def __init__(self, name: str, inputs: Sequence[Stream], state: State | None = None) -> None:
        for port, stream in enumerate(inputs):
            if not stream.properties.ordered:
                raise FlowError(
                    f"merge {name!r}, input {port}", "a stream in time order",
                    "one that may be disordered", "Sort it first, or use union, which reorders.",
                )  # fmt: skip
        super().__init__(name, inputs, state)
