"""What every command shares: errors as one line, progress on stderr, a table or JSON on stdout."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from typer.core import TyperGroup

from interpunct.lab.isolated import Report
from interpunct.model.errors import InterpunctError
from interpunct.progress.clock import Clock, RealClock

SHORT = 2_000_000  # µs of work that shows no progress in lines


class Commands(TyperGroup):
    """A group whose commands fail with one clear line and exit code 1."""

    def invoke(self, ctx: Any) -> Any:  # typer's own copy of click's Context, which it hides
        try:
            return super().invoke(ctx)
        except (InterpunctError, OSError) as error:
            Console(stderr=True).print(f"[bold red]error:[/] {_told(error)}", soft_wrap=True)
            raise typer.Exit(1) from error

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each command with the whole first sentence of its help."""
        listed = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, _sentence(c.help or "")) for name, c in listed if c])


def _sentence(text: str) -> str:
    first, _, _ = " ".join(text.split()).partition(". ")
    return first.removesuffix(".")


def _told(error: Exception) -> str:
    """In one line; where a caret points at something, in the lines that it was written in."""
    text = str(error)
    pointing = any(line.strip() and not line.strip(" \t^") for line in text.splitlines())
    return escape(text if pointing else " ".join(text.split()))


@contextmanager
def progress(title: str, clock: Clock | None = None) -> Iterator[Report]:
    """A bar on stderr where someone can see it move, else a line with each tenth of the work, of
    work that takes longer than one cares to be told of."""
    console, clock = Console(stderr=True), clock or RealClock()
    tenths, began = -1, clock.now()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(title, total=1.0)

        def report(done: float, doing: str) -> None:
            nonlocal tenths
            bar.update(task, completed=done, description=f"{title}: {doing}" if doing else title)
            unseen = not console.is_terminal and clock.now() - began > SHORT
            if unseen and int(10 * done) > tenths:
                tenths = int(10 * done)
                said = f"{title}: {10 * tenths} % done"
                console.print(f"{said}, {doing}" if doing else said, soft_wrap=True)

        yield report


def figure_path(plot: Path | None, no_plot: bool, as_json: bool, name: str) -> Path | None:
    """Where the figure goes: as asked, else out/<name>.png for people and nowhere for programs."""
    if plot is not None and no_plot:
        raise typer.BadParameter("--plot and --no-plot exclude each other.")
    if plot is None and (no_plot or as_json):
        return None
    path = plot or Path("out") / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)  # fail now, not after a quarter of an hour
    return path


def show(
    result: Mapping[str, Any],
    table: Callable[[], Table],
    as_json: bool,
    figure: Path | None = None,
) -> None:
    """JSON alone for programs; for people a table, what was expected, the seed and the figure."""
    if as_json:
        typer.echo(json.dumps(result, indent=2))
        return
    console = Console()
    console.print(table())
    for name, holds in result["expected"].items():
        mark = "[green]yes[/]" if holds else "[red]no[/] "
        console.print(f"{mark}  {name.replace('_', ' ')}")
    console.print(f"seed {result['seed']}" + (f", figure in {figure}" if figure else ""))


class Experiment(Protocol):
    """What an experiment returns."""

    def to_json(self) -> dict[str, Any]: ...


Outcome = TypeVar("Outcome", bound=Experiment)


def carry_out(
    name: str,
    run: Callable[[Report], Outcome],
    table: Callable[[Outcome], Table],
    as_json: bool,
    draw: Callable[[Outcome, Path], None] | None = None,
    plot: Path | None = None,
    no_plot: bool = False,
) -> None:
    """Run an experiment with a progress bar, draw its figure if it has one, and show it."""
    path = None if draw is None else figure_path(plot, no_plot, as_json, name)
    with progress(name) as report:
        result = run(report)
    if draw is not None and path is not None:
        draw(result, path)
    show(result.to_json(), lambda: table(result), as_json, path)
