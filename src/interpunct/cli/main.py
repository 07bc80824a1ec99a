"""The command `interpunct`."""

from __future__ import annotations

import json
from typing import Any

import typer

from interpunct import __version__
from interpunct.cli import lab, lab_feedback, lab_lmerge, studio
from interpunct.cli.availability import cutover, jumpstart, standby
from interpunct.cli.demo import demo
from interpunct.cli.doctor import doctor
from interpunct.cli.explain import explain
from interpunct.cli.feedback import feedback
from interpunct.cli.options import Json
from interpunct.cli.run import run, sql
from interpunct.cli.shell import Commands
from interpunct.cli.status import status

ORDER = (
    "demo", "doctor", "studio", "run", "sql", "explain", "status", "feedback",
    "standby", "cutover", "jumpstart", "lab", "version",
)  # fmt: skip


class Main(Commands):
    """Lists first what one tries first."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    name="interpunct",
    cls=Main,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Punctuated data streams for PySpark.\n\nExample: interpunct demo",
)
lab_feedback.add_to(lab.app)
lab_lmerge.add_to(lab.app)
app.add_typer(lab.app, name="lab")
app.add_typer(studio.app, name="studio")
for command in (standby, cutover, jumpstart):
    app.command()(command)
app.command("demo")(demo)
app.command("doctor")(doctor)
app.command("explain")(explain)
app.command("feedback")(feedback)
app.command("run")(run)
app.command("sql")(sql)
app.command("status")(status)


@app.command()
def version(as_json: Json = False) -> None:
    """The installed version.

    Example: interpunct version
    """
    typer.echo(json.dumps({"version": __version__}) if as_json else __version__)


if __name__ == "__main__":
    app()
