"""One draw of four COIL-20 objects, their images learned by every method, and communities sought in the graphs.

The three silos are three views of the same objects: twelve poses each, 48 images, 1024 pixels as samples. Louvain's
method looks for communities, which should be the objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import networkx as nx
import numpy as np
from sklearn.metrics import fowlkes_mallows_score, normalized_mutual_info_score, rand_score

from silograph._util.types import Vector
from silograph.data.moments import Moments
from silograph.datasets.coil import CoilSilos, coil_silos, load_coil20
from silograph.experiments.grids import PointResult, learn_grid
from silograph.experiments.lab import SECONDS, Arrays
from silograph.experiments.recipe import CONTENDERS, Contender, Recipe
from silograph.graph.pairs import Pairs
from silograph.protocol.silo import Silo

MEASURES = ("NMI", "RI", "FMI")
NMI = MEASURES.index("NMI")
N_OBJECTS, N_CHOSEN = 20, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageTrial:
    """Which trial: the objects, and everything else that its numbers depend on."""

    objects: tuple[int, ...]
    recipe: Recipe
    methods: tuple[str, ...]
    path: Path
    data: str  # fingerprint of what is there
    raw: bool = False  # distances between images in the pixels' own unit


def draw_objects(seed: int) -> tuple[int, ...]:
    """Four random objects."""
    chosen = np.random.default_rng([20, seed]).choice(N_OBJECTS, N_CHOSEN, replace=False)
    return tuple(int(number) for number in np.sort(chosen))


def run_image_trial(trial: ImageTrial) -> Arrays:
    """For each method: scores (points, graphs, measures); graphs are the views' in order and the consensus last."""
    views = views_of(trial.objects, trial.path)
    silos = silos_of(views, raw=trial.raw)
    out: Arrays = {}
    for name in trial.methods:
        contender, began = CONTENDERS[name], perf_counter()
        out[f"{name}/scores"] = np.array(
            [
                [agreement(communities(w, trial.recipe.threshold), views.labels) for w in graphs_of(learned, contender)]
                for learned in learn_grid(silos, contender, trial.recipe)
            ]
        )
        out[name + SECONDS] = np.array(perf_counter() - began)
    return out


def views_of(objects: Sequence[int], path: Path) -> CoilSilos:
    """The three views of the objects."""
    return coil_silos(load_coil20(path), objects)


def silos_of(views: CoilSilos, *, raw: bool = False) -> list[Silo]:
    """The views as the methods meet them: distances in units of their mean, one number per silo.

    Pixels from 0 to 1 are so near to each other that the best graph has degrees around 50, and T·K = 250 steps of 0.005
    from w⁰ = 0.1 do not get there: `raw` distances show it. The model itself does not mind the unit.
    """
    pairs = Pairs.all(len(views.names))
    out = []
    for name, signals in views.signals.items():
        moments = Moments.of(signals, pairs)
        cost = moments.costs()
        out.append(Silo(name=name, pairs=pairs, cost=cost if raw else cost / cost.mean(), n_samples=moments.n_samples))
    return out


def graphs_of(learned: PointResult, contender: Contender) -> list[Vector]:
    """The silos' graphs, and the consensus where the method learns one."""
    return [*learned.graphs, *([learned.consensus] if contender.has_consensus else [])]


def communities(w: Vector, threshold: float) -> np.ndarray:
    """Each node's community in the graph of the weights above the threshold, found by Louvain's method."""
    graph = network(w, threshold)
    labels = np.empty(len(graph), dtype=np.int64)
    for number, members in enumerate(nx.community.louvain_communities(graph, weight="weight", seed=0)):
        labels[list(members)] = number
    return labels


def network(w: Vector, threshold: float) -> nx.Graph:
    """The graph of the weights above the threshold, nodes numbered."""
    n_nodes = round((1 + np.sqrt(1 + 8 * w.size)) / 2)
    rows, cols = np.triu_indices(n_nodes, 1)
    found = w > threshold
    graph = nx.Graph()
    graph.add_nodes_from(range(n_nodes))
    edges = zip(rows[found].tolist(), cols[found].tolist(), w[found].tolist(), strict=True)
    graph.add_weighted_edges_from(edges)
    return graph


def agreement(found: np.ndarray, truth: np.ndarray) -> Sequence[float]:
    """NMI, Rand index and Fowlkes-Mallows index of communities against objects."""
    return (
        float(normalized_mutual_info_score(truth, found)),
        float(rand_score(truth, found)),
        float(fowlkes_mallows_score(truth, found)),
    )
