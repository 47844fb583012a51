"""One draw of a family, learned by every method: average precision of personal and consensus graphs, and calibration.

Nobody sees the truth. Pairs are ranked by `scores_` where a method has them, else by weight, and by partial correlation
for peers: by its size where there are negative ones, else by its value, as edges are then positive.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np

from silograph._util.types import Matrix
from silograph.analysis.stability import GraphStability
from silograph.estimators.consensus import ConsensusGraph
from silograph.experiments.families import Drawn, Family, draw
from silograph.experiments.lab import SECONDS, Arrays
from silograph.experiments.peers import PEERS
from silograph.metrics import average_precision

DEFAULT, ALONE = "default", "each alone"
METHODS = {DEFAULT: "exact", "one-shot": "oneshot", ALONE: "independent", "FedAvg": "fedavg"}
DEMO_METHODS = {"Algorithm 1": "algorithm1", "FedProx": "fedprox", "MRMTL": "mrmtl", "Ditto": "ditto"}
COUPLINGS = (0.0, 0.05, 0.1, 0.17, 0.25, 0.35, 0.5, 0.7, 0.9, 1.2)
STABLE = 0.9
QUORUM = 3  # silos


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Which draw, learned by silograph's methods."""

    family: Family
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerContest:
    """Which draw, learned by whom: of that version, as its numbers may change with it."""

    # Other people's methods take an hour, and what ours do changes nothing about them
    sources: ClassVar[tuple[str, ...]] = (
        "datasets", "graph", "metrics.py", "experiments/contest.py", "experiments/families.py", "experiments/peers.py",
    )  # fmt: skip

    family: Family
    seed: int
    peer: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Which draw, and how many half-samples."""

    family: Family
    seed: int
    halves: int


def run_contest(contest: Contest) -> Arrays:
    """For each method [mean personal AP, consensus AP]; the same at every fixed coupling; and the coupling chosen."""
    family = contest.family
    drawn, out = draw(family, contest.seed), {}
    for name, method in (METHODS | (DEMO_METHODS if family.as_demo else {})).items():
        began = perf_counter()
        model = _fit(drawn, method=method)
        out[name] = precisions(drawn, *scores_of(model))
        out[name + SECONDS] = np.array(perf_counter() - began)
        if name == DEFAULT:
            out["coupling"] = np.array(model.coupling_)
    began = perf_counter()
    path = [precisions(drawn, *scores_of(_fit(drawn, coupling=coupling))) for coupling in COUPLINGS]
    return out | {"path": np.array(path), "couplings" + SECONDS: np.array(perf_counter() - began)}


def run_peer(contest: PeerContest) -> Arrays:
    """[mean personal AP, consensus AP] of one peer."""
    drawn, began = draw(contest.family, contest.seed), perf_counter()
    (peer,) = (peer for peer in PEERS if peer.name == contest.peer)
    own, shared = peer.learn(drawn.signals)
    found = precisions(drawn, *ranking(contest.family, own, shared))
    return {contest.peer: found, contest.peer + SECONDS: np.array(perf_counter() - began)}


def run_calibration(calibration: Calibration) -> Arrays:
    """Of personal graphs (one row per silo) and the consensus: [stable edges, how many are true, the bound].

    Of the consensus by quorum: [edges, how many are true]. And average precision as of a contest, by scores of all rows
    and by scores averaged over half-samples; none where there is no edge to find.
    """
    drawn, began = draw(calibration.family, calibration.seed), perf_counter()
    model = _fit(drawn, stability=calibration.halves)
    own = [
        [*_stable(truth, frequency), _bound(model, name)]
        for truth, frequency, name in zip(drawn.graphs, model.stabilities_, model.silo_names_, strict=True)
    ]
    shared = [*_stable(drawn.consensus, model.consensus_stability_), _bound(model, None)]
    by_quorum = model.quorum_graph(QUORUM, STABLE).adjacency()
    out = {"own": np.array(own), "shared": np.array(shared), "stability" + SECONDS: np.array(perf_counter() - began)}
    out["quorum"] = np.array(_stable(drawn.consensus, np.where(by_quorum > 0, 1.0, 0.0)))
    if drawn.consensus.any():
        averaged = [_told(model, name).score for name in model.silo_names_]
        ranked = (scores_of(model), (averaged, _told(model, None).score))
        out["ranked"] = np.array([precisions(drawn, *one) for one in ranked])
    return out


def scores_of(model: ConsensusGraph) -> tuple[Sequence[Matrix], Matrix]:
    """Each silo's ranking of pairs and the consensus'; gradient steps have weights only."""
    try:
        own, shared = list(model.scores_), model.consensus_scores_
    except AttributeError:
        own, shared = list(model.adjacencies_), model.consensus_
    return own, shared


def _fit(drawn: Drawn, **settings: object) -> ConsensusGraph:
    with _without_warnings():
        return ConsensusGraph(n_jobs=1, **settings).fit(list(drawn.signals))  # type: ignore[arg-type]


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Users see doubts about silos and steps that are too few; here thousands of fits would tell them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def ranking(family: Family, own: Sequence[Matrix], shared: Matrix) -> tuple[Sequence[Matrix], Matrix]:
    """How partial correlations rank pairs: by size where some edges are negative, else by value."""
    return ([np.abs(one) for one in own], np.abs(shared)) if family.has_negative else (own, shared)


def precisions(drawn: Drawn, own: Sequence[np.ndarray], shared: np.ndarray) -> np.ndarray:
    """[mean personal AP, consensus AP]"""
    personal = [average_precision(truth, ranked) for truth, ranked in zip(drawn.graphs, own, strict=True)]
    return np.array([np.mean(personal), average_precision(drawn.consensus, shared)])


def _upper(matrix: Matrix) -> Matrix:
    """Pairs only: diagonals of scores are not numbers to compare."""
    out: Matrix = matrix[np.triu_indices(len(matrix), 1)]
    return out


def _stable(truth: Matrix, frequency: Matrix) -> tuple[int, int]:
    found = _upper(frequency) >= STABLE
    return int(found.sum()), int((found & (_upper(truth) > 0)).sum())


def _bound(model: ConsensusGraph, silo: str | None) -> float:
    return float(_told(model, silo).false_edges.bound(STABLE))


def _told(model: ConsensusGraph, silo: str | None) -> GraphStability:
    told = model.stability_.consensus if silo is None else model.stability_.silos[silo]
    assert told is not None  # all silos are here
    return told
