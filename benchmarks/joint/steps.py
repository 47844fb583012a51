"""What worker processes do: build an instance, load it again for a solver, time another model, show how we grow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.joint.catalogue import NAME, Batch, Case
from benchmarks.joint.objective import JointProblem, relative_error
from benchmarks.measure import Ruler, time_other
from benchmarks.solver import Answer, OtherModel
from benchmarks.suite import Competitor
from benchmarks.worker import find_competitor

RULER = Ruler(
    targets=(1e-4, 1e-6),
    score=relative_error,
    clock=perf_counter,  # as a user sees it
    summary=min,  # others' work on the machine only ever adds
)


def build_instance(folder: Path) -> dict[str, Any]:
    """Save the instance in both models, with lower bounds, and tell how tight the bound is known to be."""
    from benchmarks.joint.datasets import build, with_squares  # here, as solving should not wait for it

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


def load(folder: Path, competitor: Competitor) -> tuple[JointProblem, float]:
    """The problem that was built, in the competitor's model, and the lower bound."""
    return _load(folder, "norm" if competitor.same_model else "squares")


def time_neighbour(folder: Path, name: str, laps: str) -> dict[str, Any]:
    """Time another model."""
    degree = json.loads((folder / "instance.json").read_text())["mean_degree"]
    _, solver = find_competitor(NAME, name)
    assert isinstance(solver, OtherModel)
    return time_other(solver, _load(folder, "norm")[0], degree, int(laps), RULER)


def time_growth(folder: Path, n_silos: str, n_nodes: str, n_samples: str, laps: str) -> dict[str, Any]:
    """Set-up and rounds at one size."""
    from benchmarks.joint.growth import time_stages

    return time_stages(int(n_silos), int(n_nodes), int(n_samples), int(laps))


def count_rounds(folder: Path, n_nodes: str) -> list[dict[str, Any]]:
    """The rounds of the stress instances of one size."""
    from benchmarks.joint.rounds import count

    return count(int(n_nodes))


def time_batch(folder: Path, n_studies: str, n_silos: str, n_nodes: str, n_samples: str, laps: str) -> dict[str, Any]:
    """Many studies in one call."""
    from benchmarks.joint.batches import time_batch

    shape = {"n_silos": int(n_silos), "n_nodes": int(n_nodes), "n_samples": int(n_samples)}
    return time_batch(Batch(n_studies=int(n_studies), **shape), int(laps))


def _load(folder: Path, model: str) -> tuple[JointProblem, float]:
    facts = json.loads((folder / "instance.json").read_text())[model]
    bound = facts.pop("lower_bound")
    with np.load(folder / "data.npz") as data:
        signals = [data[f"signals{i}"] for i in range(len(data.files) - 1)]
        return JointProblem(costs=data["costs"], signals=signals, **facts), bound


STEPS: dict[str, Callable[..., Any]] = {
    "build": build_instance, "other": time_neighbour, "growth": time_growth, "rounds": count_rounds,
    "batch": time_batch,
}  # fmt: skip
