"""Sessions that `ip.session` did not make: over Spark Connect, and without our settings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from interpunct.spark.clock import WakeFile, Wanted
from interpunct.spark.session import PARTITIONS, check_session, settings
from tests.spark.recovery_job import job
from tests.spark.scenario import batches, comparable, in_process, write_files
from tests.spark.test_parity import read

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_flows_and_synchronized_streams_run_on_connect(tmp_path: Path) -> None:
    data = [{n: b[n] for n in ("a", "c")} for b in batches(count=3)]
    write_files(data, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_job", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["session"].startswith("pyspark.sql.connect")
    assert {"joined", "total"} <= set(told["blamed"])
    out, expected = tmp_path / "out", in_process(job(), data)
    for name in ("joined", "total"):
        assert comparable(read(out / name)) == comparable(expected[name]) != [], name
    assert comparable(read(out / "to_df")) == comparable(expected["total"])
    a = comparable(pl.concat(b["a"] for b in data))
    assert comparable(read(out / "synchronized")) == a
    assert comparable(read(out / "replayed")) == a


def test_a_wake_file_needs_no_folder_made_where_the_flow_was_started(tmp_path: Path) -> None:
    """Over Connect the driver is on another machine than the client that chose the path."""
    wake = WakeFile(tmp_path / "elsewhere" / "wake")
    assert wake.read() == Wanted()
    wake.write(Wanted(7, {"a": 8}))
    assert wake.read() == Wanted(7, {"a": 8})


def test_a_session_without_the_settings_is_told_of_each_and_goes_on(spark: SparkSession) -> None:
    plain = spark.newSession()
    wanted = [s for s in settings(2) if s.told]
    for setting in wanted:
        if plain.conf.isModifiable(setting.name):
            plain.conf.unset(setting.name)
    with pytest.warns(UserWarning, match="This session lacks settings") as warned:
        check_session(plain, 2)
    assert len(warned) == 1
    first, after = str(warned[0].message).split("This session lacks settings", 1)
    assert first.startswith("Every batch will take minutes: 200 tasks for 2 lanes.")
    assert f"  {PARTITIONS}=2  # " in first
    assert PARTITIONS not in after
    assert after.endswith(
        "has all that is named here; docs/clusters.md says how to be told no more."
    )
    for setting in wanted:
        if plain.conf.isModifiable(setting.name):
            line = f"{setting.name}={setting.value}  # {setting.why}"
            assert (line in str(warned[0].message)) is not setting.needed
        if setting.needed:
            assert plain.conf.get(setting.name) == setting.value
