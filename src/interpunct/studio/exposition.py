"""What can be seen of a flow, in the text format of Prometheus.

>>> from interpunct.engine.vitals import OperatorVitals, Snapshot, Vitals
>>> seen = Snapshot(0, None, Vitals({"average": OperatorVitals(held=18, guards=1, skipped=4)}))
>>> [line for line in exposition(seen).splitlines() if line.startswith("interpunct_skipped")]
['interpunct_skipped_tuples_total{flow="",operator="average"} 4.0']
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from interpunct.engine.vitals import Snapshot
from interpunct.model.schema import LAST_YEAR, START_OF_TIME
from interpunct.operators.lmerge_base import JOINED

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(snapshot: Snapshot) -> str:
    """All metrics of a flow, for a collector of text files or for a scrape."""
    registry = CollectorRegistry()
    registry.register(_Collected(snapshot))
    return generate_latest(registry).decode()


class _Collected(Collector):
    """The metrics of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._seen = snapshot
        self._flow = "" if snapshot.outline is None else snapshot.outline.flow

    def collect(self) -> Iterator[Metric]:
        yield from self._operators()
        yield from self._sources()
        yield from self._waiting()
        yield from self._query()
        yield from self._merge()

    def _operators(self) -> Iterator[Metric]:
        held = self._gauge("held_tuples", "Tuples that an operator holds.", "operator")
        guards = self._gauge("guards", "Guards that feedback has installed.", "operator")
        skipped = self._counter("skipped_tuples", "Tuples that feedback has spared.", "operator")
        made = self._counter("made_tuples", "Tuples that an output has made.", "operator", "output")
        for name, vitals in self._seen.vitals.operators.items():
            held.add_metric([self._flow, name], vitals.held)
            guards.add_metric([self._flow, name], vitals.guards)
            skipped.add_metric([self._flow, name], vitals.skipped)
            for port, count in enumerate(vitals.made):
                made.add_metric([self._flow, name, str(port)], count)
        yield from (held, guards, skipped, made)

    def _sources(self) -> Iterator[Metric]:
        rows = self._counter("source_rows", "Rows that a source has sent.", "source")
        late = self._counter("late_tuples", "Tuples that came after their time.", "source")
        beat = self._gauge("heartbeat_timestamp_seconds", "The time a source promised.", "source")
        heard = self._gauge("heard_timestamp_seconds", "When a source was last heard.", "source")
        for name, vitals in self._seen.vitals.sources.items():
            rows.add_metric([self._flow, name], vitals.rows)
            late.add_metric([self._flow, name], vitals.late)
            if vitals.finished and vitals.clocked:
                beat.add_metric([self._flow, name], math.inf)
            elif vitals.reached is not None and vitals.clocked:
                beat.add_metric([self._flow, name], vitals.reached / 1e6)
            if vitals.heard is not None:
                heard.add_metric([self._flow, name], vitals.heard / 1e6)
        yield from (rows, late, beat, heard)

    def _waiting(self) -> Iterator[Metric]:
        said = "How far the source that an operator waits for is behind what it needs."
        behind = self._gauge("behind_ticks", said, "operator", "source")
        for line in self._seen.vitals.waiting:
            if line.behind is not None:
                behind.add_metric([self._flow, line.operator, line.source], line.behind)
        yield behind

    def _query(self) -> Iterator[Metric]:
        query, lag = self._seen.query, self._seen.lag
        if query is not None:
            batches = self._counter("batches", "Batches that the query has run.")
            batches.add_metric([self._flow], query.batches)
            seconds = self._gauge("batch_seconds", "How long its last batch took.")
            seconds.add_metric([self._flow], query.seconds)
            running = self._gauge("running", "Whether it runs, and has been heard of lately.")
            running.add_metric([self._flow], query.running)
            yield from (batches, seconds, running)
        if lag is not None:
            behind = self._gauge("lag_seconds", "How far results are behind the clock.")
            behind.add_metric([self._flow], lag / 1e6)
            yield behind

    def _merge(self) -> Iterator[Metric]:
        merge = self._seen.merge
        if merge is None:
            return
        said = "How far an input of a merge is stable."
        stable = self._gauge("input_stable_timestamp_seconds", said, "input")
        leads = self._gauge("input_leads", "Whether an input leads the merge.", "input")
        joined = self._gauge("input_joined", "Whether the merge counts on an input.", "input")
        for name, seen in merge.inputs.items():
            if merge.clocked and START_OF_TIME < seen.stable < LAST_YEAR:
                stable.add_metric([self._flow, name], seen.stable / 1e6)
            leads.add_metric([self._flow, name], name == merge.leader)
            joined.add_metric([self._flow, name], seen.status == JOINED)
        yield from (stable, leads, joined)

    @staticmethod
    def _gauge(name: str, said: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"interpunct_{name}", said, labels=["flow", *labels])

    @staticmethod
    def _counter(name: str, said: str, *labels: str) -> CounterMetricFamily:
        return CounterMetricFamily(f"interpunct_{name}", said, labels=["flow", *labels])
