"""Whether the degree that is asked for is delivered: one random study, its degree and coupling drawn as well."""

import warnings
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.random import Generator

from silograph.estimators.consensus import ConsensusGraph
from silograph.experiments.families import Base, Family, draw
from silograph.experiments.lab import SECONDS, Arrays

NODES, SILOS, COUPLINGS, MOST_DEGREE = (10, 200), (2, 50), (0.0, 2.0), 20.0
BASES: tuple[Base, ...] = ("rbf", "er", "ba", "ws")
PROMISE = 0.05  # relative; or half an edge of each graph
TOLD = ("nodes", "silos", "coupling", "asked", "delivered", "farthest", "optimum", "rounds", "gap", "pooled")


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeDraw:
    """Which study."""

    seed: int


def run_degree(study: DegreeDraw) -> Arrays:
    """The numbers of TOLD: `delivered` is the silos' mean degree, `farthest` the worst silo's, `pooled` one-shot's."""
    rng = np.random.default_rng(study.seed)
    d, n_silos, coupling = _whole(rng, NODES), _whole(rng, SILOS), rng.uniform(*COUPLINGS)
    asked = round(_between(rng, 2.0, min(MOST_DEGREE, d / 3)), 1)
    family = Family(
        name="degrees",
        says="",
        base=BASES[rng.integers(len(BASES))],
        n_nodes=d,
        n_samples=tuple(int(n) for n in rng.integers(d // 2, 3 * d, size=n_silos)),
    )
    signals, began = list(draw(family, study.seed).signals), perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of silos with few rows, which users are told
        model = ConsensusGraph(degree=asked, coupling=coupling, n_jobs=1).fit(signals)
        seconds = perf_counter() - began
        pooled = ConsensusGraph(degree=asked, method="oneshot", n_jobs=1).fit(signals)
    own = (model.adjacencies_ > 0).sum(axis=(1, 2)) / d
    numbers = {
        "nodes": d,
        "silos": n_silos,
        "coupling": coupling,
        "asked": asked,
        "delivered": own.mean(),
        "farthest": own[np.abs(own - asked).argmax()],
        "optimum": model.optimum_degree_,
        "rounds": model.n_rounds_,
        "gap": model.gap_,
        "pooled": (pooled.consensus_ > 0).sum() / d,
    }
    return {"told": np.array([numbers[name] for name in TOLD]), "degree" + SECONDS: np.array(seconds)}


def is_kept(asked: np.ndarray, got: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Whether it is within five per cent, or half an edge of each graph."""
    return np.asarray(np.abs(got - asked) <= np.maximum(PROMISE * asked, 1 / nodes) + 1e-9)


def _between(rng: Generator, low: float, high: float) -> float:
    """On a logarithmic scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _whole(rng: Generator, ends: tuple[int, int]) -> int:
    return round(_between(rng, *ends))
