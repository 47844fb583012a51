"""How silograph's exact method grows: seconds and memory with the number of silos, rounds over all regimes."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.joint.catalogue import ROUND_TOLERANCES
from benchmarks.joint.datasets import silos_of
from benchmarks.worker import peak_mb
from silograph.engine.study import StudyResult, learn_silos
from silograph.methods.common.settings import StudySettings
from testing.silo_problems import instances, pair_costs, silo_signals

N_SAMPLES = 176
NEARLY = 0.2  # of the typical distance from the consensus


def many_silos(n_silos: int, n_nodes: int) -> dict[str, Any]:
    """One study with all settings left alone, its set-up included: seconds, rounds, peak memory."""
    learn_silos(silos_of(_costs(2, n_nodes)), StudySettings())  # loads compiled loops
    before = peak_mb()
    silos = silos_of(_costs(n_silos, n_nodes))
    begun = perf_counter()
    study = learn_silos(silos, StudySettings())
    return {
        "n_silos": n_silos,
        "n_nodes": n_nodes,
        "seconds": perf_counter() - begun,
        "rounds": study.n_rounds,
        "setup_rounds": study.n_setup_rounds,
        "gap": study.gap,
        "before_mb": before,
        "peak_mb": peak_mb(),
    }


def rounds(largest: int) -> list[dict[str, Any]]:
    """Rounds to each tolerance, the last one included, for every instance of at most so many nodes."""
    found = []
    for label, costs, settings in instances(largest):
        record: dict[str, Any] = {"label": label, "rounds": {}, "certified": {}, "seconds": {}}
        for tol in ROUND_TOLERANCES:
            begun = perf_counter()
            study = learn_silos(silos_of(costs), StudySettings(tol=tol, **settings))
            record["seconds"][f"{tol:g}"] = perf_counter() - begun
            record["rounds"][f"{tol:g}"] = study.n_rounds
            record["certified"][f"{tol:g}"] = study.converged
        found.append(record | {"regime": regime(study)})
    return found


def regime(study: StudyResult) -> str:
    """Which of the regimes the optimum is in."""
    u = study.consensus
    if not u.any():
        return "empty consensus"
    apart = np.array([np.linalg.norm(w - u) for w in study.graphs.values()])
    fused = int((apart <= 1e-9 * np.linalg.norm(u)).sum())
    if fused == apart.size:
        return "all fused"
    if 2 * fused > apart.size:
        return "most fused"
    if fused:
        return "some fused"
    return "one nearly fused" if apart.min() <= NEARLY * np.median(apart) else "apart"


def _costs(n_silos: int, n_nodes: int) -> np.ndarray:
    rng = np.random.default_rng([20242, n_silos, n_nodes])
    return np.array([pair_costs(x) for x in silo_signals(rng, "different", n_silos, n_nodes, N_SAMPLES)])
