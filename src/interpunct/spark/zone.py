"""Flows count hours and days in UTC; a session in another zone is told so where it matters."""

from __future__ import annotations

import re
import warnings

from pyspark.sql import SparkSession

from interpunct.flow.graph import Graph
from interpunct.model.errors import levels_to_the_user

ZONE = "spark.sql.session.timeZone"
UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Z", "+00:00"})
ZONED = re.compile(
    r"\b(year|quarter|month|weekofyear|day|dayof(?:week|month|year)|weekday|hour|minute|extract"
    r"|(?:day|month)name|date|date_(?:format|trunc|add|sub|diff|part)|trunc|datediff|dateadd"
    r"|add_months|months_between|last_day|to_date|to_timestamp|unix_date|unix_timestamp"
    r"|from_unixtime)\s*\("
    r"|\bcast\s*\(.*\bas\s+(string|date|timestamp)\b|::\s*(string|date|timestamp)\b",
    re.IGNORECASE,
)


def check_zone(spark: SparkSession, graph: Graph) -> None:
    """Warn of expressions that would come out otherwise in the zone of the session."""
    zone = spark.conf.get(ZONE, "UTC")
    asked = {node.name: ZONED.search(node.describe()) for node in graph}
    found = [f"{name} ({match.group(0)}…)" for name, match in asked.items() if match is not None]
    if zone not in UTC and found:
        warnings.warn(
            f"flow {graph.name!r}: {', '.join(found)} is in UTC, and the session's zone is {zone}. "
            "Give the flow timestamps and take hours and days of its result, or set "
            f"{ZONE}=UTC.", stacklevel=levels_to_the_user(),
        )  # fmt: skip
