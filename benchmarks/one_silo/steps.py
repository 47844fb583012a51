"""What worker processes do: build an instance and its lower bound, and load it again for a solver."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from benchmarks.measure import Ruler
from benchmarks.one_silo.catalogue import Case
from benchmarks.one_silo.objective import dual, relative_gap
from benchmarks.solver import Answer
from benchmarks.suite import Competitor
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem
from silograph.local.solvers import exact

REFERENCE_TOL = 1e-13
RULER = Ruler(
    targets=(1e-4, 1e-8),
    score=lambda problem, answer, lower_bound: relative_gap(problem, answer.w, lower_bound),
    clock=process_time,  # with one thread it is the wall time of an idle machine, also on a busy one
    summary=median,
)


def build_instance(folder: Path) -> dict[str, Any]:
    """Write the instance, a lower bound on its optimum, and how tight that bound is known to be."""
    from benchmarks.one_silo.datasets import build  # here, as solving should not wait for what it does not use

    problem = build(Case(**json.loads((folder / "case.json").read_text())))
    reference = exact.solve(problem, tol=REFERENCE_TOL)
    lower_bound = dual(problem, reference.y)
    facts = {
        "n_nodes": problem.n_nodes,
        "quadratic": problem.quadratic,
        "alpha": problem.alpha,
        "lower_bound": lower_bound,
        "reference_gap": RULER.score(problem, Answer(w=reference.w), lower_bound),
        "mean_degree": 2 * int(np.count_nonzero(reference.w)) / problem.n_nodes,
    }
    np.save(folder / "cost.npy", problem.cost)
    (folder / "instance.json").write_text(json.dumps(facts))
    return facts


def load(folder: Path, competitor: Competitor) -> tuple[LocalProblem, float]:
    """The problem that was built, the same for everybody, and the lower bound."""
    facts = json.loads((folder / "instance.json").read_text())
    problem = LocalProblem(
        cost=np.load(folder / "cost.npy"),
        pairs=Pairs.all(facts["n_nodes"]),
        quadratic=facts["quadratic"],
        alpha=facts["alpha"],
    )
    return problem, facts["lower_bound"]


def time_growth(folder: Path, n_nodes: str, n_samples: str, laps: str) -> dict[str, Any]:
    """The times of silograph's stages at one size."""
    from benchmarks.one_silo.growth import time_stages

    return time_stages(int(n_nodes), int(n_samples), int(laps), RULER)


STEPS: dict[str, Callable[..., Any]] = {"build": build_instance, "growth": time_growth}
