"""A comparison of two groups by sums over their graphs, on disk: where the graphs themselves stayed at their sites.

compare.json              the answer in words, counts, versions
edges.csv                 one row per pair that is an edge in any graph, the surest difference first
first/, second/           each group's mean graph, in three formats
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from silograph.analysis.comparing.columns import LEVEL
from silograph.analysis.comparing.sums import GroupSums, WelchDifferences, compare_sums
from silograph.graph.graph import graph_on
from silograph.graph.pairs import Pairs
from silograph.runs.comparison_files import COMPARED, COMPARISON_FORMAT
from silograph.runs.record import now, versions
from silograph.runs.writer import write_graphs

SUMS_NUMBERS = ("mean_first", "mean_second", "difference", "statistic", "df", "p", "p_family", "q")
ASSUMED = (
    "This is Welch's t-test on sums, not a test by permutation, which needs the graphs: its p-values assume that each "
    "group's mean weight is nearly normal, which with few patients, or an edge that few have, it is not; and that "
    "patients are independent. Neither sites nor covariates are adjusted for: a site with more of one group counts as "
    "a difference."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumsRecord:
    """Everything needed to trust the comparison."""

    format: int = COMPARISON_FORMAT
    created: str = field(default_factory=now)
    test: str = "welch on sums"
    says: str
    first: str  # the groups' names: differences are the first minus the second
    second: str
    counts: tuple[int, int]  # patients in each, over all sites
    pairs: int  # of nodes
    tested: int  # of them, that vary
    level: float = LEVEL
    differing: int  # with p_family up to the level
    differing_by_q: int
    study_sha256: str
    versions: Mapping[str, str] = field(default_factory=versions)


def write_sums_comparison(
    folder: Path,
    groups: tuple[str, str],
    sums: tuple[GroupSums, GroupSums],
    pairs: Pairs,
    nodes: Sequence[str],
    *,
    study_sha256: str,
) -> None:
    """Compare, and write all into a new folder, the record last."""
    found = compare_sums(*sums)
    some = np.flatnonzero((found.mean_first > 0) | (found.mean_second > 0))
    folder.mkdir()
    _write_edges(folder / "edges.csv", found, set(some.tolist()), pairs, nodes)
    for name, mean in (("first", found.mean_first), ("second", found.mean_second)):
        write_graphs(folder / name, graph_on(pairs, mean, nodes))
    record = SumsRecord(
        says=says(found, groups, sums, pairs, nodes),
        first=groups[0],
        second=groups[1],
        counts=(sums[0].count, sums[1].count),
        pairs=pairs.size,
        tested=found.n_tested,
        differing=len(found.differing),
        differing_by_q=int((np.nan_to_num(found.q, nan=1.0) <= LEVEL).sum()),
        study_sha256=study_sha256,
    )
    text = json.dumps(asdict(record), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / COMPARED).write_text(text + "\n", encoding="utf-8")


def says(
    found: WelchDifferences,
    groups: tuple[str, str],
    sums: tuple[GroupSums, GroupSums],
    pairs: Pairs,
    nodes: Sequence[str],
) -> str:
    """The answer in words, also where nothing differs, and what it assumes."""
    who = " and ".join(f"{name} (n = {some.count})" for name, some in zip(groups, sums, strict=True))
    if not found.n_tested:
        return f"No pair of nodes can be compared between {who}: none varies. {ASSUMED}"
    n, least = len(found.differing), found.ranked[0]
    counted = {0: "none differs", 1: "one differs"}.get(n, f"{n} differ")
    return (
        f"Of {found.n_tested} pairs {counted} between {who} after correction for testing them all (Holm); smallest "
        f"adjusted p = {found.p_family[least]:.3g}, of {' – '.join(_ends(least, pairs, nodes))} ({groups[0]} − "
        f"{groups[1]} = {found.difference[least]:+.2g}). {ASSUMED}"
    )


def _ends(pair: int, pairs: Pairs, nodes: Sequence[str]) -> tuple[str, str]:
    rows, cols = pairs.at(np.array([pair]))
    return nodes[rows[0]], nodes[cols[0]]


def _write_edges(path: Path, found: WelchDifferences, some: set[int], pairs: Pairs, nodes: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target", *SUMS_NUMBERS])
        for pair in found.ranked:
            if pair in some:
                numbers = [float(getattr(found, name)[pair]) for name in SUMS_NUMBERS]
                cells = ["" if np.isnan(number) else number for number in numbers]
                writer.writerow([*_ends(pair, pairs, nodes), *cells])
