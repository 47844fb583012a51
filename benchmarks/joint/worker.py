"""One step of the benchmark in a process of its own, so that its peak memory and its compiled code are its own.

`build FOLDER` turns case.json into an instance, `solve FOLDER NAME SECONDS` times a solver, `other FOLDER NAME` another
model, `silos FOLDER SILOS NODES` and `rounds FOLDER NODES` show how silograph grows. Each writes result.json.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.joint.catalogue import COMPETITORS, NEIGHBOURS, Case, Competitor
from benchmarks.joint.measure import Measured, measure, time_other
from benchmarks.joint.objective import JointProblem, relative_error
from benchmarks.joint.solvers.base import Solver


def build_instance(folder: Path) -> dict[str, Any]:
    """Save the instance in both models, with lower bounds, and tell how tight the bound is known to be."""
    from benchmarks.joint.datasets import build, with_squares
    from benchmarks.joint.objective import Answer

    problem, bound, study = build(Case(**json.loads((folder / "case.json").read_text())))
    squared, squared_bound = with_squares(problem, study)
    signals = {f"signals{i}": x for i, x in enumerate(problem.signals)}
    np.savez(folder / "data.npz", costs=problem.costs, **signals)
    best = Answer(w=np.array(list(study.graphs.values())), u=study.consensus)
    shared = {"alpha": problem.alpha, "beta": problem.beta, "lam": problem.lam}
    facts = {
        "norm": shared | {"rho": problem.rho, "squares": False, "lower_bound": bound},
        "squares": shared | {"rho": squared.rho, "squares": True, "lower_bound": squared_bound},
        "reference_error": relative_error(problem, best, bound),
        "fused": study.history[-1]["fused"],
        "mean_degree": study.degree,
    }
    (folder / "instance.json").write_text(json.dumps(facts))
    return facts


def solve_instance(folder: Path, name: str, limit: float) -> dict[str, Any]:
    """Time one solver."""
    competitor, solver = _competitor(name)
    problem, bound = _problem(folder, "norm" if competitor.same_model else "squares")
    return _as_record(measure(solver, problem, bound, limit))


def time_neighbour(folder: Path, name: str) -> dict[str, Any]:
    """Time another model."""
    degree = json.loads((folder / "instance.json").read_text())["mean_degree"]
    return time_other(_competitor(name)[1], _problem(folder, "norm")[0], degree)


def _problem(folder: Path, model: str) -> tuple[JointProblem, float]:
    facts = json.loads((folder / "instance.json").read_text())[model]
    bound = facts.pop("lower_bound")
    with np.load(folder / "data.npz") as data:
        signals = [data[f"signals{i}"] for i in range(len(data.files) - 1)]
        return JointProblem(costs=data["costs"], signals=signals, **facts), bound


def _competitor(name: str) -> tuple[Competitor, Any]:
    (competitor,) = (one for one in (*COMPETITORS, *NEIGHBOURS) if one.name == name)
    solver: Solver = importlib.import_module(f"benchmarks.joint.solvers.{competitor.module}").SOLVERS[name]
    return competitor, solver


def _as_record(found: Measured) -> dict[str, Any]:
    return {
        "outcome": "ran",
        "seconds": {f"{target:g}": seconds for target, seconds in found.seconds.items()},
        "solver_seconds": {f"{target:g}": seconds for target, seconds in found.solver_seconds.items()},
        "effort": {f"{target:g}": effort for target, effort in found.effort.items()},
        "best_error": found.best_error if math.isfinite(found.best_error) else None,
    }


def _work(step: str, folder: Path, *rest: str) -> Any:
    if step == "build":
        return build_instance(folder)
    if step == "solve":
        return solve_instance(folder, rest[0], float(rest[1]))
    if step == "other":
        return time_neighbour(folder, rest[0])
    from benchmarks.joint import scaling

    return scaling.many_silos(int(rest[0]), int(rest[1])) if step == "silos" else scaling.rounds(int(rest[0]))


if __name__ == "__main__":
    where = Path(sys.argv[2])
    (where / "result.json").write_text(json.dumps(_work(sys.argv[1], where, *sys.argv[3:])))
