"""Problems to test on: ordinary ones, and the stress set."""

from collections.abc import Iterator

import numpy as np
from scipy.spatial.distance import pdist

from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem


def smooth_signals(rng: np.random.Generator, n_samples: int, n_nodes: int) -> np.ndarray:
    """Signals that vary slowly over random points of the unit square."""
    place = rng.uniform(size=(n_nodes, 2))
    square = ((place[:, None] - place) ** 2).sum(axis=2)
    return rng.normal(size=(n_samples, n_nodes)) @ np.linalg.cholesky(np.exp(-square / 0.1) + 1e-3 * np.eye(n_nodes)).T


def signals(kind: str, rng: np.random.Generator, n_samples: int, n_nodes: int) -> np.ndarray:
    if kind == "smooth":
        return smooth_signals(rng, n_samples, n_nodes)
    out = rng.normal(size=(n_samples, n_nodes))
    if kind == "duplicated":
        out[:, n_nodes // 2 :] = out[:, : n_nodes - n_nodes // 2]
    elif kind == "constant":
        out[:, : max(1, n_nodes // 3)] = 0.7
    elif kind == "amplitudes":  # squared distances over twelve orders of magnitude
        out *= 10.0 ** rng.uniform(-3, 3, size=n_nodes)
    elif kind == "disconnected":
        out += 1e6 * (np.arange(n_nodes) % 2) * np.arange(n_samples)[:, None]
    return out


KINDS = ("independent", "smooth", "duplicated", "constant", "amplitudes", "disconnected", "twelve orders", "zero")


def costs(kind: str, rng: np.random.Generator, n_samples: int, n_nodes: int) -> np.ndarray:
    size = n_nodes * (n_nodes - 1) // 2
    if kind == "twelve orders":
        return 10.0 ** rng.uniform(-6, 6, size=size)
    if kind == "zero":
        return np.zeros(size)
    return pdist(signals(kind, rng, n_samples, n_nodes).T, "sqeuclidean") / n_samples


def problem(cost: np.ndarray, alpha: float = 1.0, beta: float = 0.5, zeta: float = 0.0) -> LocalProblem:
    n_nodes = round((1 + np.sqrt(1 + 8 * cost.size)) / 2)
    return LocalProblem(cost=cost, pairs=Pairs.all(n_nodes), quadratic=4 * beta, alpha=alpha, zeta=zeta)


def random_problem(n: int, seed: int, listed: bool = False) -> tuple[LocalProblem, np.random.Generator]:
    rng = np.random.default_rng(seed)
    alpha, beta, zeta = 10.0 ** rng.uniform(-2, 2, size=3)
    pairs = Pairs.all(n)
    if listed:  # a ring, so that every node has a pair, and some chords
        ring = [(k, (k + 1) % n) for k in range(n)] if n > 2 else [(0, 1)]
        pairs = Pairs.listed(n, np.array(ring + [tuple(rng.choice(n, 2, replace=False)) for _ in range(n)]))
    cost = rng.normal(size=pairs.size) + 1  # some negative, as a strong anchor makes them
    return LocalProblem(cost=cost, pairs=pairs, quadratic=4 * beta, alpha=alpha, zeta=zeta), rng


def stress_set(sizes: tuple[int, ...]) -> Iterator[tuple[str, LocalProblem]]:
    """Every kind of data with α and β from 1e-4 to 1e4, N from 2 to 100 000, ζ = 0 and, on small problems, above."""
    rng = np.random.default_rng(7)
    for kind in KINDS:
        for n_nodes in sizes:
            n_samples = int(rng.choice([2, 5, 50, 500, 100_000] if n_nodes <= 20 else [2, 5, 50, 500]))
            cost = costs(kind, rng, n_samples, n_nodes)
            for alpha in (1e-4, 1.0, 1e4):
                for beta in (1e-4, 1.0, 1e4):
                    for zeta in (0.0, 1e-3, 1.0) if n_nodes <= 60 else (0.0,):
                        label = f"{kind}, d={n_nodes}, N={n_samples}, alpha={alpha:g}, beta={beta:g}, zeta={zeta:g}"
                        yield label, problem(cost, alpha, beta, zeta)


def cvxpy_optimum(local: LocalProblem) -> float:
    """The optimal value by an independent solver."""
    import cvxpy as cp

    from testing.judge import minimum

    incidence = np.zeros((local.n_nodes, local.pairs.size))
    index = np.arange(local.pairs.size)
    incidence[local.pairs.rows, index] = 1
    incidence[local.pairs.cols, index] = 1
    w = cp.Variable(local.pairs.size, nonneg=True)
    objective = local.cost @ w + 0.5 * cp.sum(cp.multiply(local.quadratic, cp.square(w)))
    objective -= local.alpha * cp.sum(cp.log(incidence @ w + local.zeta))
    return minimum(objective)
