"""The command `silograph compare`: do the graphs of two groups of silos differ? The work is `compare_groups`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silograph._util.terminal import visible
from silograph.cli.output import Output, run_guarded, say

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from silograph.analysis.comparing.columns import Differences
    from silograph.analysis.comparing.study import Comparison

MOST_PAIRS = 10  # that the summary shows
WIDEST = len("modularity")  # of the measures
NUMBER = 8  # as 1.23e-05: longer names of groups are folded, so that all fits into 80 columns
COMPARE_HELP = """Compare the graphs of two groups of silos: patients and controls, two scanners, before and after.

RUN is the folder of a run over several silos, learned together without regard to the group. The table of people has one
row per silo: its name first (SITE/NAME, or NAME where that is unique), then its group, and what else is known. All
p-values are by relabelling silos; those of many pairs are corrected for their number.

[bold]Examples[/bold]

  silograph compare run/ --groups people.csv

  silograph compare run/ --groups participants.tsv --column dx --covariates age,motion --sites site

  silograph compare run/ --groups people.csv --column dx --between patient control --coordinates regions.csv

[bold]Exit codes[/bold]  0 compared, whether or not anything differs; 1 bad input; 2 wrong options. After 1 and 2
nothing was written.
"""


def compare(
    folder: Annotated[Path, typer.Argument(help="The folder of a run: what --out named.", metavar="RUN")],
    groups: Annotated[Path, typer.Option(help="Table of people, one row per silo: CSV or TSV.")],
    column: Annotated[
        str | None, typer.Option(help="The column of groups. Default: the only one beside the names.")
    ] = None,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Which two groups, the first minus the second; silos of others are left out.", metavar="A B"),
    ] = None,
    covariates: Annotated[
        str | None,
        typer.Option(
            help="Columns to adjust for, by commas: numbers as they are, words as classes. One called site is --sites. "
            "If there is no column rows, it is how many rows each silo was learned from.",
            metavar="COLUMNS",
        ),
    ] = None,
    sites: Annotated[
        str | None,
        typer.Option(
            help="A column of places: silos are relabelled within their place only. If there is no column site, site "
            "means the folders of the run.",
            metavar="COLUMN",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The column of silos' names. Default: the first.", metavar="COLUMN")
    ] = None,
    others: Annotated[
        str, typer.Option(help="Rows of people whom the run does not have.", metavar="[error|ignore]")
    ] = "error",
    permutations: Annotated[
        int, typer.Option(help="Relabellings. Where there are no more than these, all are looked at.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the random relabellings.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder to write. Default: compare/ in the run's folder.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier comparison there.")] = False,
    coordinates: Annotated[
        Path | None, typer.Option(help="CSV file with name, x, y of each node, and z in MNI space for a brain.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print compare.json instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Compare two groups of silos."""
    settings = {
        "column": column,
        "between": between,
        "covariates": tuple(part.strip() for part in (covariates or "").split(",") if part.strip()),
        "sites": sites,
        "name": name,
        "others": others,
        "permutations": permutations,
        "seed": seed,
    }
    output = Output(as_json=as_json, quiet=quiet)
    run_guarded(lambda: _compare(folder, groups, settings, out, coordinates, force=force, output=output))


def _compare(
    folder: Path,
    groups: Path,
    settings: dict[str, Any],
    out: Path | None,
    coordinates: Path | None,
    *,
    force: bool,
    output: Output,
) -> None:
    from rich.console import Console

    from silograph._util.files import bring_back, writing_folder
    from silograph.report.comparison import PAGE, comparison_page
    from silograph.runs.comparing import compare_groups
    from silograph.runs.comparison_files import check_place, record_of, write_comparison
    from silograph.runs.reader import finished_layout, read_run

    run = read_run(folder)
    layout = finished_layout(folder)
    place = layout.compare if out is None else out
    bring_back(place.absolute())
    check_place(place, force=force)
    told = compare_groups(run, groups, **settings)
    record = record_of(told, settings=settings, run=layout.folder, silos=run.graphs, people=groups)
    page = comparison_page(told, record, coordinates=coordinates)
    with writing_folder(place, replace=True) as made:
        (made / PAGE).write_text(page, encoding="utf-8")
        write_comparison(made, told, record)
    if output.as_json:
        typer.echo(record.to_json(), nl=False)
    elif not output.quiet:
        Console().print(summary(told))
        say(f"written: {place}/ ({PAGE}, edges.csv, graphs.csv, first/, second/, difference/, compare.json)")


def summary(told: "Comparison") -> "Group":
    """The answer in words, numbers of whole graphs, and the pairs that differ most."""
    from rich.console import Group
    from rich.text import Text

    from silograph.analysis.comparing.measures import MEASURES

    whole = _table(told, "Whole graphs", told.graphs, list(enumerate(MEASURES)))
    best = [(pair, told.pair_name(pair)) for pair in told.ranked[:MOST_PAIRS]]
    return Group(Text(visible(told.says)), Text(), whole, _table(told, "Pairs that differ most", told.edges, best))


def _table(told: "Comparison", title: str, found: "Differences", rows: list[tuple[int, str]]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left")
    table.add_column("", min_width=WIDEST)
    for head in told.groups:
        table.add_column(Text(visible(head)), justify="right", overflow="fold", max_width=NUMBER)
    for head in ("effect (95 %)", "p", "adjusted p"):
        table.add_column(head, justify="right", no_wrap=head.startswith("effect"))
    for place, name in rows:
        means = [f"{column[place]:.3g}" for column in (found.mean_first, found.mean_second)]
        size, low, high = (_three_digits(float(column[place])) for column in (found.effect, found.low, found.high))
        effect = f"{size} ({low}, {high})"
        words = [*means, effect, *(f"{column[place]:.2g}" for column in (found.p, found.p_family))]
        table.add_row(Text(visible(name)), *(Text("–" if "nan" in word else word) for word in words))
    return table


def _three_digits(size: float) -> str:
    return f"{size:.2f}" if abs(size) < 9.995 else f"{size:.1f}" if abs(size) < 99.95 else f"{size:.0f}"
