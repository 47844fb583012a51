"""From a run, or a fitted model, and a table of people to a comparison of two groups."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from silograph._util.checks import check_whole, list_names
from silograph._util.naming import setting
from silograph._util.types import Vector
from silograph.analysis.comparing.design import is_gap, make_design, meant_by_gaps
from silograph.analysis.comparing.study import ROWS, Comparison, compare_graphs
from silograph.errors import GraphError, ParameterError, SilosError
from silograph.graph.graph import Graph
from silograph.runs.people import SITE, Others, People, people_of, read_people
from silograph.runs.reader import RunData, read_run

PERMUTATIONS = 10_000
FEWEST_PERMUTATIONS = 19  # with fewer, no p is as small as .05
MOST_PERMUTATIONS = 10_000_000  # which take hours


class Fitted(Protocol):
    """A fitted `ConsensusGraph`, as far as it is needed here."""

    graphs_: Mapping[str, Graph]
    consensus_graph_: Graph
    n_samples_seen_: Sequence[int | None]  # in the order of the graphs


def compare_groups(
    learned: RunData | Fitted | str | os.PathLike[str],
    groups: str | os.PathLike[str] | Mapping[str, Any],
    *,
    column: str | None = None,
    between: tuple[str, str] | None = None,
    covariates: Sequence[str] = (),
    sites: str | None = None,
    name: str | None = None,
    others: Others = "error",
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Comparison:
    """Compare the graphs of two groups of silos: every pair of nodes, numbers of whole graphs, and both as a whole.

    All p-values are by relabelling silos. That is right where learning did not see the groups, as in one run over the
    silos of both. Beside covariates, what these leave of the weights is relabelled (Freedman & Lane).

    Parameters
    ----------
    learned : RunData, ConsensusGraph, str or Path
        A run over several silos, a fitted model, or the folder of a run.
    groups : str, Path or dict
        A table of people (CSV, TSV) with a row per silo: its name first, `SITE/NAME` or NAME where that is unique. Or
        silo → group, or silo → {column: value}.
    column : str, optional
        The column of groups; by default the only one beside the names.
    between : tuple of two str, optional
        Which two groups, the first minus the second, where there are more; other silos are left out. By default in the
        order of the alphabet.
    covariates : sequence of str
        Columns to adjust for: numbers as they are, words as classes. One called `site` is taken for `sites`. If there
        is no column `rows`, it is how many rows each silo was learned from.
    sites : str, optional
        A column of places: silos are relabelled within their place only. If there is no column `site`, it is that of
        the silos' names.
    name : str, optional
        The column of silos' names (default: the first).
    others : 'error' or 'ignore'
        What to do about rows of people whom the run does not have.
    permutations : int
        Relabellings; where there are no more than these, all are looked at.
    seed : int
        Of the random relabellings.

    Returns
    -------
    Comparison
        `says` (a sentence), `edges` and `graphs` (differences, effects with intervals, p, p_family, q),
        `likeness`, `mean_graphs`, `difference_graph()`.

    Examples
    --------
    >>> from silograph import ConsensusGraph, compare_groups
    >>> from silograph.datasets import make_silos
    >>> signals = make_silos(n_silos=8, n_nodes=6, n_samples=100, seed=0).signals
    >>> model = ConsensusGraph(degree=2, coupling=0.5).fit(signals)
    >>> groups = {silo: "patient" if number < 4 else "control" for number, silo in enumerate(signals)}
    >>> told = compare_groups(model, groups)
    >>> told.groups, told.design.counts, told.relabellings.possible
    (('control', 'patient'), (4, 4), 70)
    """
    check_whole("permutations", permutations, least=FEWEST_PERMUTATIONS)
    if permutations > MOST_PERMUTATIONS:
        raise ParameterError(f"permutations: expected {MOST_PERMUTATIONS} at most, got {permutations}.")
    check_whole("seed", seed, least=0)
    if others not in ("error", "ignore"):
        raise ParameterError(f"others: expected error or ignore, got {others!r}.")
    graphs, consensus, n_rows = _graphs_of(learned)
    if not isinstance(groups, Mapping | str | os.PathLike):
        raise ParameterError(
            f"groups: expected a file, silo → group, or silo → {{column: value}}, got {type(groups).__name__}. Of a "
            "data frame, give the dict of its rows: to_dict('index')."
        )
    people = people_of(groups) if isinstance(groups, Mapping) else read_people(groups, key=name)
    rows = dict(zip(graphs, people.rows_of(list(graphs), others), strict=True))
    column = people.group_column(column, option="column")
    if sites is None and SITE in covariates:
        sites = SITE
    adjusted = [one for one in dict.fromkeys(covariates) if one != sites]
    cells = {one: _known_of(people, rows, one, n_rows) for one in adjusted}
    places = None if sites is None else _places(people, rows, sites)
    label = {silo: row[column].strip() for silo, row in rows.items()}
    pair = _two_groups(label, column, people, between)
    kept = [silo for silo in graphs if label[silo] in pair]
    try:
        design = make_design(
            kept,
            [label[silo] for silo in kept],
            pair[0],
            covariates={one: [values[silo] for silo in kept] for one, values in cells.items()},
            sites=None if places is None else _known(sites, {silo: places[silo] for silo in kept}),
        )
    except SilosError as error:
        raise SilosError(f"{people.source}: {error}") from error
    return compare_graphs(
        {silo: graphs[silo] for silo in kept},
        consensus,
        design,
        pair,
        permutations=permutations,
        seed=seed,
        rows=_numbers_of_rows({silo: n_rows[silo] for silo in kept}, adjusted),
        covariates=adjusted,
        sites=sites,
        column=column,
        left_out=[silo for silo in graphs if silo not in set(kept)],
    )


def _numbers_of_rows(n_rows: Mapping[str, int | None], adjusted: Sequence[str]) -> Vector | None:
    if ROWS in adjusted or None in n_rows.values():
        return None
    return np.array(list(n_rows.values()), dtype=np.float64)


def _graphs_of(
    learned: RunData | Fitted | str | os.PathLike[str],
) -> tuple[Mapping[str, Graph], Graph, Mapping[str, int | None]]:
    """Each silo's graph, the consensus, and how many rows each silo was learned from."""
    if isinstance(learned, str | os.PathLike):
        learned = read_run(learned)
    if not isinstance(learned, RunData):
        if not hasattr(learned, "graphs_"):
            raise ParameterError("learned: expected a run over several silos or a fitted ConsensusGraph. Fit it first.")
        n_rows = dict(zip(learned.graphs_, learned.n_samples_seen_, strict=True))
        return learned.graphs_, learned.consensus_graph_, n_rows
    if not learned.silos:
        raise GraphError(
            "Expected a run over several silos, got one over one table: there is one graph, and nothing to compare. "
            "Give `silograph learn` a table per person."
        )
    if len(learned.silos) == 1:
        raise GraphError(
            f"Expected a run over several silos, got one over {learned.silos[0].name!r} alone, as a newcomer's is: "
            "there is nothing to compare. Give the run that has the silos of both groups."
        )
    away = [silo.name for silo in learned.silos if silo.name not in learned.graphs]
    if away:
        raise GraphError(
            f"Expected the graph of each silo, but {len(away)} are not in this folder ({list_names(away)}): they "
            "stayed at their sites. Graphs can be compared where they are; between sites with many patients, the study "
            "asks for it (groups in study.toml), and the run's compare/ has Welch's test."
        )
    return learned.graphs, learned.main, {silo.name: silo.n_samples for silo in learned.silos}


def _known_of(
    people: People, rows: Mapping[str, Mapping[str, str]], column: str, n_rows: Mapping[str, int | None]
) -> dict[str, str]:
    if column == ROWS and column not in people.columns and None not in n_rows.values():
        return {silo: str(n_rows[silo]) for silo in rows}
    return _cells(people, rows, column, option="covariates")


def _cells(people: People, rows: Mapping[str, Mapping[str, str]], column: str, *, option: str) -> dict[str, str]:
    people.check_column(column, option=option)
    return {silo: row[column].strip() for silo, row in rows.items()}


def _places(people: People, rows: Mapping[str, Mapping[str, str]], column: str) -> dict[str, str]:
    if column == SITE and column not in people.columns and all("/" in silo for silo in rows):
        return {silo: silo.partition("/")[0] for silo in rows}
    return _cells(people, rows, column, option="sites")


def _known(sites: str | None, places: Mapping[str, str]) -> list[str]:
    gaps = [silo for silo, place in places.items() if is_gap(place)]
    if gaps:
        raise SilosError(
            f"Sites {sites!r}: expected a value for each silo, but {len(gaps)} have none ({list_names(gaps)}). "
            f"{meant_by_gaps(list(places.values()))}Fill them in."
        )
    return list(places.values())


def _two_groups(
    label: Mapping[str, str], column: str, people: People, between: tuple[str, str] | None
) -> tuple[str, str]:
    there = sorted({its for its in label.values() if not is_gap(its)})
    if between is not None:
        lost = [one for one in between if one not in there]
        if lost or len(set(between)) != 2:
            raise ParameterError(
                f"{setting('between')}: expected two groups of column {column!r} ({list_names(there)}), "
                f"got {list_names(between)}. {meant_by_gaps(list(label.values()))}".rstrip()
            )
        return between
    gaps = [silo for silo, its in label.items() if is_gap(its)]
    if gaps:
        raise SilosError(
            f"{people.source}, column {column!r}: expected a group for each silo, but {len(gaps)} have none "
            f"({list_names(gaps)}). {meant_by_gaps(list(label.values()))}Fill them in, or leave these silos out by "
            f"naming both groups ({setting('between')})."
        )
    if len(there) != 2:
        cure = "There is nothing to compare: check the column."
        cure = f"Name two of them ({setting('between')})." if len(there) > 2 else cure
        if alike := [one for one in there if [other.casefold() for other in there].count(one.casefold()) > 1]:
            cure = f"{list_names(alike)} differ in upper and lower case: write each group in one way."
        raise SilosError(
            f"{people.source}, column {column!r}: expected two groups, got {len(there)} ({list_names(there)}). {cure}"
        )
    return there[0], there[1]
