"""How lengths of time and the time of a stream are written.

>>> length(90_000_000), length(20_000_000)
("INTERVAL '1m 30s'", 'INTERVAL 20 SECONDS')
"""

from __future__ import annotations

from interpunct.model.durations import format_duration
from interpunct.model.schema import Schema, TimeKind
from interpunct.progress.adaptive import Adaptive, adaptive
from interpunct.progress.timestamps import UNSAID, Bounds, TimeSpec
from interpunct.sql.tokens import quoted

_UNITS = {"d": "DAYS", "h": "HOURS", "m": "MINUTES", "s": "SECONDS", "ms": "MILLISECONDS",
          "us": "MICROSECONDS"}  # fmt: skip


def length(ticks: int, schema: Schema | None = None) -> str:
    """A length of time; a plain number where the schema's time is an integer."""
    if schema is not None and schema.time_type not in ("timestamp", "timestamp_ntz"):
        return str(ticks)
    text = format_duration(ticks)
    if " " in text:
        return f"INTERVAL '{text}'"
    digits = text.rstrip("dhmsu")
    return f"INTERVAL {digits} {_UNITS[text[len(digits) :]]}"


def time_clause(raw: Schema, time: TimeSpec) -> str:
    """What follows the attributes in CREATE STREAM."""
    if time.kind is TimeKind.LATENT:
        return ""
    told = [f" TIMESTAMP BY {quoted(str(time.attribute))}"]
    if time.kind is TimeKind.INTERNAL:
        told.append("INTERNAL")
    elif time.bounds is None:
        told.append("ORDERED")
    elif isinstance(time.bounds, Bounds):
        told.append(_bounds(raw.with_time(time.attribute), time.bounds))
    elif time.bounds != UNSAID:
        told.append(_adaptive(time.bounds))
    if time.future is not None:
        told.append(f"FUTURE {length(time.future)}")
    if time.ets.mode == "periodic":
        told.append(f"ETS EVERY {length(time.ets.every)}")
    elif time.ets.mode != "on-demand":
        told.append(f"ETS {time.ets.mode.upper()}")
    return " ".join(told)


def _bounds(schema: Schema, bounds: Bounds) -> str:
    delay = f" DELAY {length(bounds.delay)}" if bounds.delay else ""
    return f"WITHIN {length(bounds.skew, schema)}{delay}"


def _adaptive(policy: Adaptive) -> str:
    """Only what differs from what is usual at this completeness and by this method."""
    usual = adaptive(policy.completeness, method=policy.method)
    told = ["ADAPTIVE", f"COMPLETENESS {policy.completeness!r}"]
    if policy.method != UNSAID.method:
        told.append(f"METHOD {policy.method}")
    if (policy.window, policy.timed) != (usual.window, usual.timed):
        told.append(f"WINDOW {length(policy.window) if policy.timed else policy.window}")
    for name, word in (("alpha", "ALPHA"), ("warm_up", "WARM UP"), ("safety", "SAFETY")):
        if getattr(policy, name) != getattr(usual, name):
            told.append(f"{word} {getattr(policy, name)!r}")
    return " ".join(told)
