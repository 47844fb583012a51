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
from types import MappingProxyType
from typing import Any

from silograph._util.files import check_writable
from silograph._util.naming import another_place, setting
from silograph._util.types import Vector
from silograph.errors import OutputError
from silograph.graph.files import write_graph
from silograph.graph.graph import Graph
from silograph.runs.consensus import write_fixed
from silograph.runs.layout import (
    ALONE,
    CHECKPOINT_DONE,
    GRAPH_FILES,
    NODES,
    QUORUM,
    RECORD,
    RESULT_NAMES,
    SILOS,
    STABLE,
    TEMPORARY,
    RunLayout,
)
from silograph.runs.reader import RunData
from silograph.runs.signs import RunSigns, write_signs
from silograph.runs.stability import RunStability, quorum_graph, stable_graph, write_scores, write_stability


def check_output(folder: Path, *, force: bool) -> None:
    """Raise, before any work is done, when a run could not be written to `folder`."""
    layout = RunLayout(folder)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: expected a folder or a new name, got a file. Choose another {setting('out')}.")
    there = folder.exists() and any(not entry.name.startswith(TEMPORARY) for entry in folder.iterdir())
    if there and not force:
        if layout.is_unfinished:
            raise OutputError(
                f"{folder}: holds an unfinished run. Go on with `{layout.resume_command()}`, or replace it with "
                f"{setting('force', True)}."
            )
        raise OutputError(f"{folder}: exists already. {another_place()}")
    check_writable(folder.absolute())
    if there and not layout.record.is_file() and not layout.is_unfinished:
        raise OutputError(
            f"{folder}: holds other things than a run ({RECORD} is missing), so {setting('force')} leaves it alone. "
            f"Choose another {setting('out')}."
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
        _write_graph(layout.consensus, run, None)
        (folder / SILOS).mkdir()
        for name in run.graphs:
            _write_graph(layout.silo(name), run, name)
        _write_history(layout.history, run.history)
        if run.fixed is not None:
            write_fixed(layout, run.fixed)
        if run.alone is not None:
            write_graphs(folder / ALONE, run.alone)
    else:
        _write_graph(folder, run, None)
    if run.scores is not None:
        write_scores(layout.scores, run.scores)
    if run.signs is not None:
        write_signs(layout.partial, run.signs)
    if run.stability is not None:
        write_stability(layout.stability, run.stability)
        _write_quorum(folder / QUORUM, run)
    layout.record.write_text(run.record.to_json(), encoding="utf-8")


def write_graphs(folder: Path, graph: Graph, columns: Mapping[str, Vector] = MappingProxyType({})) -> None:
    """Write one graph in every format, with further `columns` of its edges; the folder is made if there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in GRAPH_FILES:
        write_graph(graph, folder / name, columns)


def _write_graph(folder: Path, run: RunData, silo: str | None) -> None:
    """A graph of the run, and what partial correlations and half-samples tell of it."""
    graph, told, asked = run.main if silo is None else run.graphs[silo], run.stability, run.record.stability
    if told is None or asked is None or not told.knows(silo):
        write_graphs(folder, graph, _signs(run.signs, silo, graph))
    else:
        write_told_graph(folder, graph, told, silo, threshold=asked.threshold, stable=asked.graphs, signs=run.signs)


def _signs(signs: RunSigns | None, silo: str | None, graph: Graph) -> Mapping[str, Vector]:
    return {} if signs is None else signs.columns(silo, graph)


def write_told_graph(
    folder: Path,
    graph: Graph,
    told: RunStability,
    silo: str | None,
    *,
    threshold: float,
    stable: bool,
    signs: RunSigns | None = None,
) -> None:
    """A graph, what half-samples tell of its edges and nodes and, if asked for, its `stable` edges by themselves."""
    write_graphs(folder, graph, {**_signs(signs, silo, graph), **told.columns(silo, graph)})
    if stable:
        some = stable_graph(told, silo, graph, threshold)
        write_graphs(folder / STABLE, some, {**_signs(signs, silo, some), **told.columns(silo, some)})
    low, high = told.strengths(silo, graph)
    strengths = graph.adjacency().sum(axis=0)
    with (folder / NODES).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["node", "strength", "low", "high"])
        writer.writerows(zip(graph.names, strengths.tolist(), low.tolist(), high.tolist(), strict=True))


def _write_quorum(folder: Path, run: RunData) -> None:
    asked = run.record.stability
    if run.stability is None or asked is None or asked.quorum is None:
        return
    graph, counts = quorum_graph(run.stability, run.graphs, asked.quorum, asked.threshold)
    write_graphs(folder, graph, {"silos": counts})


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
