"""Every page does what it says: its Python runs, prints what is shown, and its commands work."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import pkgutil
import re
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sqlglot
import typer
from sqlglot import exp
from typer.testing import CliRunner

import interpunct as ip
from interpunct.cli.demo import _say as demo_said
from interpunct.cli.demo import _table as demo_table
from interpunct.cli.main import app
from interpunct.lab import speed_map
from interpunct.model import functions
from interpunct.model.expression import aggregate
from tests.documents import DOCS, PAGES, ROOT, Block, blocks, commands, is_a_test, prompted

KERNEL = ("model", "progress", "operators", "flow", "engine", "sql", "testing", "api")
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
WIDE = {"COLUMNS": "200"}

# Pages that another test runs, word for word.
ELSEWHERE = {"synchronize.md": "tests/spark/test_idle_source.py::test_the_page_prints_what_it_says"}

# Commands at a prompt that are not run here, because they take long or need a cluster of processes,
# and the test that runs what they run.
AVAILABILITY = "tests/spark/test_availability.py"
COVERED = {
    "make run": "tests/test_docs.py::test_the_demo_s_job_delivers_while_the_vehicles_are_quiet",
    "make test": "tests/test_docs.py::test_make_does_what_the_pages_say",
    "make check": "tests/test_docs.py::test_make_does_what_the_pages_say",
    "interpunct doctor": "tests/cli/test_doctor.py::test_the_job_on_spark_is_a_real_one",
    "interpunct status": "tests/cli/test_status.py::test_people_see_who_waits_for_whom",
    "interpunct standby":
        f"{AVAILABILITY}::test_either_replica_may_be_killed_and_the_table_stays_right",
    "interpunct cutover":
        f"{AVAILABILITY}::test_jumpstart_and_cutover_leave_no_gap_and_no_duplicate",
    "interpunct jumpstart":
        f"{AVAILABILITY}::test_jumpstart_and_cutover_leave_no_gap_and_no_duplicate",
    "interpunct studio demo":
        "tests/studio/test_browser.py::test_a_zoom_spares_the_query_work_and_going_back_restores",
    "interpunct studio attach":
        "tests/studio/test_server.py::test_attaching_serves_for_as_long_as_it_is_told",
    "interpunct lab ets-latency":
        "tests/lab/test_lab.py::test_latency_reports_every_case_on_both_clocks",
    "interpunct lab ets-memory":
        "tests/cli/test_cli.py::test_people_get_a_table_the_seed_and_a_figure",
    "interpunct lab disorder": "tests/lab/test_disorder.py::test_without_the_logs_it_says_so",
    "interpunct lab heartbeats":
        "tests/lab/test_heartbeats.py::test_without_the_logs_it_says_so_and_runs_on_the_generated_stream",
    "interpunct lab plan-heartbeats":
        "tests/lab/test_plan_heartbeats.py::test_the_paper_s_expectations_hold",
    "interpunct lab imputation":
        "tests/lab/test_feedback_lab.py::test_every_imputed_tuple_is_timely_late_or_purged",
    "interpunct lab speedmap": "tests/lab/test_speedmap.py::test_each_scheme_spares_what_it_says",
    "interpunct lab lmerge-variants":
        "tests/lab/test_lmerge_variants.py::test_every_variant_is_measured_with_every_number_of_inputs",
    "interpunct lab lmerge-cutover":
        "tests/lab/test_lmerge_lab.py::test_figure_9_feedback_lets_the_slower_plan_catch_up",
    "interpunct lab idle-source":
        "tests/spark/test_idle_source.py::test_only_the_synchronized_jobs_go_on_while_a_source_is_quiet",
    "interpunct lab bench":
        "tests/lab/test_lab.py::test_bench_counts_what_went_in_and_what_came_out",
    "interpunct lab many-sources":
        "tests/lab/test_many_sources.py::test_every_number_of_sources_is_measured_in_groups_and_few_each_alone",
    "interpunct lab desired":
        "tests/lab/test_feedback_lab.py::test_a_wish_changes_when_results_come_and_not_what_they_are",
    "interpunct lab demanded": "tests/lab/test_demanded.py::test_what_is_expected_holds",
    "interpunct lab lmerge-chattiness":
        "tests/lab/test_lmerge_lab.py::test_figure_4_a_merge_is_less_chatty_than_its_inputs",
    "interpunct lab lmerge-stable":
        "tests/lab/test_lmerge_lab.py::test_figure_5_frequent_stables_leave_less_to_remember",
    "interpunct lab lmerge-cleanse":
        "tests/lab/test_lmerge_lab.py::test_figure_6_cleansing_waits_and_keeps_every_input",
    "interpunct lab lmerge-bursty":
        "tests/lab/test_lmerge_lab.py::test_figures_7_and_8_the_output_does_not_stall_with_its_inputs",
    "interpunct lab lmerge-congestion":
        "tests/lab/test_lmerge_lab.py::test_figures_7_and_8_the_output_does_not_stall_with_its_inputs",
    "interpunct lab lmerge-outages":
        "tests/lmerge/test_outages.py::test_the_merged_table_is_the_log_s_own_final_state",
}  # fmt: skip

# Commands that pages name in passing, and the test that runs them; at a prompt they are run here.
IN_PASSING = {
    "interpunct demo": COVERED["make run"],
    "interpunct explain":
        "tests/cli/test_feedback_commands.py::test_explain_prints_the_tables_for_a_pattern",
    "interpunct feedback":
        "tests/cli/test_feedback_commands.py::test_feedback_reaches_the_inbox_of_a_checkpoint",
    "interpunct run": "tests/cli/test_run.py::test_a_python_flow_runs_the_same_way_and_is_written",
    "interpunct sql": "tests/cli/test_run.py::test_sql_runs_over_files_of_each_kind",
}  # fmt: skip

# Measured by hand: they take minutes of Spark, and only their help and arguments are tested.
BY_HAND = ("interpunct lab throughput", "interpunct lab trigger-cost")


def covered(words: list[str]) -> str | None:
    """The test that stands for a command, if it is one of those that are not run."""
    return COVERED.get(" ".join(words[:3])) or COVERED.get(" ".join(words[:2]))


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run_pages() -> list[Any]:
    """One case a page."""
    return [pytest.param(page, id=named(page)) for page in PAGES if page.name not in ELSEWHERE]


# Pages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", run_pages())
def test_a_page_does_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in blocks(page):
        if block.file is not None:
            Path(block.file).write_text(block.text)
        if block.kind == "python":
            heard = io.StringIO()
            with contextlib.redirect_stdout(heard):
                exec(compile(block.padded, str(page), "exec"), names)
            printed = heard.getvalue()
        elif block.kind == "output":
            assert_alike(block.text, printed, page, block)
        elif block.kind == "console":
            run_commands(page, block)


def run_commands(page: Path, block: Block) -> None:
    """Those that nobody else runs, in this folder, with what they print."""
    for words, output in block.commands():
        if covered(words) is None:
            assert words[0] == "interpunct", f"{page}: nobody runs {' '.join(words)}"
            done = CliRunner().invoke(app, words[1:], env=WIDE)
            assert done.exit_code == 0, done.output
            if output.strip():
                assert_alike(output, done.stdout, page, block)


def assert_alike(expected: str, got: str, page: Path, block: Block) -> None:
    """What is shown is what is printed, but for white space and what `…` leaves out."""
    want = expected.strip().replace("…", "...") + "\n"
    same = doctest.OutputChecker().check_output(want, got.strip() + "\n", LOOSELY)
    assert same, f"{page}:{block.line} shows\n{expected}\nbut it is\n{got}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_code_that_is_only_shown_is_python(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "py":
            ast.parse(block.padded, str(page))


# Commands ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_that_is_named_exists_with_its_options(page: Path) -> None:
    for words in commands(page):
        if words[0] == "interpunct":
            check_command(words[1:])


def check_command(words: list[str]) -> None:
    """Walk from group to command, then compare options."""
    command: Any = typer.main.get_command(app)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        assert words[0] in command.commands, f"no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    known = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
    asked = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert asked <= known | {"--help"}, f"{command.name}: no option {asked - known}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_that_is_named_is_run_somewhere(page: Path) -> None:
    at_prompts = {" ".join(words) for words in prompted(page)}
    for words in commands(page):
        tested = covered(words) or IN_PASSING.get(" ".join(words[:2]))
        text = " ".join(words)
        assert tested or text in at_prompts or text in (*BY_HAND, "interpunct lab"), text


def test_commands_that_are_not_run_here_are_run_by_a_test() -> None:
    tests = (*COVERED.values(), *IN_PASSING.values(), *ELSEWHERE.values())
    assert [test for test in tests if not is_a_test(test)] == []


def test_make_does_what_the_pages_say() -> None:
    text = (ROOT / "Makefile").read_text()
    for target, command in {
        "run": "interpunct demo", "test": "python -m pytest",
        "check": "mkdocs build --strict", "docs": "mkdocs build --strict",
    }.items():  # fmt: skip
        recipe = text.partition(f"\n{target}: setup\n")[2].partition("\n\n")[0]
        assert command in recipe, target


def test_the_demo_s_job_delivers_while_the_vehicles_are_quiet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job of `make run` on its own recording, in scripted time, to its table and picture."""
    plan = speed_map.Plan(folder=tmp_path)
    feeds = {
        n: ip.feed(pl.read_parquet(p), arrival="arrival") for n, p in speed_map.record(plan).items()
    }
    clock, heard, rows = ip.ScriptedClock(), speed_map.Delivered(), list[pl.DataFrame]()

    def deliver(frame: pl.DataFrame) -> None:
        heard.began = clock.now() if heard.began is None else heard.began
        heard.batches.append((clock.now(), frame.height))
        rows.append(frame)

    speed_map.flow().run(feeds, clock=clock, sinks={"map": deliver})
    pl.concat(rows).write_parquet(tmp_path / "map" / "rows.parquet", mkdir=True)
    later = [(at + 7_000_000, rows) for at, rows in heard.batches]
    delivered = {"interpunct": heard, "plain": speed_map.Delivered(heard.began, later)}
    result = speed_map.outcome(speed_map.Race(plan, {}, delivered, ip.RealClock()))
    assert result.to_json()["rows_during_quiet"]["interpunct"] > 0  # type: ignore[index]
    assert result.speeds["ts"].n_unique() >= 3
    gaps = {after - before for before, after in pairwise(result.windows)}
    assert gaps == {timedelta(seconds=20)}  # the window in which no vehicle was seen is one too
    assert len(result.windows) > result.speeds["ts"].n_unique()
    assert demo_table(result).row_count == speed_map.SEGMENTS
    lead = result.lead()
    assert lead is not None
    assert lead[2] - lead[1] == pytest.approx(7)
    demo_said(result, tmp_path)
    assert f"interpunct had {lead[0]} rows at" in capsys.readouterr().out
    speed_map.picture(result, tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 10_000


# Docstrings -------------------------------------------------------------------------------------


def modules() -> list[str]:
    found = pkgutil.walk_packages(ip.__path__, "interpunct.")
    return [m.name for m in found if m.name.split(".")[1] in KERNEL]


@pytest.mark.parametrize("name", modules())
def test_docstring_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_pages_to_run() -> None:
    assert DOCS / "tutorials" / "ets.md" in PAGES


@pytest.mark.parametrize("row", ["numbers", "text", "time", "anything"])
def test_the_functions_that_are_listed_are_evaluated(row: str) -> None:
    text = (ROOT / "docs" / "sql.md").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {row} | `")]
    names = re.findall(r"`(\w+)`", line.partition(";")[0])
    assert len(names) > 4
    for name in names:
        calls = [f"{name}({arguments})" for arguments in ("", "x", "x, y", "x, y, z")]
        assert any(_known(call) for call in calls), name


def test_the_aggregates_that_are_listed_are_computed() -> None:
    text = (ROOT / "docs" / "sql.md").read_text()
    (listed,) = re.findall(r"^Aggregates, (.*?);", text, re.DOTALL | re.MULTILINE)
    names = re.findall(r"`(\w+)`", listed)
    assert len(names) > 20
    schema = ip.Schema.of("x double, p boolean")
    for name in names:
        attribute = "p" if name in ("count_if", "every", "some", "bool_and", "bool_or") else "x"
        more = ", 0.5" if "percentile" in name else ""
        assert aggregate(f"{name}({attribute}{more})", schema, "test").text.startswith(name)


def _known(call: str) -> bool:
    try:
        found = sqlglot.parse_one(call, read="spark")
    except (sqlglot.ParseError, ValueError):  # of some functions without arguments
        return False
    if isinstance(found, exp.Anonymous):
        return found.name in functions.NAMED
    return type(found) in functions.SCALARS
