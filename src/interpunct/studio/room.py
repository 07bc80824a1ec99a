"""The room behind the page: one for a query, however many people look at it.

It looks at the query twice a second, remembers the last minutes, and says on behalf of all who look
what is not wanted. Pages only draw what is here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from interpunct.engine.vitals import Snapshot
from interpunct.flow.feedback import Length, over
from interpunct.model.errors import InterpunctError
from interpunct.model.feedback import Feedback
from interpunct.model.schema import START_OF_TIME
from interpunct.progress.clock import Clock, RealClock
from interpunct.studio.access import Access
from interpunct.studio.history import History
from interpunct.studio.map_view import MapView
from interpunct.studio.merging import Merging
from interpunct.studio.replicas import Bench
from interpunct.studio.watched import Watched

EVERY = 500  # milliseconds between two looks
MOST_SAID = 50


@dataclass(frozen=True)
class Said:
    """Feedback that was accepted from one sink."""

    sink: str
    feedback: Feedback
    text: str  # as it was written: said again, it replaces what was said before

    def __str__(self) -> str:
        return f"{self.feedback.intent.value}{self.feedback.pattern.by_name()}"


@dataclass
class Room:
    watched: Watched
    access: Access
    views: Sequence[MapView] = ()
    bench: Bench | None = None  # a merge whose inputs the page can stop and start
    about: str = ""  # what whoever looks at the sources should know
    clock: Clock = field(default_factory=RealClock)
    history: History = field(default_factory=History)
    said: deque[Said] = field(default_factory=lambda: deque(maxlen=MOST_SAID))
    assumed: list[Said] = field(default_factory=list)  # by anybody, as of the last look
    sent: int = 0
    trouble: str = ""  # why what was done last was refused
    unseen: str = ""  # why the last look saw nothing
    merging: Merging | None = None  # where a merge is watched

    def __post_init__(self) -> None:
        if self.bench is not None:
            self.merging = self.bench.merging

    def look(self) -> None:
        """One look at everything; what goes wrong is shown, not raised: the page goes on."""
        try:
            snapshot = self.watched.snapshot()
            assumed = self.watched.in_force()
        except (InterpunctError, OSError) as error:
            self.unseen = str(error)
            return
        self.unseen = ""
        self.assumed = [Said(sink, f, "") for sink, all_of in assumed.items() for f in all_of]
        self.history.add(snapshot)
        self._look_at_merge(snapshot)
        for view in self.views:
            reached = snapshot.reached.get(view.sink, START_OF_TIME)
            batch = 0 if snapshot.query is None else round(snapshot.query.seconds * 1e6)
            due = view.zoom.due(reached, batch) if reached > START_OF_TIME else None
            if due is not None:
                self.trouble = self._tell(view.sink, *due) or self.trouble

    def _look_at_merge(self, snapshot: Snapshot) -> None:
        merge = snapshot.merge if self.bench is None else self.bench.look()
        if merge is not None:
            self.merging = self.merging or Merging()
            self.merging.add(snapshot.at, merge)

    def send(self, sink: str, text: str, lasting: Length | None) -> bool:
        """Feedback from someone in front of the page; False when it is refused, and says why."""
        self.trouble = self._tell(sink, text, lasting)
        return not self.trouble

    def _tell(self, sink: str, text: str, lasting: Length | None) -> str:
        """Why it is refused; nothing when it is not."""
        try:
            accepted = self.watched.send(sink, text, lasting)
        except (InterpunctError, OSError) as error:
            return str(error)
        self.sent += 1
        self.said.append(Said(sink, accepted, text))
        return ""

    def in_force(self) -> list[Said]:
        """What still holds of all that was said here, the last first, and then what others said."""
        now = self.history.now
        reached = {} if now is None else now.reached
        at = {said.sink: reached.get(said.sink, START_OF_TIME) for said in self.said}
        last = {(said.sink, said.text): said for said in self.said}
        holding = [s for s in self.said if s is last[s.sink, s.text]]
        mine = {(said.sink, str(said)) for said in self.said}
        others = [s for s in self.assumed if (s.sink, str(s)) not in mine]
        return [s for s in reversed(holding) if not over(s.feedback, at[s.sink])] + others

    def leave(self, who: str) -> None:
        """Someone has gone: what only he wanted is not wanted any more."""
        for view in self.views:
            view.zoom.leave(who)
