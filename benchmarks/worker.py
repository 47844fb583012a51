"""One step of the benchmark in a process of its own, so that its peak memory is its own.

`build FOLDER` turns case.json into an instance and its lower bound; `solve FOLDER NAME SECONDS` times one solver.
"""

from __future__ import annotations

import importlib
import json
import math
import resource
import sys
from pathlib import Path

import numpy as np

from benchmarks.catalogue import COMPETITORS, Case
from benchmarks.measure import Measured, measure
from benchmarks.objective import dual, relative_gap
from benchmarks.solvers.base import Solver
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem
from silograph.local.solvers import exact

REFERENCE_TOL = 1e-13


def build_instance(folder: Path) -> None:
    """Write the instance, a lower bound on its optimum, and how tight that bound is known to be."""
    from benchmarks.datasets import build  # here, as solving should not wait for what it does not use

    case = Case(**json.loads((folder / "case.json").read_text()))
    problem = build(case)
    reference = exact.solve(problem, tol=REFERENCE_TOL)
    lower_bound = dual(problem, reference.y)
    facts = {
        "n_nodes": problem.n_nodes,
        "quadratic": problem.quadratic,
        "alpha": problem.alpha,
        "lower_bound": lower_bound,
        "reference_gap": relative_gap(problem, reference.w, lower_bound),
        "mean_degree": 2 * int(np.count_nonzero(reference.w)) / problem.n_nodes,
    }
    np.save(folder / "cost.npy", problem.cost)
    (folder / "instance.json").write_text(json.dumps(facts))


def solve_instance(folder: Path, name: str, limit: float) -> None:
    """Time one solver and write what was found."""
    facts = json.loads((folder / "instance.json").read_text())
    problem = LocalProblem(
        cost=np.load(folder / "cost.npy"),
        pairs=Pairs.all(facts["n_nodes"]),
        quadratic=facts["quadratic"],
        alpha=facts["alpha"],
    )
    solver = _solver(name)
    before = _peak_mb()
    found = measure(solver, problem, facts["lower_bound"], limit)
    (folder / "result.json").write_text(json.dumps(_as_record(found) | {"before_mb": before, "peak_mb": _peak_mb()}))


def _solver(name: str) -> Solver:
    (module,) = (competitor.module for competitor in COMPETITORS if competitor.name == name)
    solver: Solver = importlib.import_module(f"benchmarks.solvers.{module}").SOLVERS[name]
    return solver


def _as_record(found: Measured) -> dict[str, object]:
    return {
        "outcome": "diverged" if found.diverged else "ran",
        "seconds": {f"{target:g}": seconds for target, seconds in found.seconds.items()},
        "effort": {f"{target:g}": effort for target, effort in found.effort.items()},
        "best_gap": found.best_gap if math.isfinite(found.best_gap) else None,
    }


def _peak_mb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build_instance(Path(sys.argv[2]))
    else:
        solve_instance(Path(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
