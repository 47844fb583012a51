"""One run of one-shot with noise or without, scored: the real engine, the real noise, pairs ranked by scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from silograph.audit.plan import scores_of
from silograph.data.blocks import moments_of_blocks
from silograph.data.bounded import RowBounds
from silograph.data.costs import table_costs
from silograph.data.pairwise import moments_of
from silograph.datasets.synthetic import SyntheticSilos, make_silos
from silograph.engine.inprocess import InProcess
from silograph.engine.loop import run_loop
from silograph.engine.noise import plan_for, with_min_samples
from silograph.engine.study import with_unit
from silograph.graph.pairs import Pairs
from silograph.local.degree import find_theta
from silograph.local.prox import add_pull
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.pooling import CostSum
from silograph.methods.common.registry import spec_of
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import build_setup
from silograph.metrics import average_precision
from silograph.privacy.settings import Privacy
from silograph.protocol.silo import Silo

N_NODES, DEGREE, DELTA, COMMON_MODE = 20, 6, 1e-5, 5.0
PAIRS = Pairs.all(N_NODES)
NAMES = tuple(map(str, range(N_NODES)))


@dataclass(frozen=True)
class Scored:
    """Average precision of the silos' own graphs, on average, and of the consensus."""

    personal: float
    consensus: float


def privacy_at(epsilon: float | None, collusion: int = 1) -> Privacy:
    """Masked sums with this ε; without noise, just sums."""
    if epsilon is None:
        return Privacy()
    return Privacy(sums="masked", epsilon=epsilon, delta=DELTA, collusion=collusion)


def draw(n_sites: int, n_samples: int, seed: int) -> SyntheticSilos:
    """The paper's synthetic silos."""
    return make_silos(n_samples=n_samples, n_silos=n_sites, n_nodes=N_NODES, seed=seed)


def with_common_mode(signals: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """The same, with what moves all nodes alike, many times as large as the signals."""
    rng = np.random.default_rng([seed, 2])
    return {name: values + COMMON_MODE * rng.normal(size=(len(values), 1)) for name, values in signals.items()}


def silos_of(signals: Mapping[str, np.ndarray], bounds: RowBounds | None) -> list[Silo]:
    """Tables as silos; with bounds, of rows of unit length."""
    out = []
    for name, values in signals.items():
        read = table_costs(
            moments_of(values, PAIRS, bounds),
            moments_of_blocks(values, PAIRS, bounds),
            standardize=False,
            names=NAMES,
            source=name,
        )
        out.append(Silo(name=name, pairs=PAIRS, cost=read.cost, n_samples=read.n_samples, blocks=read.blocks))
    return out


def run(silos: Sequence[Silo], drawn: SyntheticSilos, privacy: Privacy) -> Scored:
    """Learn, and compare with the truth."""
    settings = StudySettings(method="oneshot", degree=DEGREE, privacy=privacy)
    settings = with_unit(with_min_samples(settings, silos), silos)
    fresh = [replace(silo) for silo in silos]  # without the problems of another run
    engine = InProcess(fresh, report=False, workers=1, noise=plan_for(settings, PAIRS, len(silos)))
    model = run_loop(build_setup(settings, PAIRS), engine, run_id="benchmark").outcome
    run_loop(spec_of("oneshot").build(settings, model), engine, run_id="benchmark")
    sums = CostSum.of(PAIRS, model.cost_sum, float(len(silos)))
    problem = sums.problem(alpha=model.alpha, beta=model.beta, zeta=model.zeta, shift=model.lam / len(silos))
    personal = [
        average_precision(drawn.graphs[silo.name], personal_scores(silo, model, engine.evidence[silo.name]["pull"]))
        for silo in fresh
    ]
    consensus = average_precision(drawn.consensus, scores_of(problem, solve_to_rounding(problem, None)))
    return Scored(float(np.mean(personal)), consensus)


def score_alone(silos: Sequence[Silo], drawn: SyntheticSilos) -> float:
    """Average precision of the silos' graphs if each learns by itself, and sends nothing."""
    return float(np.mean([average_precision(drawn.graphs[silo.name], scores_alone(silo)) for silo in silos]))


def scores_alone(silo: Silo) -> np.ndarray:
    """Every pair by its score in the graph of this degree that the silo's own rows call for."""
    problem = find_theta(silo.cost, PAIRS, DEGREE, zeta=0.0, solver=solve_to_rounding, start=None).problem
    return scores_of(problem, solve_to_rounding(problem, None))


def personal_scores(silo: Silo, model, pull: float) -> np.ndarray:
    """The silo's own graph under the pull that it chose, every pair by its score."""
    problem = add_pull(model.problem(silo), model.pooled, pull * 4 * model.beta)
    return scores_of(problem, solve_to_rounding(problem, None))
