"""The command `silograph learn`: options in; a summary, notes and warnings out. The work is `learn_files`."""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from silograph.cli.options import given, takes
from silograph.cli.output import NOT_CONVERGED, Output, run_guarded, say, warn
from silograph.cli.progress import showing_progress
from silograph.cli.report import write_page
from silograph.errors import ParameterError
from silograph.methods.common.registry import built_in
from silograph.methods.common.settings import AUTO

NOT_SETTINGS = ("signals", "report", "as_json", "quiet", "open_sums")
METHODS = f"[{'|'.join(built_in())}]"
LEARN_HELP = """Learn graphs from tables of signals, exactly, with a certificate.

One table: its graph. Several tables, each a silo: a graph for each, and the consensus of what they share. A folder is a
site, and every table in it and below it is a silo of that site; of a BIDS folder, the time series of its subjects. A
table has one row per sample and one column per node: CSV, TSV or AFNI/PCP .1D (also .gz), .npy, .npz, Parquet, Feather
or Excel. Its first line may name the nodes; silos are aligned by these names.

[bold]Examples[/bold]

  silograph learn brain.csv --degree 5 --out run/

  silograph learn oslo.csv lima.csv kyoto.csv --degree 5 --out run/

  silograph learn oslo/ lima/ kyoto/ --degree 5 --missing pairs --missing-nodes allow --out run/

  silograph learn oslo.csv lima.csv kyoto.csv --stability 50 --stable 0.9 --out run/ --report

  silograph learn oslo.csv lima.csv --coupling 0.9 --sparsity 0.3 --json

  silograph learn new.csv --consensus run/ --out new/

  silograph learn --resume run/

[bold]Exit codes[/bold]  0 learned; 1 bad input; 2 wrong options; 3 learned and written, but the tolerance was not met.
After 1 and 2 nothing was written. 130 interrupted; a run over several silos with --out can be resumed.
"""
SilosOption = partial(typer.Option, rich_help_panel="Several silos")
TableOption = partial(typer.Option, rich_help_panel="One table")
StableOption = partial(typer.Option, rich_help_panel="Which edges to believe")
FilesOption = partial(typer.Option, rich_help_panel="Tables and results")
NoiseOption = partial(typer.Option, rich_help_panel="Noise on what several silos open")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnOptions:
    """What a user may say: mostly the settings of `learn_files`, by the same names."""

    signals: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Tables of signals, one per silo: rows are samples, columns are nodes. Or folders of them: sites."
        ),
    ] = None
    degree: Annotated[
        float | None,
        typer.Option(
            help="Mean number of neighbours. Of several silos, graphs are the strongest edges of what was learned. "
            "Default: 5, or 3 up to 15 nodes; at most half of what is possible. scores.npz ranks all pairs."
        ),
    ] = None
    alpha: Annotated[float | None, typer.Option(help="The model's α, with --beta, instead of a degree.")] = None
    beta: Annotated[float | None, typer.Option(help="The model's β, with --alpha, instead of a degree.")] = None
    tol: Annotated[
        float | None, typer.Option(help="Relative duality gap to reach. Default: 1e-8, or 1e-6 for several silos.")
    ] = None
    zeta: Annotated[
        float | None,
        typer.Option(help="Added to each degree under the logarithm. Default: 0, or 0.5 for the paper's iterations."),
    ] = None
    coupling: Annotated[
        str | None,
        SilosOption(
            metavar="[auto|NUMBER]",
            help="How strongly silos are drawn together: 0 not at all, around 1 they fuse; auto: chosen by rows that "
            "are held out. Default: auto, where method is exact and there are rows for it; else 0.5.",
        ),
    ] = None
    whole: Annotated[
        bool,
        SilosOption(
            "--whole",
            help="Keep all edges of the optimum; --degree is then what each silo would have alone, as between sites.",
        ),
    ] = False
    sparsity: Annotated[
        float | None,
        SilosOption(help="How sparse the consensus is: 0 not at all, from 1 on it is empty. Default: 0.1."),
    ] = None
    sums: Annotated[
        int | None,
        SilosOption(help="Sums that oneshot opens, 1 to 3; from the second on, silos near the consensus count more."),
    ] = None
    cost_unit: Annotated[
        float | None,
        SilosOption(help="The power of two in which mean squared differences are added up. Default: found out."),
    ] = None
    nu: Annotated[float | None, SilosOption(help="The model's ν, with --lam, instead of a coupling.")] = None
    lam: Annotated[float | None, SilosOption(help="The model's λ, with --nu, instead of a sparsity.")] = None
    method: Annotated[
        str,
        SilosOption(
            help="The exact optimum, the consensus of one sum, the paper's Algorithm 1, or a baseline.", metavar=METHODS
        ),
    ] = "exact"
    rounds: Annotated[
        int | None, SilosOption(help="Rounds of an iteration (default 50), or the most an exact method may take (200).")
    ] = None
    pull: Annotated[
        float | None,
        SilosOption(
            help="Strength of FedProx, MRMTL, Ditto and oneshot, in units of 4β. Default: 1, or the silo's choice."
        ),
    ] = None
    stability: Annotated[
        int,
        StableOption(
            help="Learn this many half-samples, such as 50, and tell how often each edge is found again, with an "
            "interval of its weight."
        ),
    ] = 0
    stable: Annotated[
        float | None,
        StableOption(
            metavar="PART",
            help="Also write the graphs of edges found in at least this part of half-samples, such as 0.9, to stable/.",
        ),
    ] = None
    quorum: Annotated[
        int | None,
        StableOption(help="Also write the graph of edges that are stable in at least so many silos, to quorum/."),
    ] = None
    newcomers: Annotated[
        bool,
        SilosOption(
            "--newcomers",
            help="Also leave each silo out once, so that newcomers can be told usual or unusual (--consensus).",
        ),
    ] = False
    consensus: Annotated[
        Path | None,
        TableOption(
            metavar="RUN",
            help="Learn the table beside the consensus of this finished run over several silos, and tell how unusual "
            "it is.",
        ),
    ] = None
    options: Annotated[
        list[str] | None,
        SilosOption("--option", help="A setting that only this method has; may be repeated.", metavar="NAME=VALUE"),
    ] = None
    resume: Annotated[
        Path | None, SilosOption(help="Go on with the unfinished run in this folder, just as if it had not stopped.")
    ] = None
    solver: Annotated[
        str | None,
        typer.Option(
            metavar="[newton|gradient]",
            help="The exact Newton method, or the paper's gradient steps. Default: newton where there is a choice.",
        ),
    ] = None
    max_iter: Annotated[int | None, TableOption(help="Most iterations of one solve.")] = None
    neighbours: Annotated[
        int | None, TableOption(help="Nearest neighbours to try first when nodes are many; still exact. 0: never.")
    ] = None
    out: Annotated[
        Path | None,
        FilesOption(
            help="Folder to write: graphs (graph.graphml, edges.csv, graph.npz) and run.json; while a run over several "
            "silos goes on, its checkpoint."
        ),
    ] = None
    force: Annotated[bool, FilesOption("--force", help="Replace an earlier run in --out.")] = False
    standardize: Annotated[
        bool, FilesOption("--standardize", help="Centre and scale each node first (different units or amplitudes).")
    ] = False
    transform: Annotated[
        str,
        FilesOption(
            metavar="[none|ranks]",
            help="Of each node take ranks, as normal scores of unit variance: for ordinal items, heavy tails and "
            "outliers. The table is then held in memory.",
        ),
    ] = "none"
    missing: Annotated[
        str,
        FilesOption(
            metavar="[error|rows|pairs]",
            help="Gaps (empty cells, n/a, NaN): refuse them, leave their rows out, or learn each pair from the rows "
            "that have both its nodes.",
        ),
    ] = "error"
    missing_nodes: Annotated[
        str,
        SilosOption(
            metavar="[error|allow]",
            help="Whether silos may lack nodes that others have. An empty or constant column is a missing node, too.",
        ),
    ] = "error"
    keep_rows: Annotated[
        str | None,
        FilesOption(
            metavar="COLUMN", help="Column, no node, that says which rows count: those where it is true, yes or not 0."
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        FilesOption(help="Column that is not a node, or a pattern such as 'global_*'; may be repeated."),
    ] = None
    key: Annotated[
        str | None, FilesOption(help="Which array of an .npz file, or sheet of an .xlsx file, holds the signals.")
    ] = None
    header: Annotated[
        bool | None,
        FilesOption("--header/--no-header", help="Whether the first row names the nodes. Default: found out."),
    ] = None
    precomputed: Annotated[
        bool, FilesOption("--precomputed", help="Tables are symmetric matrices of mean squared differences.")
    ] = False
    allow: Annotated[
        Path | None, FilesOption(help="CSV of two node names per row: the only pairs that may be edges.")
    ] = None
    forbid: Annotated[Path | None, FilesOption(help="CSV of two node names per row: pairs that may not be edges.")] = (
        None
    )
    report: Annotated[bool, FilesOption("--report", help="Also write report.html, a page to look at, into --out.")] = (
        False
    )
    epsilon: Annotated[
        float | None,
        NoiseOption(help="Add noise, so that the consensus is (ε, δ)-differentially private; with --delta."),
    ] = None
    delta: Annotated[float | None, NoiseOption(help="The δ of --epsilon, such as 1e-5.")] = None
    unit: Annotated[
        str,
        NoiseOption(
            metavar="[row|table]",
            help="What may be replaced without showing: a row, or a whole table, where each is a person's.",
        ),
    ] = "row"
    rows: Annotated[
        str, NoiseOption(metavar="[unit|B]", help="Bring each row to length 1, or cut it to a length B that is public.")
    ] = "unit"
    min_samples: Annotated[
        int | None,
        NoiseOption(help="Rows that every table has at least, which may be known. Default: those of the smallest."),
    ] = None
    collusion: Annotated[
        int, NoiseOption(help="Sites that may tell the coordinator their share of the noise. Each knows its own.")
    ] = 1
    open_sums: Annotated[
        bool, NoiseOption("--open-sums", help="As without masks: each silo adds all of the noise, and not a share.")
    ] = False
    public: Annotated[
        Path | None,
        NoiseOption(help="CSV of node, centre and scale, which may be known: with noise, --standardize means these."),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print the run's record as JSON instead of a table.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False


@takes(LearnOptions)
def learn(options: LearnOptions) -> None:
    """Learn one silo's graph, or those of several and their consensus."""
    run_guarded(lambda: _learn(options), resumable=options.resume or options.out)


def _parse_option(text: str) -> tuple[str, Any]:
    """The name and the value of `NAME=VALUE`: true, false, a number or a word."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ParameterError(f"--option: expected NAME=VALUE, got {text!r}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _parse_coupling(text: str) -> float | str:
    if text == AUTO:
        return text
    try:
        return float(text)
    except ValueError as error:
        raise ParameterError(f"--coupling: expected auto or a number, got {text!r}.") from error


def _parse_length(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ParameterError(f"--rows: expected unit, or a number > 0 as the longest row, got {text!r}.") from error


def _learn(options: LearnOptions) -> None:
    """Learn, and show how it went."""
    from silograph.cli.summary import notes_on, summary
    from silograph.runs.layout import RunLayout
    from silograph.runs.learn import learn_files

    output, folder = Output(as_json=options.as_json, quiet=options.quiet), options.resume or options.out
    if options.report and folder is None:
        raise ParameterError("--report: it goes into the run's folder. Name one with --out.")
    was_finished = folder is not None and options.resume is not None and RunLayout(folder).is_finished
    asked = {name: value for name, value in given(options).items() if name not in NOT_SETTINGS}
    if options.options:
        asked["options"] = dict(_parse_option(text) for text in options.options)
    if options.open_sums:
        asked["masked"] = False
    if "coupling" in asked:
        asked["coupling"] = _parse_coupling(asked["coupling"])
    if "rows" in asked:
        asked["rows"] = _parse_length(options.rows)
    with showing_progress(output.progress) as on_progress:
        run = learn_files(options.signals or (), on_progress=on_progress, **asked)
    if was_finished and not output.as_json:
        output.note(f"{folder}: this run is finished, there was nothing to resume.")
    else:
        output.result(run.record, lambda: summary(run.record, folder), lambda: notes_on(run.record, folder))
    for line in write_page(folder) if options.report and folder is not None else ():
        if not (output.quiet or output.as_json):
            say(line)
    if was_finished:
        return
    for text in run.warnings.values():
        warn(text)
    if "convergence" in run.warnings:
        raise typer.Exit(NOT_CONVERGED)
