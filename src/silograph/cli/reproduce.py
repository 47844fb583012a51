"""The command `silograph reproduce`: its options; the work is done in experiments.py, which imports much."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from silograph._util.extras import required
from silograph.cli.options import takes
from silograph.cli.output import PIPE_WIDTH, Output, complaints, run_guarded
from silograph.errors import ParameterError

REPRODUCE_HELP = """Check the paper: run its tables and figures, and set our numbers beside the printed ones.

Every method is tuned on its own grid, over many random draws. What is finished is kept in the folder of results, so
that a run that was stopped goes on where it was. Tables are written as Markdown, CSV and JSON, figures as SVG and PNG.
`accuracy` is no table of the paper: it measures the defaults against known truth.

COIL-20 and ABIDE are looked for in the folder that the environment variable SILOGRAPH_DATA names, or where --coil and
--abide say; `all` leaves out what is not there.

[bold]Examples[/bold]

  silograph reproduce --list

  silograph reproduce table1 --seeds 30 --out paper/

  silograph reproduce all --quick

  silograph reproduce accuracy --out accuracy/

[bold]Exit codes[/bold]  0 done; 1 data not found or not as expected; 2 wrong options; 130 interrupted, what was
finished is kept.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproduceOptions:
    """What a user may say."""

    names: Annotated[
        list[str] | None, typer.Argument(help="Tables and figures by name, or `all`.", metavar="[NAME]...")
    ] = None
    show_list: Annotated[bool, typer.Option("--list", help="List the names, and exit.")] = False
    quick: Annotated[
        bool, typer.Option("--quick", help="Few draws and coarse grids: a first look, in two minutes for `all`.")
    ] = False
    out: Annotated[
        Path | None, typer.Option(help="Folder of results. Default: paper/, or paper-quick/ with --quick.")
    ] = None
    seeds: Annotated[
        int | None, typer.Option(help="Draws of each synthetic scenario. Default: 30, or 4 with --quick.")
    ] = None
    draws: Annotated[
        int | None, typer.Option(help="Draws of four objects of COIL-20. Default: 20, or 4 with --quick.")
    ] = None
    workers: Annotated[
        int | None, typer.Option(help="Processes to run at once; the numbers do not depend on it. Default: all cores.")
    ] = None
    coil: Annotated[
        Path | None, typer.Option(help="COIL-20: a .mat or .npz file, or a folder of images.", show_default=False)
    ] = None
    abide: Annotated[
        Path | None, typer.Option(help="ABIDE: an .npz file, or a folder of .1D files.", show_default=False)
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False


@takes(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> None:
    """Run tables and figures of the paper."""
    go_on = "run the same command again: what was finished is kept" if options.names else None
    run_guarded(lambda: _reproduce(options), go_on=go_on)


def _reproduce(options: ReproduceOptions) -> None:
    for module in ("joblib", "networkx", "matplotlib"):
        required(module, extra="paper", purpose="to reproduce the paper")
    from silograph.cli.experiments import listing, run_experiments

    if options.show_list:
        Console().print(listing())
        return
    if not options.names:
        raise ParameterError("Name a table or figure, or `all`. See them with: silograph reproduce --list")
    folder = options.out or Path("paper-quick" if options.quick else "paper")
    results = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
    output = Output(as_json=False, quiet=options.quiet)
    done = run_experiments(
        tuple(options.names),
        folder,
        quick=options.quick,
        sizes={"seeds": options.seeds, "draws": options.draws, "workers": options.workers},
        data={"coil": options.coil, "abide": options.abide},
        console=None if options.quiet else results,
        progress=complaints if output.progress else None,
    )
    left_out: dict[str, list[str]] = {}
    for one in done:
        if one.skipped is not None:
            left_out.setdefault(one.skipped, []).append(one.experiment.name)
    for why, which in left_out.items():
        output.note(f"Left out: {', '.join(which)}. {why}")
    if not options.quiet:
        results.print(f"Written to {folder}", markup=False, highlight=False)
