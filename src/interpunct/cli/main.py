"""The command `interpunct`."""

from __future__ import annotations

import typer

from interpunct import __version__
from interpunct.cli import lab
from interpunct.cli.demo import demo
from interpunct.cli.shell import Commands

app = typer.Typer(
    name="interpunct",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Punctuated data streams for PySpark.\n\nExample: interpunct lab bench --json",
)
app.add_typer(lab.app, name="lab")
app.command("demo")(demo)


@app.command()
def version() -> None:
    """The installed version.

    Example: interpunct version
    """
    typer.echo(__version__)


if __name__ == "__main__":
    app()
