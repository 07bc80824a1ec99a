"""Sort (cleanse): a disordered stream put in order, as far as heartbeats allow.

    in:   4 2 ┃≤2┃ 6 3 5 ┃≤5┃         out:   2 ┃≤2┃ 3 4 5 ┃≤5┃

It is the union of one input, which holds back what the heartbeat has not covered.
"""

from __future__ import annotations

from interpunct.operators.contract import Stream
from interpunct.operators.state import State
from interpunct.operators.union import Union


class Sort(Union):
    """Buffers tuples until a heartbeat covers them; what leaves is in time order."""

    def __init__(self, name: str, stream: Stream, state: State | None = None) -> None:
        super().__init__(name, [stream], state)
