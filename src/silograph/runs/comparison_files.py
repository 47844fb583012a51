"""A comparison on disk: its record, its tables, and three graphs.

compare.json              the answer in words, settings, counts, checksums, versions
edges.csv                 one row per pair that is an edge in any silo, the surest difference first
graphs.csv                one row per number of whole graphs
first/, second/           each group's mean graph, in three formats
difference/               the size of each difference as a graph; its sign and p-values are columns
"""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.documents import LARGEST_WHOLE
from silograph._util.files import check_writable, sha256_of
from silograph._util.naming import another_place, setting
from silograph.analysis.comparing.columns import LEVEL, Differences
from silograph.analysis.comparing.measures import MEASURES, Likeness
from silograph.analysis.comparing.study import Comparison
from silograph.errors import OutputError
from silograph.runs.layout import RECORD
from silograph.runs.record import now, versions
from silograph.runs.writer import write_graphs

COMPARISON_FORMAT = 1
COMPARED = "compare.json"
NUMBERS = ("mean_first", "mean_second", "difference", "effect", "low", "high", "statistic", "p", "p_family", "q")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRecord:
    """Everything needed to trust a comparison and to repeat it."""

    format: int = COMPARISON_FORMAT
    created: str = field(default_factory=now)
    says: str
    first: str  # the groups' names: differences are the first minus the second
    second: str
    silos: Mapping[str, str]  # silo → its group
    left_out: Sequence[str]  # silos of other groups
    settings: Mapping[str, Any]  # what was asked for
    relabellings: int  # looked at, the true one included
    possible: int | None  # different ones that there are; None: more than JSON can count
    smallest_p: float  # that there can be
    pairs: int  # of nodes
    tested: int  # of them, that vary and that enough silos have
    level: float
    differing: int  # with p_family up to the level
    differing_by_q: int  # with q up to the level
    likeness: Likeness
    run_sha256: str  # of the run's record
    groups_sha256: str  # of the table of people
    versions: Mapping[str, str] = field(default_factory=versions)

    def to_json(self) -> str:
        """The record as text."""
        plain = {name: getattr(self, name) for name in self.__slots__} | {"likeness": asdict(self.likeness)}
        return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def record_of(
    told: Comparison, *, settings: Mapping[str, Any], run: Path, silos: Iterable[str], people: Path
) -> ComparisonRecord:
    """The record of a comparison of these `silos` of the run in a folder."""
    first, second = told.groups
    group = dict(zip(told.pairs.silos, np.where(told.design.is_first, first, second).tolist(), strict=True))
    return ComparisonRecord(
        says=told.says,
        first=first,
        second=second,
        silos=group,
        left_out=[silo for silo in silos if silo not in group],
        settings=settings,
        relabellings=told.relabellings.count,
        possible=told.relabellings.possible if told.relabellings.possible <= LARGEST_WHOLE else None,
        smallest_p=told.relabellings.smallest_p,
        pairs=told.pairs.n_pairs,
        tested=told.edges.n_tested,
        level=LEVEL,
        differing=len(told.differing),
        differing_by_q=int((np.nan_to_num(told.edges.q, nan=1.0) <= LEVEL).sum()),
        likeness=told.likeness,
        run_sha256=sha256_of(run / RECORD),
        groups_sha256=sha256_of(people),
    )


def check_place(folder: Path, *, force: bool) -> None:
    """Raise, before any work is done, when a comparison may not be written to `folder`."""
    check_writable(folder.absolute())
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / COMPARED).is_file():
        raise OutputError(f"{folder}: holds other things than a comparison. Choose another {setting('out')}.")
    if not force:
        raise OutputError(f"{folder}: holds a comparison already. {another_place()}")


def write_comparison(folder: Path, told: Comparison, record: ComparisonRecord) -> None:
    """Write all into an empty folder, the record last."""
    _write_edges(folder / "edges.csv", told)
    _write_table(folder / "graphs.csv", ("measure",), told.graphs, [((name,), k) for k, name in enumerate(MEASURES)])
    for name, graph in zip(("first", "second"), told.mean_graphs, strict=True):
        write_graphs(folder / name, graph)
    graph, columns = told.difference_graph()
    write_graphs(folder / "difference", graph, columns)
    (folder / COMPARED).write_text(record.to_json(), encoding="utf-8")


def _write_edges(path: Path, told: Comparison) -> None:
    names, pairs, found = told.pairs.names, told.pairs, told.edges
    ends = (((names[pairs.rows[k]], names[pairs.cols[k]]), k) for k in told.ranked)
    _write_table(path, ("source", "target"), found, ends)


def _write_table(
    path: Path, heads: Sequence[str], found: Differences, rows: Iterable[tuple[Sequence[str], int]]
) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*heads, *NUMBERS])
        for cells, place in rows:
            numbers = [float(getattr(found, name)[place]) for name in NUMBERS]
            writer.writerow([*cells, *("" if np.isnan(number) else number for number in numbers)])
