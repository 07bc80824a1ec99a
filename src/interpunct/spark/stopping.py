"""Stopping a query in the middle of a batch, quietly.

A query that is stopped interrupts the batch it is in. The jobs of a `foreachBatch` function fail
with that, and Spark looks for an interruption in the text of the failure, which holds the whole
plan: with an expression that recurses by the character, so that a long text ends in a
StackOverflowError, a thousand lines of which go to the terminal. So the text is made short here, in
the words that Spark looks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

ENDED = ("InterruptedException", "ClosedByInterrupt", "InterruptedIO", "cancelled job group")
# A worker that was starting is interrupted with the rest.
STARTING = "STREAMING_PYTHON_RUNNER_INITIALIZATION_COMMUNICATION_FAILURE"
CUT = (*ENDED, "SPARK_JOB_CANCELLED", STARTING)


class InterruptedBatch(Exception):  # noqa: N818 (an event, and no error)
    """A batch that did not come to its end because its query is being stopped."""

    def __init__(self) -> None:
        super().__init__(
            "py4j.protocol.Py4JJavaError: An error occurred while calling a job of this batch.\n"
            ": java.lang.InterruptedException"
        )


@contextmanager
def interruptible() -> Iterator[None]:
    """Around what a `foreachBatch` function does: an interruption in few words, else no change."""
    try:
        yield
    except Exception as error:
        if any(name in str(error) for name in ENDED):
            raise InterruptedBatch from None
        raise


def cut_short(error: BaseException) -> bool:
    """Whether a query that was being stopped has failed of nothing but that: of a batch that was
    interrupted, a job that was cancelled, or a worker that was starting. What else it says is a
    failure of its own."""
    return any(name in str(error) for name in CUT)
