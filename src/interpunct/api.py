"""Flow: what a user builds and runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from interpunct.engine.run import Result, run
from interpunct.engine.trace import Trace
from interpunct.flow.builder import FlowBuilder
from interpunct.progress.clock import Clock


class Flow(FlowBuilder):
    """A query graph: sources, operators, sinks.

    >>> import interpunct as ip
    >>> flow = ip.Flow("speeds")
    >>> cars = flow.source("cars", "ts timestamp, mph double", time=ip.external("ts"))
    >>> flow.sink("out", cars.where("mph > 50"))
    >>> rows = [("2024-05-01 09:00", 40.0), ("2024-05-01 09:01", 60.0)]
    """

    def run(
        self,
        feeds: Mapping[str, Any],
        *,
        clock: Clock | None = None,
        sinks: Mapping[str, Callable[[pl.DataFrame], None]] | None = None,
        trace: bool = False,
        cost: int = 0,
    ) -> Result:
        """Run in process until the feeds end.

        `clock` is real unless a ScriptedClock is given, which replays arrivals at once and always
        the same way; `cost` is what one step costs on it, in microseconds. `sinks` gives a sink a
        function to call with each frame; the others are collected in the result.
        """
        kept = Trace() if trace else None
        return run(self.graph, feeds, clock=clock, sinks=sinks, trace=kept, cost=cost)
