"""Notebooks: flows and queries show themselves, and the example runs to the outputs it has."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import interpunct as ip
from interpunct.flow.drawing import drawn

EXAMPLE = Path(__file__).parents[1] / "examples" / "quiet-source.ipynb"


def speeds() -> ip.Flow:
    flow = ip.Flow("speeds <by> segment")
    ddl = "segment bigint, ts bigint, speed double"
    cars = flow.source("cars", ddl, time=ip.external("ts", bounds=ip.bounds(skew=9)))
    vans = flow.source("vans", ddl, time=ip.external("ts", ordered=True))
    flow.sink("map", flow.union(cars.where("speed < 120 and speed > 0"), vans))
    return flow


def test_a_flow_shows_its_graph_and_a_table_of_its_operators() -> None:
    shown = speeds()._repr_html_()
    tree = ET.fromstring(shown)  # well formed, whatever names and conditions contain
    assert "speed < 120 and speed > 0" in "".join(tree.itertext())
    assert len(tree.findall(".//tbody/tr")) == 5
    svg = ET.fromstring(drawn(speeds().graph))
    assert len([e for e in svg.iter() if e.tag.endswith("rect")]) == 5
    assert not re.search(r"<script|(src|href)=", shown)


def test_only_operators_that_may_wait_are_dashed() -> None:
    assert speeds()._repr_html_().count("stroke-dasharray") == 1


def test_a_flow_that_is_not_finished_says_what_it_lacks() -> None:
    flow = ip.Flow("begun")
    flow.source("cars", "ts bigint")
    shown = flow._repr_html_()
    assert "at least one source and one sink" in shown
    assert "<td>cars</td>" in shown
    assert "<svg" not in shown


def test_flows_are_named_in_plain_text() -> None:
    assert repr(speeds()) == "Flow('speeds <by> segment', 5 nodes)"


def texts(notebook: Any) -> list[str]:
    """What the cells print and show as text; drawings and times differ."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [o for cell in cells for o in cell.outputs if o.get("name") != "stderr"]
    return [o.get("text") or o.get("data", {}).get("text/plain", "") for o in outputs]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_example_runs_and_shows_what_it_shows() -> None:
    kept = nbformat.read(EXAMPLE, as_version=4)
    fresh = nbformat.read(EXAMPLE, as_version=4)
    NotebookClient(fresh, timeout=300, kernel_name="python3").execute()
    assert texts(fresh) == texts(kept)
    (query,) = [
        o.data["text/html"]
        for cell in fresh.cells
        for o in cell.get("outputs", ())
        if "FlowQuery" in o.get("data", {}).get("text/plain", "")
    ]
    assert "waits for" in query
    assert "<th>rows in</th>" in query
