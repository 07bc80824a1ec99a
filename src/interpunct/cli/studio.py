"""`interpunct studio`: a live page of a running query."""

from __future__ import annotations

import json
import signal
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from interpunct.cli.shell import Commands
from interpunct.progress.clock import RealClock

if TYPE_CHECKING:
    from interpunct.studio.server import Served

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="A live page of a running query: data down, feedback up.\n\n"
    "Example: interpunct studio demo",
)

Port = Annotated[int, typer.Option("--port", help="Where to serve; 0 takes any free one.")]
Address = Annotated[
    str, typer.Option("--address", help="Whom to serve; others than this machine need a token.")
]
Token = Annotated[
    str | None, typer.Option("--token", help="What acting on the query needs; made if needed.")
]
Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Whether to open the page in a browser.")
]
Seconds = Annotated[
    int | None, typer.Option("--seconds", min=1, help="How long; until Ctrl-C if not said.")
]
AsJson = Annotated[bool, typer.Option("--json", help="The address as JSON on stdout.")]

MADE = ("spark.log", "sensors.parquet", "vehicles.parquet", "checkpoint", "merge")


@app.command()
def demo(
    seconds: Seconds = None,
    folder: Annotated[Path, typer.Option("--folder", help="Where everything is written.")] = Path(
        "out/studio"
    ),
    port: Port = 5006,
    address: Address = "127.0.0.1",
    token: Token = None,
    browser: Browser = False,
    as_json: AsJson = False,
) -> None:
    """The speed map on Spark's local mode: zoom into the map, and what you do not see is not
    computed. Stop a replica in the merge. What an earlier demo left in the folder is deleted first,
    and a folder with anything else is refused.

    Example: interpunct studio demo --seconds 300
    """
    from interpunct.lab.folders import fresh
    from interpunct.spark.session import session
    from interpunct.spark.stopping import cut_short
    from interpunct.studio import demo as speeds
    from interpunct.studio.replicas import Bench
    from interpunct.studio.server import opened
    from interpunct.studio.watched import Running

    fresh(folder, known=MADE)
    Console(stderr=True).print("Starting Spark …")
    clock = RealClock()
    began = clock.now()
    spark = session(2, log=folder / "spark.log")
    took = clock.now() - began
    # Spark's own handler cancels the jobs of all queries, which then fail before they are stopped.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        view = speeds.speed_map()
        traffic = speeds.Traffic() if seconds is None else speeds.Traffic(seconds + 60)
        query = speeds.start(spark, folder, view, traffic, ahead=took)
        sensors = folder / "sensors.parquet"
        bench = Bench(spark, folder / "merge", sensors, after=query.query)
        served = opened(Running(query), views=[view], port=port, address=address, token=token,
                        bench=bench, about=speeds.ABOUT)  # fmt: skip
        _watch(served, seconds, browser, as_json, lambda: not query.query.isActive)
        stopping = bool(query.query.isActive)  # else it has come to an end of its own
        bench.close()
        query.stop()
        error = query.query.exception()
        if error is not None and not (stopping and cut_short(error)):
            raise error
        if not as_json:
            Console(stderr=True).print(
                f"Ended. What it has written is in {folder}; how far it came: "
                f"interpunct status {folder}/checkpoint", soft_wrap=True,
            )  # fmt: skip
    finally:
        spark.stop()


@app.command()
def attach(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint of a flow, as given to start.")],
    seconds: Seconds = None,
    port: Port = 5006,
    address: Address = "127.0.0.1",
    token: Token = None,
    browser: Browser = False,
    as_json: AsJson = False,
) -> None:
    """Show a query of some other program from what it leaves beside its checkpoint.

    Example: interpunct studio attach /data/checkpoints/speed-map --port 5007
    """
    from interpunct.spark.reporter import seen
    from interpunct.studio.server import opened
    from interpunct.studio.watched import Attached

    seen(checkpoint)  # an error now, where there is nothing to be seen
    served = opened(Attached(checkpoint), port=port, address=address, token=token)
    _watch(served, seconds, browser, as_json, lambda: False)


def _watch(
    served: Served, seconds: int | None, browser: bool, as_json: bool, ended: Callable[[], bool]
) -> None:
    """Say where the page is, and serve it until it is time to stop."""
    told = {"address": served.link, "metrics": f"{served.address}metrics"}
    if as_json:
        typer.echo(json.dumps(told))
    else:
        typer.echo(f"The studio is at {told['address']}")
        typer.echo(f"Prometheus finds its metrics at {told['metrics']}; Ctrl-C stops.")
    if browser:
        webbrowser.open(served.link)
    clock = RealClock()
    last = None if seconds is None else clock.now() + seconds * 1_000_000
    try:
        served.run(until=lambda: ended() or (last is not None and clock.now() >= last))
    except KeyboardInterrupt:
        typer.echo("Stopping …", err=True)
    finally:
        served.close()
