"""A sweep is the federation's iteration, number for number, without the federation."""

import numpy as np
import pytest

from silograph.engine.study import learn_silos
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.sweeps import Iteration, sweep_algorithm1, sweep_averaging
from silograph.protocol.silo import Silo
from testing.silo_problems import silo_costs

N_NODES, N_SILOS = 12, 4
ITERATION = Iteration(alpha=1.0, zeta=0.5, step=0.005, momentum=0.9, rounds=30, local_steps=5)


@pytest.fixture
def costs(rng):
    drawn = silo_costs(rng, "different", N_SILOS, N_NODES, 40)
    return np.stack([3 * cost / np.mean(drawn) for cost in drawn])


def studied(costs, iteration=ITERATION, **settings):
    silos = [Silo(name=str(i), pairs=Pairs.all(N_NODES), cost=cost) for i, cost in enumerate(costs)]
    return learn_silos(
        silos,
        StudySettings(
            alpha=iteration.alpha,
            zeta=iteration.zeta,
            step=iteration.step,
            momentum=iteration.momentum,
            rounds=iteration.rounds,
            local_steps=iteration.local_steps,
            **settings,
        ),
    )


def assert_same(swept, run, study):
    np.testing.assert_allclose(swept.graphs[run], list(study.graphs.values()), atol=1e-12)
    np.testing.assert_allclose(swept.consensus[run], study.consensus, atol=1e-12)


@pytest.mark.parametrize("weights", ["adaptive", "equal"])
def test_runs_of_algorithm_1_are_the_federation_s(costs, weights):
    nus, lams = np.array([1.0, 5.0, 30.0, 5.0]), np.array([0.1, 0.1, 0.02, 1.0])
    swept = sweep_algorithm1(
        costs, Pairs.all(N_NODES), ITERATION, beta=0.7, rhos=nus * lams, lams=lams, equal=weights == "equal"
    )
    for run, (nu, lam) in enumerate(zip(nus, lams, strict=True)):
        study = studied(costs, method="algorithm1", beta=0.7, nu=nu, lam=lam, weights=weights)
        assert_same(swept, run, study)
        np.testing.assert_allclose(swept.gamma[run], list(study.contributions.values()), rtol=1e-8)


@pytest.mark.parametrize("method", ["fedavg", "fedprox", "mrmtl", "ditto"])
def test_runs_of_averaging_are_the_federation_s(costs, method):
    betas, strengths = np.array([0.2, 0.7, 0.7]), np.array([0.1, 1.0, 30.0])
    swept = sweep_averaging(method, costs, Pairs.all(N_NODES), ITERATION, betas=betas, strengths=strengths)
    solver = {"solver": "gradient"} if method in ("mrmtl", "ditto") else {}
    for run, (beta, strength) in enumerate(zip(betas, strengths, strict=True)):
        pull = {} if method == "fedavg" else {"pull": strength / (4 * beta)}
        assert_same(swept, run, studied(costs, method=method, beta=beta, **pull, **solver))


@pytest.mark.parametrize("method", ["algorithm1", "mrmtl", "ditto"])  # FedAvg starts anew each round: it ends at zero
def test_a_step_too_long_ends_a_run_where_the_federation_ends_it(costs, method):
    wild = Iteration(alpha=1.0, zeta=0.5, step=3.0, momentum=0.9, rounds=300, local_steps=5)
    pairs = Pairs.all(N_NODES)
    if method == "algorithm1":
        swept = sweep_algorithm1(costs, pairs, wild, beta=0.7, rhos=np.array([1.0]), lams=np.array([0.1]))
        study = studied(costs, wild, method=method, beta=0.7, nu=10.0, lam=0.1)
    else:
        swept = sweep_averaging(method, costs, pairs, wild, betas=np.array([0.7]), strengths=np.array([1.4]))
        study = studied(costs, wild, method=method, beta=0.7, pull=0.5, solver="gradient")
    assert study.diverged
    assert np.isfinite(swept.graphs).all()
    largest = max(np.abs(swept.graphs).max(), 1.0)
    np.testing.assert_allclose(swept.graphs[0] / largest, np.stack(list(study.graphs.values())) / largest, atol=1e-6)
