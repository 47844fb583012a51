"""How silograph's own stages grow with nodes and with samples: from signals to costs, one solve, and a whole `fit`.

Each lap has signals of its own, so that its spread is also that of the data, on which the number of steps depends.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import Ruler, repeat
from benchmarks.one_silo.catalogue import STAGES
from benchmarks.one_silo.datasets import SEED, in_unit_alpha, smooth
from benchmarks.worker import peak_mb
from silograph import SmoothGraph
from silograph._util.types import Matrix, Vector
from silograph.data.pairwise import moments_of
from silograph.graph.pairs import Pairs
from silograph.local.degree import first_theta, problem_at
from silograph.local.solvers import exact

DEGREE = 5.0
TOL = 1e-8


def time_stages(n_nodes: int, n_samples: int, laps: int, ruler: Ruler) -> dict[str, Any]:
    """Seconds of each stage, one per lap; the first calls, which load or compile loops, are not among them."""
    turns = [_time_once(n_nodes, n_samples, lap, ruler) for lap in range(laps)]
    return {"seconds": {stage: [turn[stage] for turn in turns] for stage in STAGES}, "peak_mb": peak_mb()}


def _time_once(n_nodes: int, n_samples: int, lap: int, ruler: Ruler) -> dict[str, float]:
    rng = np.random.default_rng([SEED, n_nodes, n_samples, lap])
    signals = np.ascontiguousarray(smooth(n_nodes, rng, n_samples).T)
    pairs = Pairs.all(n_nodes)
    cost = costs_of(signals, pairs)
    problem = in_unit_alpha(problem_at(first_theta(cost, pairs, DEGREE), cost, pairs, 0.0))
    stages = {
        "costs": partial(costs_of, signals, pairs),
        "solve": partial(exact.solve, problem, tol=TOL),
        "fit": partial(SmoothGraph(degree=DEGREE, tol=TOL).fit, signals),
    }
    for stage in STAGES if lap == 0 else ():
        stages[stage]()
    return {stage: repeat(stages[stage], ruler)[0] for stage in STAGES}


def costs_of(signals: Matrix, pairs: Pairs) -> Vector:
    """The costs z/N of these signals, as the library computes them."""
    return moments_of(signals, pairs).costs()
