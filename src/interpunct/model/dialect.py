"""The dialect of SQL that expressions are read in: Spark's, with the formats of times as written.

sqlglot turns the letters of such formats into those of strftime, of which it has fewer: it takes
`YYYY`, which Spark refuses, for `yyyy`, and reads letters between quotes as well.
"""

from __future__ import annotations

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.spark import Spark


class StreamSql(Spark):
    """Spark's SQL."""

    TIME_MAPPING: dict[str, str] = {}  # noqa: RUF012  (sqlglot's word)


def written(node: exp.Expr) -> str:
    """A node as text, for errors; what Spark cannot say of it is left out in silence."""
    return node.sql("spark", unsupported_level=ErrorLevel.IGNORE)
