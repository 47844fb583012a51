"""The command line. Each command reads its options here and leaves the work to the rooms below.

Results go to standard output, progress and complaints to standard error, so that scripts can read the one and people
the other. Heavy imports wait until a command runs, so that --help is quick.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from silograph import __version__
from silograph.errors import ParameterError, SilographError

BAD_INPUT, WRONG_USAGE = 1, 2
NOT_CONVERGED = 3  # exit code: the graph was learned and written, but not to the tolerance asked for

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Learn graphs from signals that may not leave their silos.",
)
complaints = Console(stderr=True, soft_wrap=True)


class SolverChoice(StrEnum):
    """The solvers by the names that Settings takes."""

    newton = "newton"
    gradient = "gradient"


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


LEARN_HELP = """Learn the graph of one table of signals, exactly, with a certificate.

The table has one row per sample and one column per node: CSV, TSV, AFNI/PCP .1D, .npy, .npz or Parquet. Its first line
may name the nodes.

[bold]Examples[/bold]

  silograph learn brain.csv --degree 5 --out run/

  silograph learn weather.csv --drop date --standardize --json

[bold]Exit codes[/bold]  0 learned; 1 bad input; 2 wrong options; 3 learned and written, but the tolerance was not met.
After 1 and 2 nothing was written.
"""


@app.command(help=LEARN_HELP)
def learn(
    signals: Annotated[Path, typer.Argument(help="Table of signals: rows are samples, columns are nodes.")],
    degree: Annotated[
        float | None,
        typer.Option(
            help="Mean number of neighbours. Default: 5, or 3 up to 15 nodes; at most half of what is possible."
        ),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="The model's α, with --beta, instead of a degree.")] = None,
    beta: Annotated[float | None, typer.Option(help="The model's β, with --alpha, instead of a degree.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write: graph.graphml, edges.csv, graph.npz, run.json.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier run in --out.")] = False,
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Centre and scale each node first (different units or amplitudes).")
    ] = False,
    drop: Annotated[list[str] | None, typer.Option(help="Column that is not a node; may be repeated.")] = None,
    key: Annotated[str | None, typer.Option(help="Which array of an .npz file holds the signals.")] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first row names the nodes. Default: found out."),
    ] = None,
    precomputed: Annotated[
        bool, typer.Option("--precomputed", help="The table is a symmetric matrix of mean squared differences.")
    ] = False,
    allow: Annotated[
        Path | None, typer.Option(help="CSV of two node names per row: the only pairs that may be edges.")
    ] = None,
    forbid: Annotated[
        Path | None, typer.Option(help="CSV of two node names per row: pairs that may not be edges.")
    ] = None,
    solver: Annotated[
        SolverChoice, typer.Option(help="The exact Newton method, or the paper's gradient method.")
    ] = SolverChoice.newton,
    tol: Annotated[float, typer.Option(help="Relative duality gap to reach.")] = 1e-8,
    zeta: Annotated[float, typer.Option(help="Added to each degree under the logarithm.")] = 0.0,
    max_iter: Annotated[int | None, typer.Option(help="Most iterations of one solve.")] = None,
    neighbours: Annotated[
        int | None, typer.Option(help="Nearest neighbours to try first when nodes are many; still exact. 0: never.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run's record as JSON instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Learn one silo's graph."""
    from silograph.cli_learn import Request, advice, run, summary
    from silograph.learning import Settings, degree_missed, not_converged, worth_telling

    def work() -> None:
        settings = Settings(
            degree=degree,
            alpha=alpha,
            beta=beta,
            zeta=zeta,
            solver=solver.value,
            tol=tol,
            max_iter=max_iter,
            neighbours=neighbours,
        )
        request = Request(
            signals=signals,
            settings=settings,
            out=out,
            force=force,
            standardize=standardize,
            drop=tuple(drop or ()),
            key=key,
            header=header,
            precomputed=precomputed,
            allow=allow,
            forbid=forbid,
        )
        learned, record = run(request, show_progress=not quiet and complaints.is_terminal)
        if as_json:
            typer.echo(json.dumps(record, indent=2, ensure_ascii=False))
        elif not quiet:
            Console().print(summary(request, record))
            for note in advice(request, record):
                _tell("Note", "cyan", note)
        if worth_telling(learned, settings):
            _warn(degree_missed(learned))
        if not learned.solution.converged:
            _warn(not_converged(learned, settings))
            raise typer.Exit(NOT_CONVERGED)

    _guarded(work)


def _guarded(work: Callable[[], None]) -> None:
    """Run a command; an error that a user can cure becomes a message and an exit code."""
    try:
        work()
    except SilographError as error:
        _tell(type(error).__name__, "red", str(error))
        raise typer.Exit(WRONG_USAGE if isinstance(error, ParameterError) else BAD_INPUT) from None
    except KeyboardInterrupt:
        complaints.print("Interrupted; nothing was written.")
        raise typer.Exit(130) from None
    except BrokenPipeError:  # the reader of our output left, as `| head` does
        sys.stderr.close()
        raise typer.Exit(0) from None


def _warn(message: str) -> None:
    _tell("Warning", "yellow", message)


def _tell(kind: str, colour: str, message: str) -> None:
    complaints.print(f"[bold {colour}]{kind}:[/bold {colour}] ", end="")
    complaints.print(message, markup=False, highlight=False)
