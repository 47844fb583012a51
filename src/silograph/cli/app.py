"""The command line. Each command reads its options here and leaves the work to the rooms below.

Results go to standard output, progress and complaints to standard error, so that scripts can read the one and people
the other. Heavy imports wait until a command runs, so that --help is quick.
"""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from silograph import __version__
from silograph.cli.federation.commands import app as federation_app
from silograph.cli.output import NOT_CONVERGED, PIPE_WIDTH, Output, complaints, guarded, tell, warn
from silograph.cli.site.commands import app as site_app
from silograph.errors import ParameterError

if TYPE_CHECKING:
    from silograph.cli.several_tables import StudyRequest
    from silograph.data.costs import TableOptions


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Learn graphs from signals that may not leave their silos.",
)
app.add_typer(federation_app, name="federation")
app.add_typer(site_app, name="site")


class MethodChoice(StrEnum):
    """The methods by the names that StudySettings takes."""

    exact = "exact"
    algorithm1 = "algorithm1"
    independent = "independent"
    pooled = "pooled"
    fedavg = "fedavg"
    fedprox = "fedprox"
    mrmtl = "mrmtl"
    ditto = "ditto"


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


LEARN_HELP = """Learn graphs from tables of signals, exactly, with a certificate.

One table: its graph. Several tables, each a silo with the same nodes: a graph for each, and the consensus of what they
share. A table has one row per sample and one column per node: CSV, TSV, AFNI/PCP .1D, .npy, .npz or Parquet. Its first
line may name the nodes; silos are aligned by these names.

[bold]Examples[/bold]

  silograph learn brain.csv --degree 5 --out run/

  silograph learn oslo.csv lima.csv kyoto.csv --degree 5 --out run/

  silograph learn oslo.csv lima.csv --coupling 0.9 --sparsity 0.3 --json

  silograph learn --resume run/

[bold]Exit codes[/bold]  0 learned; 1 bad input; 2 wrong options; 3 learned and written, but the tolerance was not met.
After 1 and 2 nothing was written. 130 interrupted; a run over several silos with --out can be resumed.
"""
SILOS_PANEL, ONE_PANEL, FILES_PANEL = "Several silos", "One table", "Tables and results"


@app.command(help=LEARN_HELP)
def learn(
    signals: Annotated[
        list[Path] | None, typer.Argument(help="Tables of signals, one per silo: rows are samples, columns are nodes.")
    ] = None,
    degree: Annotated[
        float | None,
        typer.Option(
            help="Mean number of neighbours; of several silos, what each would have alone. "
            "Default: 5, or 3 up to 15 nodes; at most half of what is possible."
        ),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="The model's α, with --beta, instead of a degree.")] = None,
    beta: Annotated[float | None, typer.Option(help="The model's β, with --alpha, instead of a degree.")] = None,
    tol: Annotated[
        float | None, typer.Option(help="Relative duality gap to reach. Default: 1e-8, or 1e-6 for several silos.")
    ] = None,
    zeta: Annotated[
        float | None,
        typer.Option(help="Added to each degree under the logarithm. Default: 0, or 0.5 for the paper's iterations."),
    ] = None,
    coupling: Annotated[
        float | None,
        typer.Option(
            help="How strongly silos are drawn together: 0 not at all, around 1 they fuse. Default: 0.5.",
            rich_help_panel=SILOS_PANEL,
        ),
    ] = None,
    sparsity: Annotated[
        float | None,
        typer.Option(
            help="How sparse the consensus is: 0 not at all, from 1 on it is empty. Default: 0.1.",
            rich_help_panel=SILOS_PANEL,
        ),
    ] = None,
    nu: Annotated[
        float | None,
        typer.Option(help="The model's ν, with --lam, instead of a coupling.", rich_help_panel=SILOS_PANEL),
    ] = None,
    lam: Annotated[
        float | None,
        typer.Option(help="The model's λ, with --nu, instead of a sparsity.", rich_help_panel=SILOS_PANEL),
    ] = None,
    method: Annotated[
        MethodChoice,
        typer.Option(help="The exact optimum, the paper's Algorithm 1, or a baseline.", rich_help_panel=SILOS_PANEL),
    ] = MethodChoice.exact,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Rounds of an iteration (default 50), or the most an exact method may take (200).",
            rich_help_panel=SILOS_PANEL,
        ),
    ] = None,
    pull: Annotated[
        float | None,
        typer.Option(
            help="Strength of FedProx, MRMTL and Ditto, in units of 4β. Default: 1.", rich_help_panel=SILOS_PANEL
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Go on with the unfinished run in this folder, just as if it had not stopped.",
            rich_help_panel=SILOS_PANEL,
        ),
    ] = None,
    solver: Annotated[
        SolverChoice | None,
        typer.Option(
            help="The exact Newton method, or the paper's gradient steps. Default: newton where there is a choice."
        ),
    ] = None,
    max_iter: Annotated[
        int | None, typer.Option(help="Most iterations of one solve.", rich_help_panel=ONE_PANEL)
    ] = None,
    neighbours: Annotated[
        int | None,
        typer.Option(
            help="Nearest neighbours to try first when nodes are many; still exact. 0: never.",
            rich_help_panel=ONE_PANEL,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write: graphs (graph.graphml, edges.csv, graph.npz) and run.json; while a run over several "
            "silos goes on, its checkpoint.",
            rich_help_panel=FILES_PANEL,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier run in --out.", rich_help_panel=FILES_PANEL)
    ] = False,
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize",
            help="Centre and scale each node first (different units or amplitudes).",
            rich_help_panel=FILES_PANEL,
        ),
    ] = False,
    drop: Annotated[
        list[str] | None,
        typer.Option(help="Column that is not a node; may be repeated.", rich_help_panel=FILES_PANEL),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Which array of an .npz file holds the signals.", rich_help_panel=FILES_PANEL)
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first row names the nodes. Default: found out.",
            rich_help_panel=FILES_PANEL,
        ),
    ] = None,
    precomputed: Annotated[
        bool,
        typer.Option(
            "--precomputed",
            help="Tables are symmetric matrices of mean squared differences.",
            rich_help_panel=FILES_PANEL,
        ),
    ] = False,
    allow: Annotated[
        Path | None,
        typer.Option(
            help="CSV of two node names per row: the only pairs that may be edges.", rich_help_panel=FILES_PANEL
        ),
    ] = None,
    forbid: Annotated[
        Path | None,
        typer.Option(help="CSV of two node names per row: pairs that may not be edges.", rich_help_panel=FILES_PANEL),
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report", help="Also write report.html, a page to look at, into --out.", rich_help_panel=FILES_PANEL
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run's record as JSON instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Learn one silo's graph, or those of several and their consensus."""

    def work() -> None:
        from silograph.data.costs import TableOptions

        tables = TableOptions(
            standardize=standardize,
            drop=tuple(drop or ()),
            key=key,
            header=header,
            precomputed=precomputed,
            allow=allow,
            forbid=forbid,
        )
        output = Output(as_json=as_json, quiet=quiet)
        paths = tuple(signals or ())
        if report and out is None and resume is None:
            raise ParameterError("--report: it goes into the run's folder. Name one with --out.")
        page = (resume or out) if report else None
        for_silos = {
            "coupling": coupling,
            "sparsity": sparsity,
            "nu": nu,
            "lam": lam,
            "rounds": rounds,
            "pull": pull,
        }
        for_one = {"max-iter": max_iter, "neighbours": neighbours}
        if resume is not None:
            given = [degree, alpha, beta, tol, zeta, solver, drop, key, header, allow, forbid, out]
            given += [*for_silos.values(), *for_one.values()]
            set_flags = force or standardize or precomputed or method is not MethodChoice.exact
            if paths or set_flags or any(value is not None for value in given):
                raise ParameterError("--resume: the run knows its tables and its options. Give neither.")
            _resume_study(resume, output, page)
        elif not paths:
            raise ParameterError("Give at least one table of signals, or --resume FOLDER. See --help.")
        elif len(paths) == 1:
            _refuse(for_silos, "it belongs to several silos. Give more tables, or leave it out.")
            if method is not MethodChoice.exact:
                raise ParameterError(f"--method {method.value}: it belongs to several silos. Give more tables.")
            _learn_one(
                paths[0],
                {
                    "degree": degree,
                    "alpha": alpha,
                    "beta": beta,
                    "zeta": zeta or 0.0,
                    "solver": (solver or SolverChoice.newton).value,
                    "tol": 1e-8 if tol is None else tol,
                    "max_iter": max_iter,
                    "neighbours": neighbours,
                },
                tables,
                out,
                force,
                output,
                page,
            )
        else:
            _refuse(for_one, "it belongs to one table. Leave it out.")
            settings = {
                "method": method.value,
                "degree": degree,
                "alpha": alpha,
                "beta": beta,
                "coupling": coupling,
                "sparsity": sparsity,
                "nu": nu,
                "lam": lam,
                "zeta": zeta,
                "tol": 1e-6 if tol is None else tol,
                "rounds": rounds,
                "solver": None if solver is None else solver.value,
                "pull": pull,
            }
            _learn_several(paths, settings, tables, out, force, output, page)

    guarded(work, resumable=resume or (out if signals and len(signals) > 1 else None))


REPORT_HELP = """Show a run: one HTML page that opens offline, and figures for a paper.

The page answers what the silos share, where each differs, who contributed how much, and whether to trust it. It holds
everything it needs and sends nothing. With coordinates, nodes lie where they are; with three (MNI), it is a brain.

[bold]Examples[/bold]

  silograph report run/

  silograph report run/ --figures svg,pdf

  silograph report run/ --coordinates regions.csv --out report.html

[bold]Exit codes[/bold]  0 written; 1 no finished run there, or bad coordinates; 2 wrong options.
"""


@app.command(help=REPORT_HELP)
def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a run: what --out named.", metavar="RUN")],
    out: Annotated[Path | None, typer.Option(help="The page. Default: report.html in the run's folder.")] = None,
    figures: Annotated[
        str | None,
        typer.Option(
            help="Also figures, into figures/ beside the page: svg, pdf, png, or some by commas.", metavar="FORMATS"
        ),
    ] = None,
    coordinates: Annotated[
        Path | None, typer.Option(help="CSV file with name, x, y of each node, and z in MNI space for a brain.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The page's title. Default: the run's folder.")] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Show a run."""

    def work() -> None:
        from silograph.cli.report import ReportRequest, formats_of, run

        request = ReportRequest(
            run=folder, out=out, figures=formats_of(figures), coordinates=coordinates, title=title, open_it=open_it
        )
        for line in run(request):
            if not quiet:
                Console(soft_wrap=True).print(line, markup=False, highlight=False)

    guarded(work)


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


@app.command(help=REPRODUCE_HELP)
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
        from silograph._util.extras import required

        for module in ("joblib", "networkx", "matplotlib"):
            required(module, extra="paper", purpose="to reproduce the paper")
        from silograph.cli.reproduce import ReproduceRequest, listing, run

        if show_list:
            Console().print(listing())
            return
        if not names:
            raise ParameterError("Name a table or figure, or `all`. See them with: silograph reproduce --list")
        request = ReproduceRequest(
            names=tuple(names),
            out=folder,
            seeds=seeds,
            draws=draws,
            quick=quick,
            workers=workers,
            coil=coil,
            abide=abide,
        )
        results = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
        output = Output(as_json=False, quiet=quiet)
        done = run(request, console=None if quiet else results, progress=complaints if output.progress else None)
        left_out: dict[str, list[str]] = {}
        for one in done:
            if one.skipped is not None and not quiet:
                left_out.setdefault(one.skipped, []).append(one.experiment.name)
        for why, which in left_out.items():
            tell("Note", "cyan", f"Left out: {', '.join(which)}. {why}")
        if not quiet:
            results.print(f"Written to {folder}", markup=False, highlight=False)

    guarded(work, go_on="run the same command again: what was finished is kept" if names else None)


def _refuse(options: dict[str, Any], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise ParameterError(f"--{name}: {why}")


def _learn_one(
    path: Path,
    settings: dict[str, Any],
    tables: TableOptions,
    out: Path | None,
    force: bool,
    output: Output,
    page: Path | None,
) -> None:
    from silograph.cli.one_table import Request, advice, run, summary
    from silograph.local.learn import Settings, degree_missed, not_converged, worth_telling

    request = Request(signals=path, settings=Settings(**settings), tables=tables, out=out, force=force)
    learned, record = run(request, show_progress=output.progress)
    output.result(record, lambda: summary(request, record), lambda: advice(request, record))
    _write_page(page, output)
    if worth_telling(learned, request.settings):
        warn(degree_missed(learned))
    if not learned.solution.converged:
        warn(not_converged(learned, request.settings))
        raise typer.Exit(NOT_CONVERGED)


def _learn_several(
    paths: tuple[Path, ...],
    settings: dict[str, Any],
    tables: TableOptions,
    out: Path | None,
    force: bool,
    output: Output,
    page: Path | None,
) -> None:
    from silograph.cli.several_tables import StudyRequest
    from silograph.methods.common.settings import StudySettings

    request = StudyRequest(signals=paths, settings=StudySettings(**settings), tables=tables, out=out, force=force)
    _run_study(request, output, page)


def _resume_study(folder: Path, output: Output, page: Path | None) -> None:
    from silograph.cli.several_tables import resumed
    from silograph.runs.folder import finished_record

    record = finished_record(folder)
    if record is None:
        _run_study(resumed(folder), output, page)
    elif output.as_json:
        typer.echo(json.dumps(record, indent=2, ensure_ascii=False))
    elif not output.quiet:
        tell("Note", "cyan", f"{folder}: this run is finished, there was nothing to resume.")
        _write_page(page, output)


def _run_study(request: StudyRequest, output: Output, page: Path | None) -> None:
    from silograph.cli.several_tables import advice, run, summary
    from silograph.engine.study import degree_missed, not_converged

    study, record = run(request, show_progress=output.progress)
    output.result(record, lambda: summary(record, request.out), lambda: advice(request, record))
    _write_page(page, output)
    missed, trouble = degree_missed(study, request.settings), not_converged(study, request.settings)
    if missed is not None:
        warn(missed)
    if trouble is not None:
        warn(trouble)
        raise typer.Exit(NOT_CONVERGED)


def _write_page(folder: Path | None, output: Output) -> None:
    """The report of the run in this folder, if one was asked for."""
    if folder is None:
        return
    from silograph.cli.report import ReportRequest, run

    for line in run(ReportRequest(run=folder)):
        if not (output.quiet or output.as_json):
            Console(soft_wrap=True).print(line, markup=False, highlight=False)
