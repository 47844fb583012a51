"""The comparison of two groups of silos, whole: pairs of nodes, whole graphs, and what it says in a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from silograph._util.checks import list_names
from silograph._util.naming import setting
from silograph._util.types import Vector
from silograph.analysis.comparing.columns import ENOUGH, LEVEL, Differences, compare_columns
from silograph.analysis.comparing.design import Design
from silograph.analysis.comparing.measures import MEASURES, Likeness, PairWeights, likeness, measures_of
from silograph.analysis.comparing.relabelling import Relabellings
from silograph.graph.graph import Graph

ROWS = "rows"  # the covariate that a run knows by itself


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Two groups of silos, and where their graphs differ."""

    groups: tuple[str, str]
    pairs: PairWeights
    design: Design
    relabellings: Relabellings  # of pairs
    edges: Differences  # of each pair
    graphs: Differences  # of each of MEASURES
    likeness: Likeness
    rows: Differences | None = None  # that silos were learned from; None: not known, or adjusted for
    covariates: tuple[str, ...] = ()
    sites: str | None = None
    column: str = ""  # of the groups
    left_out: tuple[str, ...] = ()  # silos of other groups, or of none

    @property
    def shown(self) -> tuple[str, str]:
        """What people read the groups as: "1" and "2" say nothing, and 1 − 2 something else."""
        first, second = (f"{self.column} {name}".strip() if _is_number(name) else name for name in self.groups)
        return first, second

    @property
    def n_complete(self) -> int:
        """How many pairs no silo lacks."""
        return int(np.isfinite(self.pairs.values).all(axis=0).sum())

    @property
    def mean_graphs(self) -> tuple[Graph, Graph]:
        """Each group's mean graph."""
        return self.pairs.graph(self.edges.mean_first), self.pairs.graph(self.edges.mean_second)

    def difference_graph(self) -> tuple[Graph, dict[str, Vector]]:
        """The sizes of differences as a graph, and by the names of columns what has a sign, and the p-values.

        A graph's weights are above zero. Pairs that were not tested are not in it.
        """
        told = np.flatnonzero(np.nan_to_num(self.edges.difference) != 0)
        graph = Graph(
            self.pairs.names, self.pairs.rows[told], self.pairs.cols[told], np.abs(self.edges.difference[told])
        )
        names = ("difference", "p", "p_family", "q")
        return graph, {name: getattr(self.edges, name)[told] for name in names}

    @property
    def ranked(self) -> list[int]:
        """All pairs, the surest difference first, those that were not tested last."""
        sizes, p = np.abs(np.nan_to_num(self.edges.statistic)), np.nan_to_num(self.edges.p_family, nan=2.0)
        order: list[int] = np.lexsort((-sizes, p)).tolist()
        return order

    @property
    def differing(self) -> list[int]:
        """The pairs that differ, however many are tested, from the surest on."""
        return [pair for pair in self.ranked if self.edges.p_family[pair] <= LEVEL]

    def pair_name(self, pair: int) -> str:
        """Both nodes of a pair."""
        return f"{self.pairs.names[self.pairs.rows[pair]]} – {self.pairs.names[self.pairs.cols[pair]]}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer in words, also where nothing differs: of pairs first, then of whole graphs, then its limits."""
        return (_pairs_say(self), *_rate_says(self), *_graphs_say(self), *_limits_say(self))

    @property
    def says(self) -> str:
        """The same in one."""
        return " ".join(self.sentences)


def compare_graphs(
    graphs: Mapping[str, Graph],
    consensus: Graph,
    design: Design,
    groups: tuple[str, str],
    *,
    permutations: int,
    seed: int,
    rows: Vector | None = None,
    covariates: Sequence[str] = (),
    sites: str | None = None,
    column: str = "",
    left_out: Sequence[str] = (),
) -> Comparison:
    """Compare the graphs of silos that are in the order of the design; `rows` are what each was learned from."""
    pairs = PairWeights.of(graphs, consensus)
    by_labels = design.covariates.shape[1] == 0
    usual = Relabellings(design=design, labels_only=by_labels, asked=permutations, seed=seed)
    # What a relabelling of all silos means for some of them depends on more than labels
    complete = bool(np.isfinite(pairs.values).all())
    of_pairs = usual if complete else replace(usual, labels_only=False)
    measures, alike = measures_of(pairs)
    return Comparison(
        groups=groups,
        pairs=pairs,
        design=design,
        relabellings=of_pairs,
        edges=compare_columns(pairs.values, of_pairs),
        graphs=compare_columns(measures, usual),
        likeness=likeness(alike, usual),
        rows=None if rows is None else compare_columns(rows[:, None], usual),
        covariates=tuple(covariates),
        sites=sites,
        column=column,
        left_out=tuple(left_out),
    )


def _is_number(name: str) -> bool:
    return name.lstrip("+-").replace(".", "", 1).isdecimal()


def _who(told: Comparison) -> str:
    counts = zip(told.shown, told.design.counts, strict=True)
    return " and ".join(f"{name} (n = {count})" for name, count in counts)


def how(told: Comparison) -> str:
    """Which relabellings, and what was adjusted for."""
    test = told.relabellings
    number = f"all {test.count}" if test.exhaustive else f"{test.asked}"
    within = "" if told.sites is None else f" within {told.sites}"
    beside = f", adjusted for {', '.join(told.covariates)}" if told.covariates else ""
    return f"{number} relabellings{within}{beside}"


def _pairs_say(told: Comparison) -> str:
    n, found = told.edges.n_tested, told.differing
    if n == 0:
        return f"No pair of nodes can be compared between {_who(told)}: none varies in enough silos."
    least = told.ranked[0]
    counted = {0: "none differs", 1: "one differs"}.get(len(found), f"{len(found)} differ")
    family = "correction for testing them all" if n > 1 else "testing"
    return (
        f"Of {n} pair{'s' * (n > 1)} {counted} between {_who(told)} after {family} ({how(told)}); smallest adjusted "
        f"p = {told.edges.p_family[least]:.3g}, of {told.pair_name(least)} ({told.shown[0]} − {told.shown[1]} = "
        f"{told.edges.difference[least]:+.2g})."
    )


def _rate_says(told: Comparison) -> list[str]:
    some = int((np.nan_to_num(told.edges.q, nan=1.0) <= LEVEL).sum())
    if some <= len(told.differing):
        return []
    return [f"Where one in twenty of them may be false (q ≤ {LEVEL:g}), {some} {'does' if some == 1 else 'do'}."]


def incomparable(told: Comparison) -> str | None:
    """Why whole graphs are not compared, where they cannot be."""
    if not told.likeness.is_same:
        return None
    lost = told.pairs.values.size > 0 and told.n_complete == 0
    why = "no pair of nodes is in all silos" if lost else "all silos have the same"
    return f"Whole graphs cannot be compared: {why}."


def _graphs_say(told: Comparison) -> list[str]:
    if (reason := incomparable(told)) is not None:
        return [reason]
    found = [number for number, p in enumerate(told.graphs.p_family) if p <= LEVEL]
    words = [
        f"{MEASURES[number]} ({told.graphs.mean_first[number]:.3g} against {told.graphs.mean_second[number]:.3g}, "
        f"adjusted p = {told.graphs.p_family[number]:.3g})"
        for number in found
    ]
    alike, numbers = told.likeness, f"Numbers of whole graphs differ: {', '.join(words)}."
    verdict = "differ" if alike.p <= LEVEL else "differ no more than by chance"
    return [
        numbers if words else f"No number of whole graphs differs ({', '.join(MEASURES)}).",
        f"Taken as a whole, graphs {verdict}: the group tells {alike.explained:.1%} of what silos differ by "
        f"(p = {alike.p:.3g}).",
    ]


def _limits_say(told: Comparison) -> list[str]:
    test, out = told.relabellings, []
    if test.smallest_p > LEVEL:
        why = f"{test.possible} relabellings are possible" if test.exhaustive else f"{test.asked} were asked for"
        out.append(f"No difference could have been shown: only {why}, so that no p is below {test.smallest_p:.2g}.")
    elif test.exhaustive:
        out.append(f"All {test.possible} relabellings were looked at; no p can be below {test.smallest_p:.2g}.")
    if told.left_out:
        names = list_names(told.left_out)
        out.append(f"Left out, as of other groups or of none: {len(told.left_out)} of the run's silos ({names}).")
    if not told.design.is_plain:
        by = ", ".join((*told.covariates, *(() if told.sites is None else (told.sites,))))
        out.append(f"Differences and effects are adjusted for {by}; means of groups are not.")
    lacking = int(np.isnan(told.pairs.values).any(axis=0).sum())
    if lacking:
        enough = f"{ENOUGH:.0%} of either group"
        out.append(f"{lacking} pairs are lacking in some silos, and compared in the others where these are {enough}.")
        if told.n_complete:
            out.append(f"Whole graphs are compared over the other {told.n_complete}.")
    if told.rows is not None and told.rows.n_tested and told.rows.p[0] <= LEVEL:
        means = (
            f"{told.rows.mean_first[0]:.0f} rows on average, those of {told.shown[1]} {told.rows.mean_second[0]:.0f}"
        )
        out.append(
            f"Silos of {told.shown[0]} have {means}: graphs from fewer rows differ for that alone. Adjust for it "
            f"(--covariates {ROWS})."
        )
    if told.graphs.n_tested and np.isnan(told.graphs.p[0]):
        whole = setting("whole", True)
        out.append(f"All graphs have as many edges: learn keeps so many of the strongest. With {whole}, it keeps all.")
    return out
