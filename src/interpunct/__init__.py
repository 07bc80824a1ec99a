"""Interpunct: punctuated data streams for PySpark.

One import gives the builder (`Flow`), the kinds of time (`external`, `internal`, `latent`), feeds
and clocks for running in process.
"""

from interpunct.api import Flow, replay, session, synchronize
from interpunct.engine.feeds import Feed, feed
from interpunct.engine.run import Result
from interpunct.engine.trace import Trace
from interpunct.flow.stream import FlowStream
from interpunct.model.errors import InterpunctError
from interpunct.model.feedback import Feedback, Intent
from interpunct.model.page import Page
from interpunct.model.pattern import Pattern
from interpunct.model.punctuation import Punctuation
from interpunct.model.schema import Schema
from interpunct.progress.clock import RealClock, ScriptedClock
from interpunct.progress.timestamps import (
    Bounds,
    Ets,
    TimeSpec,
    bounds,
    external,
    internal,
    latent,
    periodic,
)

__version__ = "0.1.0"

__all__ = [
    "Bounds",
    "Ets",
    "Feed",
    "Feedback",
    "Flow",
    "FlowStream",
    "Intent",
    "InterpunctError",
    "Page",
    "Pattern",
    "Punctuation",
    "RealClock",
    "Result",
    "Schema",
    "ScriptedClock",
    "TimeSpec",
    "Trace",
    "bounds",
    "external",
    "feed",
    "internal",
    "latent",
    "periodic",
    "replay",
    "session",
    "synchronize",
]
