"""The command `silograph report`: a run's page, its figures if asked for, and a browser to look at it."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from silograph.cli.output import run_guarded, say
from silograph.errors import ParameterError

REPORT_HELP = """Show a run: one HTML page that opens offline, and figures for a paper.

The page answers what the silos share, where each differs, who contributed how much, and whether to trust it. It holds
everything it needs and sends nothing. With coordinates, nodes lie where they are; with three (MNI), it is a brain.

[bold]Examples[/bold]

  silograph report run/

  silograph report run/ --figures svg,pdf

  silograph report run/ --coordinates regions.csv --out report.html

[bold]Exit codes[/bold]  0 written; 1 no finished run there, or bad coordinates; 2 wrong options.
"""


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
        wanted = formats_of(figures)
        said = write_page(folder, out, figures=wanted, coordinates=coordinates, title=title, open_it=open_it)
        for line in () if quiet else said:
            say(line)

    run_guarded(work)


def formats_of(text: str | None) -> tuple[str, ...]:
    """The formats of `--figures svg,pdf`."""
    from silograph.report.figures import FORMATS

    if text is None:
        return ()
    chosen = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    wrong = [name for name in chosen if name not in FORMATS]
    if wrong or not chosen:
        raise ParameterError(
            f"--figures: expected some of {', '.join(FORMATS)}, separated by commas, got {text!r}. "
            "For example: --figures svg,png"
        )
    return chosen


def write_page(
    run: Path,
    out: Path | None = None,
    *,
    figures: tuple[str, ...] = (),
    coordinates: Path | None = None,
    title: str | None = None,
    open_it: bool = False,
) -> list[str]:
    """Write a run's page and figures, and return what to say of them."""
    from silograph.report import write_figures, write_report

    page = write_report(run, out, coordinates=coordinates, title=title)
    said = [f"Page: {page} ({page.stat().st_size / 1e6:.1f} MB, opens in any browser, without a network)"]
    spatial = page.with_name(f"{page.stem}-3d.html")
    if coordinates is not None and spatial.is_file():
        said.append(f"In space: {spatial}")
    if figures:
        folder = page.parent / "figures"
        written = write_figures(run, folder, formats=figures, coordinates=coordinates)
        said.append(f"Figures: {folder}/ ({', '.join(path.name for path in written)})")
    if open_it and not webbrowser.open(page.resolve().as_uri()):
        said.append("No browser was found to open it with: open the file yourself.")
    return said
