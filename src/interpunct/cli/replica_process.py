"""What the processes of a replicated query run: a replica of a job, or the merger of all of them.

    python -m interpunct.cli.replica_process replica HOME JOB NAME
    python -m interpunct.cli.replica_process merger HOME JOB

A job is a Python file with `flow()`, which returns a Flow with one sink, and
`feeds(spark, replica)`, which returns its streaming DataFrames by source.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interpunct.api import Flow, session
from interpunct.model.errors import FlowError
from interpunct.model.schema import Schema

LANES = 2


@dataclass(frozen=True)
class Job:
    """A flow with one sink, and where its data comes from."""

    flow: Flow
    feeds: Callable[[Any, str], Mapping[str, Any]]

    @classmethod
    def load(cls, path: str | Path) -> Job:
        if not Path(path).is_file():
            raise FlowError(str(path), "a Python file", "none", "Check the path.")
        found = runpy.run_path(str(path))
        for name in ("flow", "feeds"):
            if not callable(found.get(name)):
                raise FlowError(
                    str(path), "functions flow() and feeds(spark, replica)", f"no {name}",
                    "Write it, or check the spelling.",
                )  # fmt: skip
        flow = found["flow"]()
        if not isinstance(flow, Flow) or len(flow.graph.sinks) != 1:
            raise FlowError(str(path), "flow() to return a Flow with one sink", repr(flow),
                            "Make a job for each sink.")  # fmt: skip
        return cls(flow, found["feeds"])

    @property
    def sink(self) -> str:
        return self.flow.graph.sinks[0].name

    @property
    def schema(self) -> Schema:
        return self.flow.graph.sinks[0].streams[0].schema


def run_replica(home: Path, job: Job, name: str) -> None:
    """The job, with elements instead of its sink, until the process is ended."""
    from interpunct.spark.replica import ElementFiles, checkpoint_of

    spark = session(LANES)
    query = job.flow.start(
        spark, job.feeds(spark, name), lanes=LANES,
        checkpoint=str(checkpoint_of(home, name)),
        sinks={job.sink: ElementFiles(home, name, job.schema)},
    )  # fmt: skip
    query.await_termination()


def run_merger(home: Path, job: Job) -> None:
    """One table from all replicas, until the process is ended."""
    from interpunct.spark.hints import Hints
    from interpunct.spark.merge_sink import MergedTable
    from interpunct.spark.merge_tables import ParquetTable
    from interpunct.spark.replica import merged, merger_checkpoint
    from interpunct.spark.reporter import Reporter

    checkpoint = str(merger_checkpoint(home))
    rows = merged(session(LANES), home, job.schema, lanes=LANES)
    table = MergedTable(home / "ledger", ParquetTable(home / "table"))
    stream = rows.writeStream.foreachBatch(table)
    query = stream.option("checkpointLocation", checkpoint).start()
    Reporter.of(query, Hints(f"{checkpoint}/interpunct"))
    query.awaitTermination()


def main(kind: str, home: str, job: str, *name: str) -> None:
    loaded = Job.load(job)
    if kind == "merger":
        run_merger(Path(home), loaded)
    else:
        run_replica(Path(home), loaded, name[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
