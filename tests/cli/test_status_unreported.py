"""`interpunct status` of queries for which nobody reports: what Spark's own log tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.waiting import SECOND, demo_flow, waiting
from typer.testing import CliRunner

from interpunct.cli.main import app
from interpunct.engine.vitals import QueryVitals
from interpunct.flow.outline import Outline
from interpunct.spark.hints import Hints
from interpunct.spark.reporter import seen

runner = CliRunner()


def begin(checkpoint: Path, batch: int, at: int) -> None:
    """What Spark writes before a batch."""
    folder = checkpoint / "offsets"
    folder.mkdir(exist_ok=True)
    head = {"batchWatermarkMs": 0, "batchTimestampMs": at * 1000, "conf": {}}
    (folder / str(batch)).write_text(f'v1\n{json.dumps(head)}\n{{"row": 3}}')
    (folder / f".{batch}.crc").write_text("crc")


def commit(checkpoint: Path, batch: int) -> None:
    folder = checkpoint / "commits"
    folder.mkdir(exist_ok=True)
    (folder / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


@pytest.fixture
def unreported(tmp_path: Path) -> Path:
    """The checkpoint of a query made of a DataFrame: its lanes tell, and nobody else."""
    hints = Hints(f"{tmp_path}/interpunct")
    hints.announce(Outline.of(demo_flow().graph))
    hints.report(0, 0, waiting())
    for batch, at in ((9, 90), (10, 101)):
        begin(tmp_path, batch, at)
        commit(tmp_path, batch)
    return tmp_path


def headline(checkpoint: Path) -> str:
    shown = runner.invoke(app, ["status", str(checkpoint)], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    return shown.stdout.splitlines()[0]


UNKNOWN = "Whether it runs is not known, since nobody reports for it."


def test_without_a_reporter_the_checkpoint_tells_of_batches(unreported: Path) -> None:
    heard = "; a source was last heard of at 1970-01-01 00:01:40. "
    assert headline(unreported) == (
        "By its checkpoint, 11 batches of this query are done, the last of which began at "
        f"1970-01-01 00:01:41{heard}{UNKNOWN}"
    )
    begin(unreported, 11, 120)
    assert headline(unreported) == (
        "By its checkpoint, 11 batches of this query are done, the last of which began at "
        f"1970-01-01 00:01:41; one that began at 1970-01-01 00:02:00 is not done{heard}{UNKNOWN}"
    )
    told = json.loads(runner.invoke(app, ["status", str(unreported), "--json"]).stdout)
    assert told["query"] is None
    assert told["logged"] == {
        "batches": 11,
        "began": "1970-01-01T00:01:41+00:00",
        "unfinished": "1970-01-01T00:02:00+00:00",
    }


def test_the_first_batch_is_not_done_before_it_is(tmp_path: Path) -> None:
    Hints(f"{tmp_path}/interpunct").announce(Outline.of(demo_flow().graph))
    begin(tmp_path, 0, 50)
    assert headline(tmp_path) == (
        "By its checkpoint, no batches of this query are done; one that began at "
        f"1970-01-01 00:00:50 is not done. {UNKNOWN}"
    )
    commit(tmp_path, 0)
    assert headline(tmp_path) == (
        "By its checkpoint, 1 batch of this query is done, which began at "
        f"1970-01-01 00:00:50. {UNKNOWN}"
    )


def test_a_log_that_cannot_be_read_still_counts(unreported: Path) -> None:
    (unreported / "offsets" / "10").write_text("v9\n{…")
    assert headline(unreported).startswith("By its checkpoint, 11 batches of this query are done; ")


def test_what_the_query_tells_goes_before_what_its_checkpoint_does(unreported: Path) -> None:
    Hints(f"{unreported}/interpunct").tell_query(QueryVitals(12, 100 * SECOND, 0.25, True))
    assert headline(unreported).startswith("The query runs: 12 batches")
    assert seen(str(unreported)).logged is None
