"""Refusals: errors about a job, not about code, which reach the user without a trace of calls.

    [STREAM_FAILED] Query … terminated with exception: [PYTHON_EXCEPTION] …
    interpunct.model.errors.FlowError: synchronize: expected …, got …

What a worker raises Spark prints several times, each time with all the calls that led to it. They
say nothing about what the user is to change, and hide the sentence that does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import TaskContext

from interpunct.model.errors import InterpunctError

HIDE = "SPARK_HIDE_TRACEBACK"  # PySpark looks at it when a task has failed


@contextmanager
def refusing() -> Iterator[None]:
    """What this project raises inside, on purpose, leaves a worker as its message alone."""
    try:
        yield
    except InterpunctError:
        if TaskContext.get() is not None:  # in a worker, which ends with the task that failed
            os.environ[HIDE] = "1"
        raise
