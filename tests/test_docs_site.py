"""The documentation as a whole: the site builds, generated pages are current, the map is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from interpunct.cli.lab import app as lab
from interpunct.cli.main import app as _main  # noqa: F401  it adds the other experiments to `lab`
from interpunct.flow.builder import FlowBuilder
from interpunct.flow.feedback import MOST_UNDELIMITED
from interpunct.flow.nodes import Node
from interpunct.flow.reference import reference
from interpunct.flow.specimens import ENTRIES
from interpunct.operators.guards import MOST_GUARDS
from interpunct.operators.lmerge_base import MOST_REPORTS
from interpunct.operators.promises import MOST_PROMISES
from interpunct.spark.channel import MOST_MESSAGES
from interpunct.spark.hints import KEPT
from interpunct.spark.warm import MOST_WARM
from tests.documents import DOCS, ROOT, is_a_test

PAPERS = (DOCS / "papers.md").read_text()
CODE = re.compile(r"`((?:tests/)?[\w/]+\.py)(?:::(\w+))?`")
ELSEWHERE = re.compile(r"""(?:src=|<link[^>]+href=|url\()["']?(?:https?:)?//""")

# Where the sections, figures and tables of each paper end.
FIGURES = {"ETS": 8, "Feedback": 7, "Punctuate": 3, "Heartbeats": 6, "LMerge": 9}
TABLES = {
    "Feedback": ("Table 1", "Table 2"),
    "LMerge": ("Table I", "Tables II and III", "Table IV"),
}


# The operator reference -------------------------------------------------------------------------


def test_the_operator_reference_is_what_the_operators_say() -> None:
    current = (DOCS / "operators.md").read_text()
    assert current == reference(), "python -m interpunct.flow.reference > docs/operators.md"


def kinds(of: type[Node]) -> set[str]:
    """Those of the product: experiments have nodes of their own."""
    mine = [sub for sub in of.__subclasses__() if sub.__module__.startswith("interpunct.flow")]
    return {sub.__name__ for sub in mine}.union(*(kinds(sub) for sub in mine))


def test_the_reference_has_every_operator() -> None:
    shown = set()
    for entry in ENTRIES:
        flow = FlowBuilder("specimen")
        shown.add(type(flow.nodes[entry.build(flow)]).__name__)
    assert {k for k in kinds(Node) if k.endswith("Node")} == shown


# Papers to code ---------------------------------------------------------------------------------


def section(paper: str) -> str:
    return PAPERS.partition(f"\n## {paper}\n")[2].partition("\n## ")[0]


def test_every_module_and_test_on_the_map_exists() -> None:
    missing = []
    for file, function in CODE.findall(PAPERS):
        there = file if file.startswith("tests/") else f"src/interpunct/{file}"
        if not is_a_test(f"{there}::{function}" if function else there):
            missing.append(f"{there}::{function}")
    assert missing == []


@pytest.mark.parametrize("paper", FIGURES)
def test_every_figure_of_a_paper_is_on_the_map(paper: str) -> None:
    said = " ".join(re.findall(r"Figures? ([\d(), ab]+)", section(paper)))
    assert set(map(str, range(1, FIGURES[paper] + 1))) <= set(re.findall(r"\d+", said))
    assert all(table in section(paper) for table in TABLES.get(paper, ()))


def test_every_experiment_is_on_the_map_and_every_one_on_it_exists() -> None:
    group = typer.main.get_command(lab)
    known = set(group.commands)  # type: ignore[attr-defined]
    assert set(re.findall(r"`interpunct lab ([\w-]+)`", PAPERS)) == known


def test_the_caps_that_are_told_are_those_of_the_code() -> None:
    page = (DOCS / "operations.md").read_text()
    told = {
        m[1]: int(m[2].replace(",", ""))
        for m in re.finditer(r"^\| (.+?) \| ([\d,]+) \|", page, re.M)
    }
    assert told == {
        "guards on an input or output": MOST_GUARDS,
        "punctuations remembered for an input": MOST_PROMISES,
        "feedback without an end in time, for a sink": MOST_UNDELIMITED,
        "messages that wait in a query's inbox": MOST_MESSAGES,
        "hints, in batches": KEPT,
        "lanes kept decoded in a Python worker": MOST_WARM,
        "reports about a merge's inputs": MOST_REPORTS,
    }


def test_every_metric_that_is_named_is_one() -> None:
    source = (ROOT / "src/interpunct/studio/exposition.py").read_text()
    for name in re.findall(r"`interpunct_(\w+)`", (DOCS / "operations.md").read_text()):
        assert f'"{name.removesuffix("_total")}"' in source, name


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md"])
def test_links_of_pages_beside_the_site_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


# The site ---------------------------------------------------------------------------------------


def test_the_site_builds_strictly_and_takes_nothing_from_other_hosts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 15
    fetched = [
        p.name for p in (*pages, *tmp_path.rglob("*.css")) if ELSEWHERE.search(p.read_text())
    ]
    assert fetched == []
