"""A run is written whole or not at all.

Results are made to the side and moved in one after the other, the record last; then the checkpoint goes. A run killed
at any of these moments still has its checkpoint, and finishes the moves when it is resumed.
"""

import csv
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from silograph._util.files import check_writable
from silograph.errors import OutputError
from silograph.graph.files import write_graph
from silograph.graph.graph import Graph
from silograph.runs.layout import CHECKPOINT_DONE, GRAPH_FILES, RECORD, RESULT_NAMES, SILOS, TEMPORARY, RunLayout
from silograph.runs.reader import RunData


def check_output(folder: Path, *, force: bool) -> None:
    """Raise, before any work is done, when a run could not be written to `folder`."""
    layout = RunLayout(folder)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: expected a folder or a new name, got a file. Choose another --out.")
    there = folder.exists() and any(not entry.name.startswith(TEMPORARY) for entry in folder.iterdir())
    if there and not force:
        if layout.is_unfinished:
            raise OutputError(
                f"{folder}: holds an unfinished run. Go on with `{layout.resume_command()}`, or replace it with "
                "--force."
            )
        raise OutputError(f"{folder}: exists already. Choose another --out, or replace it with --force.")
    check_writable(folder.absolute())
    if there and not layout.record.is_file() and not layout.is_unfinished:
        raise OutputError(
            f"{folder}: holds other things than a run ({RECORD} is missing), so --force leaves it alone. "
            "Choose another --out."
        )


def begin_run(folder: Path, request: Mapping[str, Any]) -> Path:
    """Make the folder, keep what was asked for, and return where checkpoints go."""
    layout = RunLayout(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tidy(folder)
        if layout.checkpoint.exists():
            layout.checkpoint.replace(folder / CHECKPOINT_DONE)
        made = Path(tempfile.mkdtemp(prefix=TEMPORARY[0], dir=folder))
        text = json.dumps(request, indent=2, ensure_ascii=False) + "\n"
        (made / layout.request.name).write_text(text, encoding="utf-8")
        made.replace(layout.checkpoint)  # from here on there is a run to resume
        tidy(folder)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}). Choose another place.") from error
    return layout.checkpoint


def abandon_run(folder: Path) -> None:
    """Undo `begin_run`: the run failed before it had a result, for a reason that resuming cannot mend."""
    shutil.rmtree(RunLayout(folder).checkpoint, ignore_errors=True)
    tidy(folder)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def finish_run(folder: Path, run: RunData) -> None:
    """Put the results of a run that was begun in place, the record last, and let the checkpoint go."""
    _put_in_place(RunLayout(folder), lambda made: write_results(made, run))


def adopt_results(folder: Path, results: Path) -> None:
    """The same with results that were written elsewhere."""
    _put_in_place(RunLayout(folder), lambda made: shutil.copytree(results, made, dirs_exist_ok=True))


def write_results(folder: Path, run: RunData) -> None:
    """Write all results into an empty folder."""
    layout = RunLayout(folder)
    if run.silos:
        write_graphs(layout.consensus, run.main)
        (folder / SILOS).mkdir()
        for name, graph in run.graphs.items():
            write_graphs(layout.silo(name), graph)
        _write_history(layout.history, run.history)
    else:
        write_graphs(folder, run.main)
    layout.record.write_text(run.record.to_json(), encoding="utf-8")


def write_graphs(folder: Path, graph: Graph) -> None:
    """Write one graph in every format; the folder is made if there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in GRAPH_FILES:
        write_graph(graph, folder / name)


def tidy(folder: Path) -> None:
    """Remove what a finished run, or one that was killed while it finished, left behind."""
    for left in [entry for entry in folder.iterdir() if entry.name.startswith(TEMPORARY)]:
        shutil.rmtree(left, ignore_errors=True)


def _put_in_place(layout: RunLayout, fill_in: Callable[[Path], object]) -> None:
    folder = layout.folder
    try:
        made = Path(tempfile.mkdtemp(prefix=TEMPORARY[1], dir=folder))
        try:
            fill_in(made)
            for name in RESULT_NAMES:  # the record is the last
                _replace(folder / name, made / name)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        layout.checkpoint.replace(folder / CHECKPOINT_DONE)  # at once; removing it takes longer
        tidy(folder)
    except OSError as error:
        raise OutputError(f"{folder}: the results cannot be written ({error.strerror}).") from error


def _replace(target: Path, source: Path) -> None:
    """Move the source to its place; where there is none, an earlier run's of that name goes all the same."""
    if target.is_dir():
        shutil.rmtree(target)
    if source.exists():
        source.replace(target)
    else:
        target.unlink(missing_ok=True)


def _write_history(path: Path, history: Sequence[Mapping[str, Any]]) -> None:
    names = list(dict.fromkeys(name for record in history for name in record))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(history)
