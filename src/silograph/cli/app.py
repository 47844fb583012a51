"""The command line. Each command has a module of its own and leaves the work to the packages below.

Results go to standard output, progress and complaints to standard error, so that scripts can read the one and people
the other. Heavy imports wait until a command runs, so that --help is quick.
"""

from typing import Annotated

import typer

from silograph import __version__
from silograph.cli.audit import AUDIT_HELP, audit
from silograph.cli.compare import COMPARE_HELP, compare
from silograph.cli.federation.commands import app as federation_app
from silograph.cli.learn import LEARN_HELP, learn
from silograph.cli.report import REPORT_HELP, report
from silograph.cli.reproduce import REPRODUCE_HELP, reproduce
from silograph.cli.site.commands import app as site_app

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Learn graphs from signals that may not leave their silos.",
)
app.command(help=LEARN_HELP)(learn)
app.command(help=REPORT_HELP)(report)
app.command(help=COMPARE_HELP)(compare)
app.command(help=REPRODUCE_HELP)(reproduce)
app.command(help=AUDIT_HELP)(audit)
app.add_typer(federation_app, name="federation")
app.add_typer(site_app, name="site")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"silograph {__version__}")
        raise typer.Exit()


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version
