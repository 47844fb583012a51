"""How many rounds silograph's exact method takes, over all regimes."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.joint.catalogue import ROUND_TOLERANCES
from benchmarks.joint.datasets import silos_of
from silograph.engine.study import StudyResult, learn_silos
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from testing.silo_problems import instances

NEARLY = 0.2  # of the typical distance from the consensus


def count(n_nodes: int) -> list[dict[str, Any]]:
    """Rounds to each tolerance, the last one included, for every instance of so many nodes."""
    found = []
    for label, costs, settings in instances(n_nodes):
        if costs[0].size != Pairs.all(n_nodes).size:
            continue
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
