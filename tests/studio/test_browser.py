"""The studio as a person uses it: a real browser, on a real query on Spark."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIETLY = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 180_000  # milliseconds, on a machine that does much else

# What the page knows, in few words.
SPOKEN = """
const model = (name) => Bokeh.documents[0].get_model_by_name(name);
const parsed = (name) => new DOMParser().parseFromString(model(name).text, "text/html");
const number = (name, id) => {
  const found = parsed(name).getElementById(id);
  return found === null ? 0 : Number(found.textContent.replace(/[^0-9.]/g, ""));
};
const newest = () => {
  const {x, y} = model("cells").data;
  const last = Math.max(...x);
  return {at: last, places: new Set(Array.from(y).filter((_, i) => x[i] === last)).size};
};
const guards = () => Array.from(model("boxes").data.state).some((s) => s.includes("guard"));
"""


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[str]:
    """`interpunct studio demo` as a process of its own; its address."""
    command = [sys.executable, "-m", "interpunct.cli.main", "studio", "demo", "--json"]
    options = ["--port", "0", "--seconds", "600", "--folder", str(tmp_path / "demo")]
    log = tmp_path / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=errors, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, log.read_text()[-3000:]
            yield json.loads(line)["address"]
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                pytest.fail(f"The studio does not end: {log.read_text()[-3000:]}")


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of a laptop's size, in whatever Chromium there is."""
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    assert found is not None, "No Chromium: sh scripts/ensure_chromium.sh installs Debian's."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIETLY)
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        page.set_default_timeout(PATIENCE)
        yield page
        browser.close()


def wait(page: Page, condition: str, *given: object) -> None:
    """Until the page says so; `given` is what the condition knows as `given`."""
    code = f"(given) => {{ {SPOKEN} return {condition}; }}"
    page.wait_for_function(code, arg=list(given), polling=250)


def ask(page: Page, question: str) -> float:
    answer: float = page.evaluate(f"() => {{ {SPOKEN} return {question}; }}")
    return answer


def zoom(page: Page, start: float, end: float) -> None:
    """As a person does: a mouse that is slow to move presses instead of dragging; then again."""
    zoomed = "model('map-map').y_range.end - model('map-map').y_range.start < 8"
    for _ in range(10):
        drag(page, start, end)
        if ask(page, zoomed):
            return
    raise AssertionError("the map does not zoom")


def drag(page: Page, start: float, end: float) -> None:
    """Over a part of the map's height, with the mouse."""
    left, top, width, height = page.evaluate("""() => {
      const view = Bokeh.index.find_one_by_id(Bokeh.documents[0].get_model_by_name("map-map").id);
      const around = view.el.getBoundingClientRect(), inner = view.frame.bbox;
      return [around.x + inner.left, around.y + inner.top, inner.width, inner.height];
    }""")
    page.mouse.move(left + width / 2, top + start * height)
    page.mouse.down()
    page.mouse.move(left + width / 2 + 30, top + end * height, steps=8)
    page.mouse.up()


@pytest.mark.slow
def test_a_zoom_spares_the_query_work_and_going_back_restores(studio: str, page: Page) -> None:
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(studio)

    # Data moves.
    wait(page, "window.Bokeh !== undefined && Bokeh.documents.length > 0")
    wait(page, "number('head', 'batches') > 2 && newest().places === 9")
    rows, newest = ask(page, "number('head', 'rows')"), ask(page, "newest().at")
    wait(page, "number('head', 'rows') > given[0] && newest().at > given[1]", rows, newest)
    assert ask(page, "number('head', 'skipped')") == 0

    # A zoom sends feedback, and what nobody sees is not taken in any more.
    zoom(page, 0.34, 0.65)
    wait(page, "number('note', 'sent') >= 1 && model('note').text.includes('3, 4, 5')")
    wait(page, "guards() && number('head', 'skipped') > 0")
    spared = ask(page, "number('head', 'skipped')")
    wait(page, "number('head', 'skipped') > given[0]", spared)
    wait(page, "newest().places === 3")

    # Going back restores: the guards expire, and all segments are there again.
    page.click("text=show all")
    wait(page, "model('note').text.includes('everything')")
    wait(page, "!guards() && newest().places === 9")
    shown = ask(page, "newest().at")
    wait(page, "newest().at > given[0] && newest().places === 9", shown)

    # The other tab and the other look.
    page.click("text=merge")
    wait(page, "model('merge-state').text.includes('b was started')")
    page.click("text=dark")
    wait(page, "document.documentElement.dataset.look === 'dark'")

    assert {urlsplit(url).netloc for url in asked} == {urlsplit(studio).netloc}  # no other host
    assert errors == []
