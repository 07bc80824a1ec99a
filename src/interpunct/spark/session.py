"""A SparkSession with the settings that make small Python micro-batches cheap, each explained."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass

from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PLAIN_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


@dataclass(frozen=True)
class Setting:
    """One Spark setting, and why it is here."""

    name: str
    value: str
    why: str
    needed: bool = False  # flows do not run without it


def settings(lanes: int) -> tuple[Setting, ...]:
    """The settings for flows of so many lanes."""
    return (
        Setting("spark.sql.shuffle.partitions", str(lanes), "one task for each lane"),
        Setting("spark.sql.streaming.stateStore.providerClass", ROCKSDB,
                "transformWithState runs on RocksDB only", needed=True),
        Setting("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true",
                "a commit writes what changed: 130-180 ms become 0-45 ms"),
        Setting("spark.sql.streaming.checkpointFileManagerClass", PLAIN_FILES,
                "the default forks chmod processes on local disks: 60-85 ms a batch"),
        Setting("spark.python.unix.domain.socket.enabled", "true",
                "30-40 ms less a batch for each Python stage"),
        Setting("spark.sql.execution.arrow.maxRecordsPerBatch", "100000",
                "few, large Arrow batches"),
        Setting("spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1),
                "a page is one big cell"),
        Setting("spark.executorEnv.POLARS_MAX_THREADS", "1", "a task has one core"),
        Setting("spark.sql.session.timeZone", "UTC", "timestamps cross to Python unchanged"),
    )  # fmt: skip


def session(
    lanes: int = 2, *, master: str | None = None, name: str = "interpunct", **more: str
) -> SparkSession:
    """A SparkSession for flows of so many lanes (`local[lanes]` unless `master` says otherwise).

    `more` holds further settings, with `__` for the dots: ``spark__driver__memory="8g"``.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # local mode forks its workers from here
    builder = SparkSession.builder.appName(name).master(master or f"local[{lanes}]")
    for setting in settings(lanes):
        builder = builder.config(setting.name, setting.value)
    builder = builder.config("spark.ui.enabled", "false").config(
        "spark.ui.showConsoleProgress", "false"
    )
    for key, value in more.items():
        builder = builder.config(key.replace("__", "."), value)
    spark = builder.getOrCreate()
    if hasattr(spark, "sparkContext"):
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def check_session(spark: SparkSession, lanes: int) -> None:
    """Warn of each missing setting that matters, in one warning that says what it costs."""
    missing = []
    for setting in settings(lanes):
        if setting.name.startswith("spark.executorEnv."):
            continue
        if spark.conf.get(setting.name, None) != setting.value:
            missing.append(f"{setting.name}={setting.value} ({setting.why})")
            if setting.needed:
                spark.conf.set(setting.name, setting.value)
    if missing:
        text = "; ".join(missing)
        warnings.warn(f"This session would run flows faster with: {text}", stacklevel=3)
