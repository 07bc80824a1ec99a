"""The server: the page, its metrics, and whom it lets act."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner
from watching import InProcess

from interpunct.cli.main import app
from interpunct.flow.outline import Outline
from interpunct.model.errors import FlowError
from interpunct.spark.channel import Channel
from interpunct.spark.hints import Hints
from interpunct.studio import Served, serve
from interpunct.studio.access import Access


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """What a query has left."""
    flow, hints = InProcess(), Hints(str(tmp_path / "interpunct"))
    for _ in range(8):
        flow.turn()
    hints.report(0, 0, flow.engine.vitals())
    hints.announce(Outline.of(flow.graph))
    channel = Channel.of(str(tmp_path))
    channel.announce({n.name: n.streams[0].schema for n in flow.graph.sinks})
    channel.tell_reached(flow.snapshot().reached)
    return str(tmp_path)


@pytest.fixture
def served(checkpoint: str) -> Iterator[Served]:
    with serve(checkpoint, port=0, token="opensesame") as page:
        yield page


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.reason


def test_people_get_a_page_whose_assets_are_its_own(served: Served) -> None:
    status, text = get(served.address)
    assert status == 200
    assert "cdn." not in text
    assets = re.findall(r'<script[^>]* src="([^"]*)static/js/[^"]*"', text)
    assert assets
    assert set(assets) <= {"", "/", served.address}


def test_a_wrong_token_is_turned_away(served: Served) -> None:
    assert get(f"{served.address}?token=guess") == (403, "wrong token")
    assert get(served.link)[0] == 200
    assert served.link.endswith("?token=opensesame")


def test_collectors_find_metrics_beside_the_page(served: Served) -> None:
    status, text = get(f"{served.address}metrics")
    assert status == 200
    assert 'interpunct_source_rows_total{flow="speed-map",source="vehicles"} 720.0' in text


def test_feedback_reaches_a_query_of_another_program(served: Served, checkpoint: str) -> None:
    assert served.room.send("map", "~[segment ≠ 3]", "30s")
    assert Channel.of(checkpoint).waiting() == 1
    assert not served.room.send("map", "~[segment ≠ 3]", None)  # its guards would stay for ever
    assert "ends in time" in served.room.trouble


def test_only_this_machine_needs_no_token() -> None:
    assert Access.at("127.0.0.1").token is None
    assert Access.at("localhost").token is None
    assert Access.at("::1").token is None
    made = {Access.at(a).token for a in ("0.0.0.0", "10.1.2.3", "example.org")}
    assert len(made) == 3
    assert None not in made


def test_a_port_that_is_taken_is_said(served: Served, checkpoint: str) -> None:
    with pytest.raises(FlowError, match="a free port"):
        serve(checkpoint, port=served.server.port)


def test_attaching_to_nothing_is_an_error_in_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["studio", "attach", str(tmp_path)])
    assert result.exit_code == 1
    assert "a flow that has run a batch" in result.stderr


def test_attaching_serves_for_as_long_as_it_is_told(checkpoint: str) -> None:
    arguments = ["studio", "attach", checkpoint, "--port", "0", "--seconds", "1", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert '"metrics": "http://127.0.0.1:' in result.stdout
