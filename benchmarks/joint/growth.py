"""How the exact method grows with nodes, samples and silos: costs, set-up and rounds apart, memory, number of rounds.

Each lap has signals of its own, so that its spread is also that of the data, on which the number of rounds depends.
Times are processor seconds with one worker.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np

from benchmarks.joint.catalogue import STAGES
from benchmarks.measure import LONG
from benchmarks.worker import peak_mb
from silograph._util.types import Matrix
from silograph.data.pairwise import moments_of
from silograph.engine.study import learn_silos
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo
from testing.silo_problems import silo_signals

SEED = 20242
RUNS = 3  # of the same work in a lap, if it is short


def time_stages(n_silos: int, n_nodes: int, n_samples: int, laps: int) -> dict[str, Any]:
    """Seconds of each stage and rounds, one per lap; the first study, which loads or compiles loops, is not in it."""
    learn_from(_signals(2, n_nodes, n_samples, 0))
    before = peak_mb()
    turns = [_quickest(_signals(n_silos, n_nodes, n_samples, lap)) for lap in range(laps)]
    return {
        "seconds": {stage: [turn[stage] for turn in turns] for stage in STAGES},
        **{name: [turn[name] for turn in turns] for name in ("n_rounds", "n_setup_rounds", "gap")},
        "before_mb": before,
        "peak_mb": peak_mb(),
    }


def learn_from(signals: list[Matrix]) -> dict[str, Any]:
    """One study with all settings left alone, from the signals on."""
    begun = process_time()
    pairs = Pairs.all(signals[0].shape[1])
    costs = [moments_of(x, pairs).costs() for x in signals]
    silos = [Silo(name=f"silo{i}", pairs=pairs, cost=cost) for i, cost in enumerate(costs)]
    ready = process_time()
    ends = {"setup": ready}  # when the last round of a stage was over
    study = learn_silos(
        silos, StudySettings(), workers=1, on_round=lambda stage, record: ends.update({stage: process_time()})
    )
    rounds = process_time() - ends["setup"]
    return {
        "costs": ready - begun,
        "setup": ends["setup"] - ready,
        "rounds": rounds,
        "per_round": rounds / study.n_rounds,
        "n_rounds": study.n_rounds,
        "n_setup_rounds": study.n_setup_rounds,
        "gap": study.gap,
    }


def _quickest(signals: list[Matrix]) -> dict[str, Any]:
    turns = [learn_from(signals)]
    while len(turns) < RUNS and _total(turns[0]) < LONG:
        turns.append(learn_from(signals))
    return min(turns, key=_total)


def _total(turn: dict[str, Any]) -> float:
    return float(turn["costs"] + turn["setup"] + turn["rounds"])


def _signals(n_silos: int, n_nodes: int, n_samples: int, lap: int) -> list[Matrix]:
    rng = np.random.default_rng([SEED, n_silos, n_nodes, n_samples, lap])
    return silo_signals(rng, "different", n_silos, n_nodes, n_samples)
