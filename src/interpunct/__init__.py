"""Interpunct: punctuated data streams for PySpark.

One import gives the builder (`Flow`), the kinds of time (`external`, `internal`, `latent`), feeds
and clocks for running in process.
"""

from interpunct.api import Flow, lmerge, quarantined, replay, session, sql, synchronize, upstream
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
from interpunct.operators.lmerge_policy import MergePolicy
from interpunct.progress.adaptive import Adaptive, adaptive
from interpunct.progress.clock import RealClock, ScriptedClock
from interpunct.progress.estimation import SkewEstimator
from interpunct.progress.grouping import grouped, propose_groups
from interpunct.progress.heartbeats import HeartbeatGenerator
from interpunct.progress.pair_confidence import PairConfidence
from interpunct.progress.skew import SkewBounds, TupleBounds, needs_timeout
from interpunct.progress.skew_presets import distributed_sensors, global_counter
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
from interpunct.sql.written import to_sql

__version__ = "0.1.0"

__all__ = [
    "Adaptive",
    "Bounds",
    "Ets",
    "Feed",
    "Feedback",
    "Flow",
    "FlowStream",
    "HeartbeatGenerator",
    "Intent",
    "InterpunctError",
    "MergePolicy",
    "Page",
    "PairConfidence",
    "Pattern",
    "Punctuation",
    "RealClock",
    "Result",
    "Schema",
    "ScriptedClock",
    "SkewBounds",
    "SkewEstimator",
    "TimeSpec",
    "Trace",
    "TupleBounds",
    "adaptive",
    "bounds",
    "distributed_sensors",
    "external",
    "feed",
    "global_counter",
    "grouped",
    "internal",
    "latent",
    "lmerge",
    "needs_timeout",
    "periodic",
    "propose_groups",
    "quarantined",
    "replay",
    "session",
    "sql",
    "synchronize",
    "to_sql",
    "upstream",
]
