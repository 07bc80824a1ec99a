"""Processors whose loading silences a worker that talks to itself.

Before the first batch of a query PySpark starts a worker for each stateful operator, only to have
its state prepared, and that worker prints every step it takes, the schemas in full, to the user's
terminal. No setting turns it off. It has nothing else to print: errors go to the driver.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

PREPARING = "pyspark.sql.streaming.transform_with_state_driver_worker"


class QuietProcessor(StatefulProcessor):
    """Prints no more in that worker once it is loaded there."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        if spec is not None and spec.name == PREPARING:
            sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 (until the worker ends)
