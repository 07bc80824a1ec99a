"""What the studio shows of a merge is a merge on Spark: its replicas stop, come back and lie."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bokeh.document import Document
from pyspark.sql import SparkSession

from interpunct.spark.replica import merger_checkpoint
from interpunct.studio import demo
from interpunct.studio.access import Access
from interpunct.studio.exposition import exposition
from interpunct.studio.page import Page
from interpunct.studio.replicas import Bench
from interpunct.studio.room import Room
from interpunct.studio.watched import Attached

pytestmark = pytest.mark.slow
PATIENCE = 180  # seconds, on a machine that does much else


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Iterator[Bench]:
    paths = demo.record(demo.Traffic(seconds=600, vehicles_per_second=1), tmp_path)
    later = {"a": 0.0, "b": 1.0}
    bench = Bench(spark, tmp_path / "merge", paths["sensors"], later, "300 milliseconds")
    yield bench
    bench.close()


class Watching:
    """The page of the merge's own checkpoint, looked at again and again."""

    def __init__(self, bench: Bench) -> None:
        checkpoint = str(merger_checkpoint(bench.home))
        self.bench, self.room = bench, Room(Attached(checkpoint), Access(None), bench=bench)

    def until(self, what: Callable[[], bool]) -> None:
        wait = threading.Event()
        for _ in range(PATIENCE * 10):
            self.room.look()
            if not self.bench.doing and what():
                return
            wait.wait(0.1)
        raise AssertionError(f"{self.bench.merging.events}, {self.bench.trouble}")

    def status(self, name: str) -> str:
        now = self.bench.merging.now
        return "" if now is None or name not in now.inputs else now.inputs[name].status

    def stable(self, name: str) -> int:
        now = self.bench.merging.now
        assert now is not None
        return now.inputs[name].stable

    @property
    def leader(self) -> str | None:
        return None if self.bench.merging.now is None else self.bench.merging.now.leader


def test_a_merge_on_spark_is_seen_while_replicas_stop_come_back_and_lie(bench: Bench) -> None:
    seen = Watching(bench)
    page = Page(seen.room, Document(), "ann", True, "light")
    assert page.merge is not None
    page.merge.opened()
    seen.until(lambda: "joined" == seen.status("a") == seen.status("b") and bench.checked.rows > 0)

    # One that stops falls behind, and the other leads.
    page.merge._toggle("a")
    seen.until(lambda: "a" not in bench.running and seen.leader == "b")
    page.update()
    assert "its query is stopped" in page.merge.state.text
    assert page.merge.toggles["a"].label == "start a"
    stopped = seen.stable("a")

    # One that is started again goes on where it was, and catches up.
    page.merge._toggle("a")
    seen.until(lambda: "a" in bench.running and seen.stable("a") > stopped)

    # One that lies is not believed, and comes back by attaching anew.
    page.merge._lie("b")
    seen.until(lambda: seen.status("b") == "quarantined" and seen.leader == "a")
    page.update()
    assert "contradicts its own stable" in page.merge.state.text
    assert page.merge.toggles["b"].label == "start b anew"
    page.merge._toggle("b")
    seen.until(lambda: seen.status("b") == "joined")
    assert (bench.checked.missing, bench.checked.doubled) == (0, 0)
    assert bench.trouble == ""

    # Whoever has only the checkpoint sees the same, and can stop nothing.
    room = Room(Attached(str(merger_checkpoint(bench.home))), Access(None))
    room.look()
    attached = Page(room, Document(), "bob", True, "light")
    assert attached.merge is not None
    assert attached.merge.toggles == {}
    assert "logical merge R3 of 2 inputs" in attached.merge.state.text
    assert room.history.now is not None
    assert 'interpunct_input_joined{flow="",input="b"} 1.0' in exposition(room.history.now)
    # And so does whoever may not act, with buttons that do nothing.
    looking = Page(seen.room, Document(), "cec", False, "light")
    assert looking.merge is not None
    looking.merge._toggle("a")
    assert looking.merge.toggles["a"].disabled
    assert bench.doing == ""
