"""The command `silograph report`: a run's page, its figures if asked for, and a browser to look at it."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path

from silograph.errors import ParameterError
from silograph.report import write_figures, write_report
from silograph.report.figures import FORMATS

FIGURES = "figures"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """What the user asked for."""

    run: Path
    out: Path | None = None  # the page; None: report.html in the run's folder
    figures: tuple[str, ...] = ()  # formats
    coordinates: Path | None = None
    title: str | None = None
    open_it: bool = False


def formats_of(text: str | None) -> tuple[str, ...]:
    """The formats of `--figures svg,pdf`."""
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


def run(request: ReportRequest) -> list[str]:
    """Write everything, and return what to say of it."""
    page = write_report(request.run, request.out, coordinates=request.coordinates, title=request.title)
    said = [f"Page: {page} ({page.stat().st_size / 1e6:.1f} MB, opens in any browser, without a network)"]
    spatial = page.with_name(f"{page.stem}-3d.html")
    if request.coordinates is not None and spatial.is_file():
        said.append(f"In space: {spatial}")
    if request.figures:
        folder = page.parent / FIGURES
        written = write_figures(request.run, folder, formats=request.figures, coordinates=request.coordinates)
        said.append(f"Figures: {folder}{'/'} ({', '.join(path.name for path in written)})")
    if request.open_it and not webbrowser.open(page.resolve().as_uri()):
        said.append("No browser was found to open it with: open the file yourself.")
    return said
