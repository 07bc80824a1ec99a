"""A SparkSession with the settings that make small Python micro-batches cheap, each explained."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from interpunct.model.errors import levels_to_the_user
from interpunct.spark.lanes import check_lanes

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PLAIN_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
PARTITIONS = "spark.sql.shuffle.partitions"
KEPT = "10000"  # milliseconds for which workers keep memory that is free
POLARS_KEPT = f"dirty_decay_ms:{KEPT},muzzy_decay_ms:{KEPT}"
UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
# Iterators of many classes hand on each row. Java compiles a call straight to a class that answers
# it 90 times in 100, and so hardly any; from 30 on, ingest takes a sixth less of its time.
INLINED = "-XX:TypeProfileWidth=6 -XX:TypeProfileMajorReceiverPercent=30"
MACHINE = f"{UNCHECKED} {INLINED}"
JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
STATE_SERVER = (
    "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkStateServer"
)
MANY = 100  # tasks, with which a batch takes minutes where a few lanes have work
MOST_SHOWN = 4_000  # bytes of what a machine said that did not start
_told: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()  # what was last said of each


@dataclass(frozen=True)
class Setting:
    """One Spark setting, and why it is here."""

    name: str
    value: str
    why: str
    needed: bool = False  # flows do not run without it
    told: bool = True  # whether a session that lacks it is told so


def settings(lanes: int) -> tuple[Setting, ...]:
    """The settings for flows of so many lanes."""
    return (
        Setting(PARTITIONS, str(lanes),
                "one task for each lane; Spark's 200 make every batch take minutes"),
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
        Setting("spark.sql.execution.pandas.udf.buffer.size", str(2**20),
                "rows cross to Python in larger pieces"),
        Setting("spark.executorEnv.POLARS_MAX_THREADS", "1", "a task has one core", told=False),
        Setting("spark.executorEnv._RJEM_MALLOC_CONF", POLARS_KEPT,
                "workers use memory of one batch for the next: Polars' for 10 seconds", told=False),
        Setting("spark.executorEnv.MIMALLOC_PURGE_DELAY", KEPT, "and Arrow's", told=False),
        *(Setting(name, MACHINE,
                  "Java does not check each access to Arrow's memory once more, and compiles the "
                  "calls made for every row for the class that mostly answers them",
                  told=False) for name in JAVA_OPTIONS),
        Setting("spark.python.authenticate.socketTimeout", "60s",
                "on a busy machine a worker may take longer than 15 s to start", told=False),
        Setting("spark.sql.session.timeZone", "UTC", "timestamps cross to Python unchanged",
                told=False),
    )  # fmt: skip


def session(
    lanes: int = 2,
    *,
    master: str | None = None,
    name: str = "interpunct",
    log: str | Path | None = None,
    **more: str,
) -> SparkSession:
    """A SparkSession for flows of so many lanes (`local[lanes]` unless `master` says otherwise).

    With `log`, what Spark's machine and its Python workers print goes to this file and not to the
    terminal, if this call starts them. `more` holds further settings, with `__` for the dots:
    ``spark__driver__memory="8g"``.
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
        name = key.replace("__", ".")
        builder = builder.config(name, f"{MACHINE} {value}" if name in JAVA_OPTIONS else value)
    with _printing_to(log):
        spark = builder.getOrCreate()
    if hasattr(spark, "sparkContext"):
        spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _printing_to(log: str | Path | None) -> Iterator[None]:
    """Processes started inside print to a file what they would to the terminal, if one is named;
    if they do not start, it is shown after all."""
    if log is None:
        yield
        return
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    ours = os.dup(2)
    with Path(log).open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    except Exception:
        os.write(ours, Path(log).read_bytes()[-MOST_SHOWN:])
        raise
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def check_session(spark: SparkSession, lanes: int) -> None:
    """Set what flows do not run without, and warn of each missing setting that costs time, in one
    warning that says how much, the dearest first, at the user's line; of a session once."""
    check_lanes(lanes)
    same_python(spark)
    _hush(spark)
    first, missing = "", []
    for setting in settings(lanes):
        if not setting.told or spark.conf.get(setting.name, None) == setting.value:
            continue
        line = f"\n  {setting.name}={setting.value}  # {setting.why}"
        if setting.needed:
            spark.conf.set(setting.name, setting.value)
        elif setting.name == PARTITIONS:
            first = _too_many_tasks(spark.conf.get(PARTITIONS), lanes) + line
        else:
            missing.append(line)
    others = "This session lacks settings that save milliseconds a batch:" + "".join(missing)
    told = [text for text in (first, others if missing else "") if text]
    if told:
        told.append(
            "interpunct.session() has all that is named here; docs/clusters.md says how to be told "
            "no more."
        )
        text = "\n".join(told)
        if _told.get(spark) != text:
            _told[spark] = text
            warnings.warn(text, stacklevel=levels_to_the_user())


def _too_many_tasks(partitions: str | None, lanes: int) -> str:
    """What it means that there are not as many partitions as lanes."""
    many = partitions is not None and int(partitions) >= max(MANY, 4 * lanes)
    takes = "minutes" if many else "longer than it need"
    return (
        f"Every batch will take {takes}: {partitions} tasks for {lanes} lanes. Change this first:"
    )


def _hush(spark: SparkSession) -> None:
    """Keep Spark's state server from warning of every key that is looked for and not there, which
    is no fault: in a new lane none is."""
    context = getattr(spark, "sparkContext", None)
    if context is not None:
        log4j = context._jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setLevel(STATE_SERVER, log4j.Level.ERROR)


def same_python(spark: SparkSession) -> None:
    """On one machine workers run the Python that runs this, where nothing else was asked for:
    Spark's own choice is the first `python3` on the path, which need not have this package."""
    context = getattr(spark, "sparkContext", None)
    if context is None or not context.master.startswith("local"):
        return
    asked = context.getConf().get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    if asked is None:
        context.pythonExec = sys.executable
