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
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.frames import stacked
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import START_OF_TIME, TimeKind
from interpunct.operators.contract import Emission, Stream
from interpunct.operators.responses import Response, at_output
from interpunct.operators.source import Source, SourceOperator
from interpunct.operators.state import Record, State
from interpunct.operators.tsm import put_in_order
from interpunct.progress.source_time import NotBefore
from interpunct.progress.spread import Spread


@dataclass
class Facts:
    """What a whole stream did in one batch: the same for every lane. `spreads` has the times that
    each task read, where lateness is learned, by the stream they came on (0 unless several streams
    tell one time)."""

    rows: int = 0
    greatest: int | None = None
    least: int | None = None
    spreads: dict[int, list[Spread]] = field(default_factory=dict)

    def add(
        self,
        rows: int,
        greatest: int | None,
        least: int | None = None,
        behind: bytes | None = None,
        stream: int = 0,
    ) -> None:
        """What one task saw; `behind` is the sketch of a `Spread`."""
        self.rows += rows
        if greatest is not None:
            self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)
        if least is not None:
            self.least = least if self.least is None else min(self.least, least)
        if behind is not None and greatest is not None:
            self.spreads.setdefault(stream, []).append(Spread(greatest, behind))


class Border(SourceOperator):
    """Where a stream enters the lane: feedback about it is for others, who hear it later."""

    _upstream: list[Feedback] | None = None

    def on_feedback(self, feedback: Feedback, port: int = 0) -> Emission:
        assumed = feedback.intent is Intent.ASSUMED
        if port == 0 and not (assumed and self.guards.outputs[0].covers(feedback.pattern)):
            self._upstream = [*(self._upstream or ()), feedback]
        return super().on_feedback(feedback, port)

    def said(self) -> list[Feedback]:
        """What was said since this was last asked."""
        said, self._upstream = self._upstream or [], None
        return said


class LaneSource(Border, Source):
    """A source of the flow, as one lane sees it."""

    unproven: int | None = None  # when it would have to be caught up for someone here to go on

    def told_of_silence(self, idle: int | None, blocked: int | None) -> None:
        """Before a batch: when all that the source had was read, if that is known, and when it had
        something that was not."""
        self.unproven = None
        if idle is not None:
            self.time.prove(idle)
        if blocked is not None:
            self.time.block(blocked)

    def on_demand(self, wanted: int) -> Emission | NotBefore:
        answer = super().on_demand(wanted)
        moment = None if answer else self.time.provable_at(wanted)
        if moment is not None:
            self.unproven = moment if self.unproven is None else min(self.unproven, moment)
        return answer

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
            if self.time.learned is not None:
                self.time.learn(facts.spreads, now)
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

    def _limit(self, frame: pl.DataFrame) -> pl.Series:
        """For the same reason, the heartbeat given before the batch."""
        return pl.repeat(self.time.given, frame.height, dtype=pl.Int64, eager=True)

    def _enabling(self, now: int) -> int | None:
        """An enabling timestamp without being asked, so that all lanes give the same one."""
        answer = self.time.demand(self.time.given + 1, now)
        return None if answer is None or isinstance(answer, NotBefore) else self.time.give(answer)


class Entry(Border):
    """A stream that comes from the lanes of an earlier stage.

    Its heartbeat is the least of what those lanes have said; each says something every batch.
    """

    def __init__(self, name: str, stream: Stream, lanes: int, state: State | None = None) -> None:
        super().__init__(name, [], [stream], AttributeMap.identity(stream.schema), state)
        initial = {"heard": [START_OF_TIME] * lanes, "given": START_OF_TIME}
        self._record = Record(self.state, "entry", initial)

    def characterise(self, pattern: Pattern, port: int) -> Response:
        """It is not let in here, and the stage before is told."""
        return at_output("¬[…]", pattern, port)

    def on_batch(self, pages: Sequence[tuple[int, Page]]) -> Emission:
        """Pages of one batch, each from a lane of the stage before."""
        frames = [page.frame for _, page in pages if page.height]
        emission = Emission()
        if frames:
            ordered = self.outputs[0].properties.ordered
            emission = self.tuples(
                put_in_order(self.output, frames) if ordered else stacked(frames)
            )
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

    def wake_at(self) -> None:
        return None

    def on_wake(self) -> Emission:
        return Emission()

    def on_page(self, port: int, page: Page) -> Emission:
        raise AssertionError(f"{self.name} takes batches, not a page of {page.height} on {port}")

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Emission:
        raise AssertionError(f"{self.name} takes batches, not {punctuation} on {port}")

    def _save(self) -> None:
        self._record.save()
