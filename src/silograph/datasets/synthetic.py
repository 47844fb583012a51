"""Silos with known graphs: the paper's synthetic experiment (section V), every open point an argument.

G0         points in the unit square, weights exp(−distance² / 2 kernel_width²), those below `cut` dropped
consensus  the first round(q·|E0|) of G0's edges, in one random order
silo i     the consensus and as many random edges as were removed
signals    N(0, L† + noise² I), L being the silo's Laplacian
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.random import Generator, SeedSequence

from silograph._util.checks import check_not_negative, check_positive, check_whole, is_number
from silograph._util.types import Matrix, Vector
from silograph.errors import ParameterError
from silograph.graph.graph import Graph
from silograph.graph.pairs import default_names, endpoints

AddedWeights = Literal["permuted", "kernel", "uniform"]
Scale = Literal["trace", "none"]
Value = TypeVar("Value", int, float)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SyntheticSilos:
    """Signals of several silos, and the graphs they were drawn from."""

    signals: dict[str, Matrix]  # silo name -> (samples, nodes)
    graphs: dict[str, Graph]  # each silo's true graph
    consensus: Graph  # what they share
    places: Matrix  # (nodes, 2), the points in the unit square


def make_silos(
    *,
    n_samples: int | Sequence[int] = 50,
    n_silos: int = 5,
    shared: float | Sequence[float] = 0.5,
    n_nodes: int = 20,
    kernel_width: float = 0.5,
    cut: float = 0.7,
    noise: float = 0.1,
    added_weights: AddedWeights = "permuted",
    scale: Scale = "trace",
    seed: int | Sequence[int] | Generator,
) -> SyntheticSilos:
    """Draw silos C1, C2, … whose graphs share a part, as the paper does.

    The same seed gives the same places and graphs whatever `n_samples`, and the same silo C1 whatever is said of C2.

    Parameters
    ----------
    n_silos, n_samples : int, and int or one per silo
        How many silos, and samples of each.
    shared : float or one per silo
        The part q of G0's edges that stays, from 0 to 1. One number: the kept edges are the consensus. One per silo
        (the paper's Table III, case 2): the kept edges are nested, a smaller q keeping some of what a larger one
        keeps, and the consensus is the whole graph of the first silo with the largest q; with q = 1 that is G0.
    n_nodes, kernel_width, cut, noise : int, float, float, float
        The paper's values; three of eight pairs are then edges of G0, on average. `noise` is a standard deviation.
    added_weights : 'permuted', 'kernel' or 'uniform'
        Weights of the edges that a silo adds; the paper does not say. 'permuted': those of the edges removed, shuffled,
        so that neither number nor size of weights tells silos apart. 'kernel': from the distance, as in G0; far nodes
        get weights below `cut`. 'uniform': drawn between `cut` and 1.
    scale : 'trace' or 'none'
        The paper does not say. 'trace': weights such that each graph's Laplacian, the consensus' too, has trace
        `n_nodes`, as in the work the recipe is from (Dong et al. 2016); without it the paper's steps end far from the
        optimum. 'none': left as they are.
    seed : int, several, or numpy.random.Generator
        Where the randomness comes from. A generator is drawn from once, so that the next call differs.
    """
    sizes, parts = _one_per_silo("n_samples", n_samples, n_silos), _one_per_silo("shared", shared, n_silos)
    _check(sizes, parts, n_nodes, kernel_width, cut, noise, added_weights, scale)
    base, *streams = _root(seed).spawn(1 + n_silos)  # a child depends on its number, not on how many there are
    places, kernel, edges = _draw_base(np.random.default_rng(base), n_nodes, kernel_width, cut)
    graphs, signals = {}, {}
    for number, (size, part, stream) in enumerate(zip(sizes, parts, streams, strict=True), start=1):
        edges_rng, signals_rng = map(np.random.default_rng, stream.spawn(2))
        graph = _graph(_with_added(edges, part, kernel, added_weights, cut, edges_rng), n_nodes, scale)
        graphs[f"C{number}"], signals[f"C{number}"] = graph, _smooth_signals(graph, size, noise, signals_rng)
    kept = _only(edges[: _n_kept(parts[0], edges)], kernel)
    consensus = _graph(kept, n_nodes, scale) if is_number(shared) else graphs[f"C{1 + int(np.argmax(parts))}"]
    return SyntheticSilos(signals=signals, graphs=graphs, consensus=consensus, places=places)


def laplacian(graph: Graph) -> Matrix:
    """Degrees on the diagonal, minus the weights elsewhere."""
    adjacency = graph.adjacency()
    return np.diag(adjacency.sum(axis=0)) - adjacency


def _draw_base(rng: Generator, n_nodes: int, kernel_width: float, cut: float) -> tuple[Matrix, Vector, np.ndarray]:
    """Places, the kernel of every pair, and the edges of G0 in random order."""
    places = rng.random((n_nodes, 2))
    kernel = _kernel(places, kernel_width)
    edges = rng.permutation(np.flatnonzero(kernel >= cut))
    if edges.size == 0:
        raise ParameterError(
            f"cut: expected some pair of the {n_nodes} nodes with a weight ≥ {cut}, "
            f"got {kernel.max():.3g} at most. Lower cut, or raise kernel_width."
        )
    return places, kernel, edges


def _kernel(places: Matrix, width: float) -> Vector:
    rows, cols = endpoints(len(places))
    squared = ((places[rows] - places[cols]) ** 2).sum(axis=1)
    # A weight that underflows to 0 would be no edge
    out: Vector = np.maximum(np.exp(-squared / (2 * width**2)), np.finfo(float).tiny)
    return out


def _n_kept(part: float, edges: np.ndarray) -> int:
    return round(part * edges.size)


def _only(chosen: np.ndarray, kernel: Vector) -> Vector:
    w = np.zeros_like(kernel)
    w[chosen] = kernel[chosen]
    return w


def _with_added(
    edges: np.ndarray, part: float, kernel: Vector, added_weights: AddedWeights, cut: float, rng: Generator
) -> Vector:
    """The first edges of the order, and as many others as come after them, anywhere: a removed one may return."""
    kept, removed = np.split(edges, [_n_kept(part, edges)])
    w = _only(kept, kernel)
    added = rng.choice(np.flatnonzero(w == 0), size=removed.size, replace=False)
    if added_weights == "permuted":
        w[added] = rng.permutation(kernel[removed])
    else:
        w[added] = kernel[added] if added_weights == "kernel" else rng.uniform(cut, 1.0, size=added.size)
    return w


def _graph(w: Vector, n_nodes: int, scale: Scale) -> Graph:
    rows, cols = endpoints(n_nodes)
    edges = np.flatnonzero(w)
    # The trace of a Laplacian is twice the sum of weights; without edges there is nothing to scale
    factor = n_nodes / (2 * w.sum()) if scale == "trace" and edges.size else 1.0
    return Graph.from_edges(default_names(n_nodes), rows[edges], cols[edges], factor * w[edges])


def _smooth_signals(graph: Graph, n_samples: int, noise: float, rng: Generator) -> Matrix:
    values, vectors = np.linalg.eigh(laplacian(graph))
    present = values > 1e-10 * values[-1]  # one zero per connected part
    # The root of L†, whatever the eigenvectors' signs
    root = (vectors[:, present] / np.sqrt(values[present])) @ vectors[:, present].T
    white = rng.normal(size=(n_samples, 2 * graph.n_nodes))  # row by row: fewer samples are the first of more
    out: Matrix = white[:, : graph.n_nodes] @ root + noise * white[:, graph.n_nodes :]
    return out


def _root(seed: int | Sequence[int] | Generator) -> SeedSequence:
    if isinstance(seed, Generator):
        return SeedSequence(seed.integers(2**32, size=4).tolist())
    try:
        if seed is None:  # NumPy would take another seed each time
            raise TypeError
        return SeedSequence(seed)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"seed: expected whole numbers ≥ 0 or a numpy.random.Generator, got {seed!r}. Take, for example, 0."
        ) from error


def _one_per_silo(name: str, value: Value | Sequence[Value], n_silos: int) -> list[Value]:
    check_whole("n_silos", n_silos, least=1)
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        return [value] * n_silos  # whether it is a number is checked with the others
    if len(value) != n_silos:
        raise ParameterError(
            f"{name}: expected one number, or one for each of the {n_silos} silos, got {len(value)}. "
            "Give as many, or change n_silos."
        )
    return list(value)


def _check(
    sizes: Sequence[int],
    parts: Sequence[float],
    n_nodes: int,
    kernel_width: float,
    cut: float,
    noise: float,
    added_weights: str,
    scale: str,
) -> None:
    for size in sizes:
        check_whole("n_samples", size, least=1)
    for part in parts:
        if not (is_number(part) and 0 <= part <= 1):
            raise ParameterError(f"shared: expected a part from 0 to 1, got {part!r}.")
    check_whole("n_nodes", n_nodes, least=2)
    check_positive("kernel_width", kernel_width)
    if not (is_number(cut) and 0 < cut < 1):
        raise ParameterError(f"cut: expected a weight between 0 and 1, got {cut!r}.")
    check_not_negative("noise", noise)
    for name, value, known in (
        ("added_weights", added_weights, ("permuted", "kernel", "uniform")),
        ("scale", scale, ("trace", "none")),
    ):
        if value not in known:
            raise ParameterError(f"{name}: expected {' or '.join(map(repr, known))}, got {value!r}.")
