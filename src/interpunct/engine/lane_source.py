"""Where streams enter a lane.

In a lane tuples come in batches, and a batch has no order inside: all its tuples arrive at one
moment, the batch's time. What the whole stream did in the batch is told to every lane as facts,
so every lane gives the same heartbeats, whatever tuples it got itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from interpunct.model.attribute_map import AttributeMap
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME, TimeKind
from interpunct.operators.contract import Emission, Stream
from interpunct.operators.source import Source, SourceOperator
from interpunct.operators.state import Record, State
from interpunct.progress.source_time import NotBefore


@dataclass
class Facts:
    """What a whole stream did in one batch: the same for every lane. `late` holds a sketch from
    each task that could tell how late its tuples were, `studied` how many tuples those had."""

    rows: int = 0
    greatest: int | None = None
    least: int | None = None
    studied: int = 0
    late: list[bytes] = field(default_factory=list)

    def add(
        self,
        rows: int,
        greatest: int | None,
        least: int | None = None,
        late: bytes | None = None,
    ) -> None:
        self.rows += rows
        if greatest is not None:
            self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)
        if least is not None:
            self.least = least if self.least is None else min(self.least, least)
        if late is not None:
            self.studied += rows
            self.late.append(late)


class LaneSource(Source):
    """A source of the flow, as one lane sees it."""

    def on_batch(self, frames: Sequence[pl.DataFrame], facts: Facts) -> Emission:
        """This lane's tuples of a batch, and what the whole stream did in it."""
        now, rows, greatest = self._clock.now(), facts.rows, facts.greatest
        kind = self.time.spec.kind
        stamp = self.time.stamp(now)
        emission = self._entered(stacked(frames), stamp) if frames else Emission()
        if kind is TimeKind.LATENT:
            return emission
        if rows and kind is TimeKind.INTERNAL:
            greatest = stamp
        before = self.time.greatest
        if greatest is not None:
            if self.time.learned is not None and facts.least is not None and facts.late:
                # The parts come in any order: sorted, every lane merges them in the same one.
                self.time.learn(facts.studied, facts.least, greatest, sorted(facts.late), now)
            self.time.observe(greatest, now)
        emission.extend(self._speak(self.time.mature(now)))
        emission.extend(self._speak(self._enabling(now)))
        if self.time.greatest > before and self.outputs[0].properties.ordered:
            emission.extend(self.heartbeat(self.time.greatest - 1))  # what order itself promises
        return emission

    def _entered(self, frame: pl.DataFrame, stamp: int) -> Emission:
        kind = self.time.spec.kind
        if kind is TimeKind.LATENT:
            return self.tuples(frame)
        if kind is TimeKind.INTERNAL:
            return self.tuples(self._stamped(frame, stamp))
        sound = self._checked(frame)
        emission = self.tuples(sound.frame.sort(self.output.ordered_by, maintain_order=True))
        for late in sound.late:
            emission.extend(self.tuples(late, port=1))
        return emission

    def _reached(self, frame: pl.DataFrame) -> pl.Series:
        """Within a batch there is no order to break: only what came before counts."""
        return pl.repeat(self.time.greatest, frame.height, dtype=pl.Int64, eager=True)

    def _enabling(self, now: int) -> int | None:
        """An enabling timestamp without being asked, so that all lanes give the same one."""
        answer = self.time.demand(self.time.given + 1, now)
        return None if answer is None or isinstance(answer, NotBefore) else self.time.give(answer)


class Entry(SourceOperator):
    """A stream that comes from the lanes of an earlier stage.

    Its heartbeat is the least of what those lanes have said; each says something every batch.
    """

    def __init__(self, name: str, stream: Stream, lanes: int, state: State | None = None) -> None:
        super().__init__(name, [], [stream], AttributeMap.identity(stream.schema), state)
        initial = {"heard": [START_OF_TIME] * lanes, "given": START_OF_TIME}
        self._record = Record(self.state, "entry", initial)

    def on_batch(self, pages: Sequence[tuple[int, Page]]) -> Emission:
        """Pages of one batch, each from a lane of the stage before."""
        frames = [page.frame for _, page in pages if page.height]
        emission = Emission()
        if frames:
            emission = self.tuples(self._in_order(stacked(frames)))
        if self.output.time is None:
            return emission
        heard: list[int] = list(self._record["heard"])
        for lane, page in pages:
            for heartbeat in (p.heartbeat_ticks for p in page.punctuations):
                if heartbeat is not None:
                    heard[lane] = max(heard[lane], heartbeat)
        self._record["heard"] = heard
        if min(heard) > self._record["given"]:
            self._record["given"] = min(heard)
            emission.extend(self.heartbeat(min(heard)))
        return emission

    def _in_order(self, frame: pl.DataFrame) -> pl.DataFrame:
        if not self.outputs[0].properties.ordered:
            return frame
        return frame.sort(self.output.ordered_by, maintain_order=True)

    def wake_at(self) -> None:
        return None

    def on_wake(self) -> Emission:
        return Emission()

    def on_page(self, port: int, page: Page) -> Emission:
        raise AssertionError(f"{self.name} takes batches, not a page of {page.height} on {port}")

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        raise AssertionError(f"{self.name} takes batches, not {punctuation} on {port}")

    def save(self) -> None:
        self._record.save()
