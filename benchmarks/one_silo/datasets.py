"""The instances: three kinds of signals, any number of nodes, α and β from a degree target. All seeded.

Each instance is given in units where α = 1 and so q = 2: the same minimiser, and the form in which the authors of the
first-order methods state their steps (θ·Z with a = b = 1 in GSPBox, α = 1 in the paper).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from scipy.sparse import coo_array, csc_array, eye_array
from scipy.sparse.linalg import splu
from scipy.spatial import KDTree
from scipy.spatial.distance import pdist

from benchmarks.one_silo.catalogue import DATASETS, Case
from silograph._util.types import Matrix, Vector
from silograph.graph.pairs import Pairs
from silograph.local.degree import first_theta, problem_at
from silograph.local.problem import LocalProblem

SEED = 20240
N_SAMPLES = 100
TRUE_DEGREE = 10  # mean degree of the graph on which signals are smooth
RIDGE = 0.01  # relative to the mean degree; keeps the signals' variance finite


def build(case: Case) -> LocalProblem:
    """The problem of this case; the same on every call."""
    rng = np.random.default_rng([SEED, case.n_nodes, DATASETS.index(case.dataset)])
    cost = pdist(SIGNALS[case.dataset](case.n_nodes, rng), "sqeuclidean") / N_SAMPLES
    pairs = Pairs.all(case.n_nodes)
    given = problem_at(first_theta(cost, pairs, case.degree), cost, pairs, 0.0)
    return in_unit_alpha(given)


def in_unit_alpha(problem: LocalProblem) -> LocalProblem:
    """The same problem divided by α."""
    cost: Vector = problem.cost / problem.alpha
    return LocalProblem(cost=cost, pairs=problem.pairs, quadratic=problem.quadratic / problem.alpha, alpha=1.0)


def smooth(n_nodes: int, rng: Generator, n_samples: int = N_SAMPLES) -> Matrix:
    """Signals from N(0, (L + εI)⁻¹), one row per node, L of a geometric graph with RBF weights."""
    rows, cols, weights = _geometric_graph(n_nodes, rng)
    roots, edges = np.sqrt(weights), np.arange(weights.size)
    ends = np.concatenate([rows, cols]), np.tile(edges, 2)
    factor = csc_array(coo_array((np.concatenate([roots, -roots]), ends), shape=(n_nodes, weights.size)))
    ridge = RIDGE * 2 * weights.sum() / n_nodes
    precision = csc_array(factor @ factor.T + ridge * eye_array(n_nodes))
    # Noise with the covariance of the precision matrix, so that one solve gives its inverse as covariance
    noise = factor @ rng.normal(size=(rows.size, n_samples)) + np.sqrt(ridge) * rng.normal(size=(n_nodes, n_samples))
    signals: Matrix = splu(precision).solve(noise)
    return signals


def iid(n_nodes: int, rng: Generator) -> Matrix:
    """Independent Gaussian noise: no structure to find, all costs nearly alike."""
    return rng.normal(size=(n_nodes, N_SAMPLES))


def mixed_scales(n_nodes: int, rng: Generator) -> Matrix:
    """Smooth signals whose nodes differ in amplitude by up to two orders of magnitude."""
    amplitude = 10 ** rng.uniform(-1.0, 1.0, size=(n_nodes, 1))
    signals = smooth(n_nodes, rng)
    return amplitude * signals / signals.std()


SIGNALS: dict[str, Callable[[int, Generator], Matrix]] = {"smooth": smooth, "iid": iid, "mixed": mixed_scales}


def _geometric_graph(n_nodes: int, rng: Generator) -> tuple[np.ndarray, np.ndarray, Vector]:
    """Random points of the unit square, connected within a radius, with weights exp(−2 (distance/radius)²)."""
    points = rng.uniform(size=(n_nodes, 2))
    radius = np.sqrt(TRUE_DEGREE / (np.pi * n_nodes))
    edges = KDTree(points).query_pairs(radius, output_type="ndarray")
    distance = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
    return edges[:, 0], edges[:, 1], np.exp(-2 * (distance / radius) ** 2)
