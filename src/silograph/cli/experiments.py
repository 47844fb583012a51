"""`silograph reproduce`: run tables and figures of the paper, show them, and write them to a folder."""

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable

from silograph import __version__
from silograph._util.checks import check_whole
from silograph._util.files import check_writable, write_text
from silograph.datasets.locate import ABIDE, COIL20, locate
from silograph.errors import DataError, OutputError
from silograph.experiments.catalogue import ALL, EXPERIMENTS, Experiment, choose_experiments
from silograph.experiments.files import format_number, format_printed, write_outcome
from silograph.experiments.index import index_page
from silograph.experiments.lab import Lab, OnProgress
from silograph.experiments.outcome import Outcome, Table
from silograph.experiments.session import FULL_SIZE, QUICK, Session

WIDE = 140  # columns of a terminal that shows whole tables
QUICK_LOOK = "A quick look: few draws, coarse grids. Not for conclusions."
PUBLISHED = {"COIL-20": COIL20, "ABIDE": ABIDE}
KEPT = ".cells"  # folder of finished jobs, within the folder of results


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How an experiment ended."""

    experiment: Experiment
    seconds: float
    skipped: str | None = None  # why


def listing() -> RichTable:
    """What can be run."""
    table = RichTable(box=None, pad_edge=False)
    for name in ("name", "shows", "data"):
        table.add_column(name)
    for experiment in EXPERIMENTS:
        table.add_row(experiment.name, experiment.shows, _found(experiment.data))
    table.add_row(ALL, "all of these, and an index page", "")
    return table


def _found(data: str) -> str:
    if data not in PUBLISHED:
        return data
    try:
        locate(PUBLISHED[data])
    except DataError:
        return f"{data}: not found, set SILOGRAPH_DATA"
    return f"{data}: found"


def run_experiments(
    names: tuple[str, ...],
    out: Path,
    *,
    quick: bool,
    sizes: Mapping[str, int | None],  # seeds, draws and workers; None: the usual
    data: Mapping[str, Path | None],  # coil and abide; None: to be looked for
    console: Console | None,
    progress: Console | None,
) -> list[Done]:
    """Run what was asked for, one after the other; each is written as soon as it is done."""
    experiments = choose_experiments(names)
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out}: expected a folder, got a file. Choose another --out.")
    check_writable(out / "index.md")
    given: dict[str, Any] = {name: value for name, value in sizes.items() if value is not None}
    for name, value in given.items():
        check_whole(f"--{name}", value, least=1 if name == "workers" else 2)
    workers = given.pop("workers", os.cpu_count() or 1)
    scale = replace(QUICK if quick else FULL_SIZE, **given)
    with _reporting(progress) as on_progress:
        lab = Lab(workers=workers, kept=out.resolve() / KEPT, on_progress=on_progress)
        session = Session(lab=lab, scale=scale, **data)
        done = [_run_one(experiment, session, out, console, may_skip=ALL in names) for experiment in experiments]
    if ALL in names:
        write_text(out / "index.md", index_page(session, [one.experiment for one in done if one.skipped is None]))
    parts = {"run": done} if ALL in names else {f"run-{one.experiment.name}": [one] for one in done}
    for name, part in parts.items():
        write_text(out / f"{name}.json", json.dumps(_record(session, part), indent=1, ensure_ascii=False) + "\n")
    return done


def _run_one(experiment: Experiment, session: Session, out: Path, console: Console | None, *, may_skip: bool) -> Done:
    began = perf_counter()
    try:
        outcome = experiment.run(session)
    except DataError as error:
        if not may_skip:
            raise
        return Done(experiment=experiment, seconds=0.0, skipped=str(error))
    if session.scale.is_quick:
        outcome = _marked(outcome)
    write_outcome(outcome, out)
    if console is not None:
        _show(outcome, out, console)
    return Done(experiment=experiment, seconds=perf_counter() - began)


def _marked(outcome: Outcome) -> Outcome:
    """The same, saying on each table and figure that it is a first look."""
    return replace(
        outcome,
        tables=tuple(replace(table, notes=(QUICK_LOOK, *table.notes)) for table in outcome.tables),
        pictures=tuple(replace(picture, caption=f"{picture.caption} {QUICK_LOOK}") for picture in outcome.pictures),
    )


def _show(outcome: Outcome, folder: Path, console: Console) -> None:
    for table in outcome.tables:
        for block in table.blocks:
            console.print(_block(table, block, narrow=console.width < WIDE))
        if table.main and console.width < WIDE:
            console.print(f"All columns: {folder / table.name}.md", style="dim", markup=False, highlight=False)
        for note in table.notes:
            console.print(note, style="dim", markup=False, highlight=False)
        console.print()
    for picture in outcome.pictures:
        console.print(f"{picture.title}: {folder / picture.name}.svg, .png", markup=False, highlight=False)
    for page in outcome.pages:
        console.print(f"{page.title}: {folder / page.name}.md", markup=False, highlight=False)


def _block(table: Table, block: str, *, narrow: bool) -> RichTable:
    """Ours ± error, the paper's and the difference, in one cell each."""
    shown = RichTable(title=f"{table.title} · {block}" if block else table.title, title_justify="left", box=None)
    shown.add_column("")
    columns = [c for c in table.columns(block) if not (narrow and table.main) or c in table.main]
    paired = {
        c for c in columns if any(n.paper is not None for n in table.numbers if (n.block, n.column) == (block, c))
    }
    for column in columns:
        shown.add_column(column, justify="right")
        if column in paired:
            shown.add_column("paper", justify="right", style="dim")
            shown.add_column("diff.", justify="right", style="dim")
    for row in table.rows(block):
        cells = [row]
        for column in columns:
            number = table.number(block, row, column)
            cells.append(format_number(number, table.digits).replace(" ± ", "±"))
            if column in paired:
                cells += ["", ""] if number is None else list(format_printed(number, table.digits))
        shown.add_row(*cells)
    return shown


@contextmanager
def _reporting(console: Console | None) -> Iterator[OnProgress]:
    """A progress bar per set of jobs, where there is a terminal to draw it on."""
    if console is None:
        yield lambda title, done, total: None
        return
    bars = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        console=console, transient=True,
    )  # fmt: skip
    with bars:
        tasks: dict[str, TaskID] = {}

        def on_progress(title: str, done: int, total: int) -> None:
            if title not in tasks:
                tasks[title] = bars.add_task(title, total=total)
            bars.update(tasks[title], completed=done, total=total)

        yield on_progress


def _record(session: Session, done: Sequence[Done]) -> dict[str, object]:
    import matplotlib
    import numba
    import numpy
    import scipy
    import sklearn

    libraries = (numpy, scipy, numba, sklearn, matplotlib)
    return {
        "silograph": __version__,
        "python": platform.python_version(),
        "libraries": {library.__name__: library.__version__ for library in libraries},
        "scale": asdict(session.scale),
        "workers": session.lab.workers,
        "cores": os.cpu_count(),
        "seconds": {one.experiment.name: round(one.seconds, 1) for one in done if one.skipped is None},
        "skipped": {one.experiment.name: one.skipped for one in done if one.skipped is not None},
        "core seconds by method": {name: round(s, 1) for name, s in session.lab.seconds_by_method().items()},
    }
