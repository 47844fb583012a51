"""How long many studies take in one call: half-samples of the same silos, from the costs on."""

from __future__ import annotations

from statistics import mean
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.joint.catalogue import BATCH_TOL, Batch
from benchmarks.joint.datasets import silos_of
from silograph.engine.batch import Study, learn_batch
from silograph.engine.study import StudyResult, learn_silos
from silograph.methods.common.settings import StudySettings
from testing.silo_problems import pair_costs, silo_signals

SEED = 20243


def time_batch(case: Batch, laps: int) -> dict[str, Any]:
    """Wall-clock seconds, one per lap. The parameters, and the consensus they start from, are those of all samples."""
    rng = np.random.default_rng([SEED, case.n_silos, case.n_nodes])
    signals = silo_signals(rng, "different", case.n_silos, case.n_nodes, case.n_samples)
    whole = learn_silos(silos_of([pair_costs(x) for x in signals]), StudySettings())
    settings = StudySettings(alpha=whole.alpha, beta=whole.beta, nu=whole.nu, lam=whole.lam, tol=BATCH_TOL)
    halves = [
        [pair_costs(x[rng.permutation(case.n_samples)[: case.n_samples // 2]]) for x in signals]
        for _ in range(case.n_studies)
    ]
    seconds, results = [], list[StudyResult]()
    for _ in range(laps):
        begun = perf_counter()
        made = (Study(silos=tuple(silos_of(half)), settings=settings, start=whole.consensus) for half in halves)
        results = list(learn_batch(made))
        seconds.append(perf_counter() - begun)
    return {
        "seconds": seconds,
        "mean_rounds": mean(one.n_rounds for one in results),
        "most_rounds": max(one.n_rounds for one in results),
        "certified": sum(one.converged for one in results),
    }
