"""The command `silograph reproduce`: its options; the work is done in experiments.py, which imports much."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from silograph._util.extras import required
from silograph.cli.output import PIPE_WIDTH, Output, complaints, guarded, tell
from silograph.errors import ParameterError

REPRODUCE_HELP = """Check the paper: run its tables and figures, and set our numbers beside the printed ones.

Every method is tuned on its own grid, over many random draws. What is finished is kept in the folder of results, so
that a run that was stopped goes on where it was. Tables are written as Markdown, CSV and JSON, figures as SVG and PNG.

COIL-20 and ABIDE are looked for in the folder that the environment variable SILOGRAPH_DATA names, or where --coil and
--abide say; `all` leaves out what is not there.

[bold]Examples[/bold]

  silograph reproduce --list

  silograph reproduce table1 --seeds 30 --out paper/

  silograph reproduce all --quick

[bold]Exit codes[/bold]  0 done; 1 data not found or not as expected; 2 wrong options; 130 interrupted, what was
finished is kept.
"""


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Tables and figures by name, or `all`.", metavar="[NAME]...")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the names, and exit.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few draws and coarse grids: a first look, in two minutes for `all`.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder of results. Default: paper/, or paper-quick/ with --quick.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Draws of each synthetic scenario. Default: 30, or 4 with --quick.")
    ] = None,
    draws: Annotated[
        int | None, typer.Option(help="Draws of four objects of COIL-20. Default: 20, or 4 with --quick.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes to run at once; the numbers do not depend on it. Default: all cores.")
    ] = None,
    coil: Annotated[
        Path | None, typer.Option(help="COIL-20: a .mat or .npz file, or a folder of images.", show_default=False)
    ] = None,
    abide: Annotated[
        Path | None, typer.Option(help="ABIDE: an .npz file, or a folder of .1D files.", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Run tables and figures of the paper."""
    folder = out or Path("paper-quick" if quick else "paper")

    def work() -> None:
        for module in ("joblib", "networkx", "matplotlib"):
            required(module, extra="paper", purpose="to reproduce the paper")
        from silograph.cli.experiments import listing, run_experiments

        if show_list:
            Console().print(listing())
            return
        if not names:
            raise ParameterError("Name a table or figure, or `all`. See them with: silograph reproduce --list")
        results = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
        output = Output(as_json=False, quiet=quiet)
        done = run_experiments(
            tuple(names),
            folder,
            quick=quick,
            sizes={"seeds": seeds, "draws": draws, "workers": workers},
            data={"coil": coil, "abide": abide},
            console=None if quiet else results,
            progress=complaints if output.progress else None,
        )
        left_out: dict[str, list[str]] = {}
        for one in done:
            if one.skipped is not None and not quiet:
                left_out.setdefault(one.skipped, []).append(one.experiment.name)
        for why, which in left_out.items():
            tell("Note", "cyan", f"Left out: {', '.join(which)}. {why}")
        if not quiet:
            results.print(f"Written to {folder}", markup=False, highlight=False)

    guarded(work, go_on="run the same command again: what was finished is kept" if names else None)
