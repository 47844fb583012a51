"""Partial correlations in a run's folder: partial.npz, a number of each edge, and whether the smooth model is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from silograph._util.types import BoolVector, Matrix, Vector
from silograph.analysis.partial.judgement import Judgement, judge
from silograph.analysis.partial.learn import learn_partial
from silograph.analysis.partial.sums import sums_of
from silograph.data.blocks import N_BLOCKS
from silograph.data.moments import Moments
from silograph.data.pairwise import AnyMoments
from silograph.errors import GraphError, SignalError
from silograph.graph.files import read_arrays, write_arrays
from silograph.graph.graph import Graph
from silograph.graph.pairs import Pairs, endpoints

COLUMN = "partial_correlation"
MOST_NODES = 200
MOST_NUMBERS = 2**26  # that blocks of all silos may hold: 512 MB
MOST_WORK = 2**27  # silos · nodes³: about ten seconds
MOST_JUDGED = 128  # nodes, of which the judgement takes some seconds
DIGITS = 9  # beyond, numbers depend on where arrays lie in memory, and a run that goes on has the same bits
MOST_PAIRS = 8  # negative ones that are told by name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunSigns:
    """Signed partial correlations of every pair of a run's nodes."""

    names: tuple[str, ...]
    silos: tuple[str, ...]  # none of a run over one table
    own: Matrix  # (silos, nodes, nodes)
    consensus: Matrix  # (nodes, nodes), or those of the only table

    def columns(self, silo: str | None, graph: Graph) -> dict[str, Vector]:
        """What is told of each edge of the consensus or only graph (None), or of a silo's."""
        matrix = self.consensus if silo is None else self.own[self.silos.index(silo)]
        number = {name: node for node, name in enumerate(self.names)}
        place = np.array([number[name] for name in graph.names], dtype=np.intp)
        return {COLUMN: np.asarray(matrix[place[graph.rows], place[graph.cols]])}

    def agreed(self, silo: str | None, graph: Graph) -> BoolVector:
        """Of which edges both agree: they are among as many of the highest pairs as the graph has edges.

        Highest, and neither positive nor strongest: signals that add up to nothing over the nodes make all pairs
        negative, and rank them no worse.
        """
        matrix = self.consensus if silo is None else self.own[self.silos.index(silo)]
        values = np.sort(matrix[endpoints(len(self.names))])
        least = values[-graph.n_edges] if graph.n_edges else np.inf
        return np.asarray(self.columns(silo, graph)[COLUMN] >= least)

    def negative(self, n_edges: int) -> list[tuple[str, str, float]]:
        """Negative pairs among as many of the consensus' strongest as a graph has edges, the strongest first."""
        rows, cols = endpoints(len(self.names))
        values = self.consensus[rows, cols]
        strongest = np.argsort(-np.abs(values), kind="stable")[:n_edges]
        some = [place for place in strongest.tolist() if values[place] < 0][:MOST_PAIRS]
        return [(self.names[rows[place]], self.names[cols[place]], float(values[place])) for place in some]


def can_tell_signs(n_silos: int, pairs: Pairs) -> bool:
    """Whether there are few enough nodes and silos, and no pair is left out."""
    d = pairs.n_nodes
    return (
        pairs.is_all and d <= MOST_NODES and n_silos * N_BLOCKS * d**2 <= MOST_NUMBERS and n_silos * d**3 <= MOST_WORK
    )


def learn_signs(
    tables: Mapping[str, Sequence[AnyMoments]], names: Sequence[str]
) -> tuple[RunSigns, Judgement | None] | None:
    """Partial correlations and, of not too many nodes, the judgement; nothing of rows with gaps or constant nodes."""
    plain = {silo: [part for part in parts if isinstance(part, Moments)] for silo, parts in tables.items()}
    if not plain or any(len(plain[silo]) < len(parts) for silo, parts in tables.items()):
        return None
    try:
        silos = sums_of(plain, names, standardize=True)
    except SignalError:  # the smooth model does without what these need: it was told already if it matters
        return None
    found = learn_partial(silos)
    several = tuple(tables) if len(tables) > 1 else ()
    signs = RunSigns(
        names=tuple(names),
        silos=several,
        own=np.round(found.own[: len(several)], DIGITS),
        consensus=np.round(found.consensus, DIGITS),
    )
    judgement = judge(silos, found.shrinkage) if len(names) <= MOST_JUDGED else None
    return signs, None if judgement is None or judgement.n_blocks == 0 else judgement


def write_signs(path: Path, signs: RunSigns) -> None:
    """`names`, `consensus` and, of several silos, `silos` and `partial_correlations`."""
    arrays = {"names": np.array(signs.names, dtype=str), "consensus": signs.consensus}
    if signs.silos:
        arrays |= {"silos": np.array(signs.silos, dtype=str), "partial_correlations": signs.own}
    write_arrays(path, arrays)


def read_signs(path: Path) -> RunSigns:
    """What `write_signs` wrote."""
    try:
        data = read_arrays(path)
        silos = tuple(data["silos"].tolist()) if "silos" in data else ()
        own = data["partial_correlations"] if silos else np.empty((0, *data["consensus"].shape))
        return RunSigns(names=tuple(data["names"].tolist()), silos=silos, own=own, consensus=data["consensus"])
    except (KeyError, ValueError) as error:
        raise GraphError(f"{path}: cannot be read ({error}). Run `silograph learn` again.") from error
