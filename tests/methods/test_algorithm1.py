"""Algorithm 1 against the transcription of the paper's listing, and what happens where it fails."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from silograph import ConsensusGraph
from silograph.engine.study import convergence_warning, learn_silos
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo
from silograph.theory import lipschitz_constant
from testing import transcription
from testing.silo_problems import pair_costs, silo_costs, silo_signals

PAPER = {"alpha": 1.0, "beta": 0.7, "nu": 5.0, "lam": 0.1, "zeta": 0.5}


def scaled_costs(rng, n_silos=5, n_nodes=20, n_samples=50):
    """Costs of the size that the paper's step and ζ are made for."""
    costs = silo_costs(rng, "different", n_silos, n_nodes, n_samples)
    return [4 * cost / np.mean(costs) for cost in costs]


def studied(costs, steps=None, **settings):
    pairs = Pairs.all(round((1 + np.sqrt(1 + 8 * costs[0].size)) / 2))
    steps = [None] * len(costs) if steps is None else steps
    silos = [
        Silo(name=str(i), pairs=pairs, cost=cost, local_steps=k)
        for i, (cost, k) in enumerate(zip(costs, steps, strict=True))
    ]
    settings = StudySettings(method="algorithm1", **settings)
    return learn_silos(silos, settings), settings


@pytest.mark.parametrize("local_steps", [1, 5, 20])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize(("nu", "lam"), [(5.0, 0.1), (1.5, 0.5), (50.0, 0.02)])
def test_fifty_rounds_are_those_of_the_printed_listing(rng, local_steps, momentum, nu, lam):
    costs = scaled_costs(rng)
    paper = PAPER | {"nu": nu, "lam": lam}
    study, _ = studied(costs, step=0.005, momentum=momentum, local_steps=local_steps, rounds=50, **paper)
    printed = transcription.algorithm1(
        costs, step=0.005, momentum=momentum, local_steps=local_steps, rounds=50, epsilon=1e-8, start=0.1, **paper
    )
    np.testing.assert_allclose(study.consensus, printed.u, atol=1e-12)
    for w, expected in zip(study.graphs.values(), printed.w, strict=True):
        np.testing.assert_allclose(w, expected, atol=1e-12)
    objectives = [record["objective"] for record in study.history[:51]]
    # With momentum and one local step it overshoots fivefold at first, and rounding with it
    np.testing.assert_allclose(objectives, printed.objectives, rtol=1e-11)
    gammas = 1 / np.array(list(study.contributions.values()))
    np.testing.assert_allclose(gammas, 1 / printed.gammas[-1], atol=1e-12)


def test_each_silo_may_have_its_own_number_of_local_steps(rng):
    costs = scaled_costs(rng, n_silos=3, n_nodes=8)
    ones, _ = studied(costs, steps=[2, 2, 2], step=0.005, rounds=10, **PAPER)
    same, _ = studied(costs, local_steps=2, step=0.005, rounds=10, **PAPER)
    np.testing.assert_array_equal(ones.consensus, same.consensus)
    other, _ = studied(costs, steps=[1, 5, 20], step=0.005, rounds=10, **PAPER)
    assert np.abs(other.consensus - same.consensus).max() > 1e-3


def test_equal_weights_are_the_paper_s_ablation(rng):
    costs = scaled_costs(rng)
    study, _ = studied(costs, step=0.005, weights="equal", **PAPER)
    assert set(study.contributions.values()) == {1 / 5}
    w = np.mean(list(study.graphs.values()), axis=0)  # after many rounds: the mean, less λ/ρ
    np.testing.assert_allclose(study.consensus, np.maximum(w - 1 / PAPER["nu"], 0), atol=1e-3)


def test_where_it_converges_it_agrees_with_the_exact_method(rng):
    costs = scaled_costs(rng)
    study, settings = studied(costs, step=0.005, rounds=400, **PAPER)
    exact = learn_silos(
        [Silo(name=str(i), pairs=Pairs.all(20), cost=cost) for i, cost in enumerate(costs)],
        StudySettings(tol=1e-8, **PAPER),
    )
    assert study.objective == pytest.approx(exact.objective, rel=1e-4)
    assert study.objective >= exact.history[-1]["bound"]
    assert study.gap >= (study.objective - exact.objective) / study.objective - 1e-9
    assert convergence_warning(study, settings) is None


def test_a_step_from_the_local_lipschitz_constant_never_diverges(rng):
    costs = scaled_costs(rng)
    fused = PAPER | {"nu": 50.0, "lam": 0.5}
    study, _ = studied(costs, step="lipschitz", momentum=0.0, rounds=60, **fused)
    objectives = np.array([record["objective"] for record in study.history[1:61]])
    assert (np.diff(objectives) <= 1e-9 * objectives[:-1]).all()
    assert lipschitz_constant(alpha=1, beta=0.7, zeta=0.5, n_nodes=20) < np.inf


def test_fused_silos_make_it_stall_or_diverge_and_the_user_is_told_the_cure(rng):
    costs = scaled_costs(rng)
    fused = PAPER | {"nu": 50.0, "lam": 0.5}
    for options in (
        {"step": 0.005},
        {"step": "lipschitz", "momentum": 0.0},
        {"step": 0.005, "fresh": True, "gamma_cap": 5.0},
    ):
        study, settings = studied(costs, **options, **fused)
        message = convergence_warning(study, settings)
        assert message is not None
        assert "method='exact'" in message
    exact = learn_silos(
        [Silo(name=str(i), pairs=Pairs.all(20), cost=cost) for i, cost in enumerate(costs)], StudySettings(**fused)
    )
    assert exact.converged
    assert exact.objective < study.objective


def test_a_step_too_long_ends_early_with_a_word_and_the_last_sound_graphs(rng):
    costs = scaled_costs(rng, n_silos=3, n_nodes=8)
    study, settings = studied(costs, step=50.0, **PAPER)
    assert study.diverged
    assert "smaller step" in (convergence_warning(study, settings) or "")
    for w in (*study.graphs.values(), study.consensus):
        assert np.isfinite(w).all()


def test_the_estimator_warns(rng):
    signals = silo_signals(rng, "similar", 3, 10, 40)
    with pytest.warns(ConvergenceWarning, match="Algorithm 1"):
        ConsensusGraph(degree=3, coupling=3.0, method="algorithm1").fit(signals)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ConsensusGraph(degree=3, coupling=3.0).fit(signals)
    assert pair_costs(signals[0]).shape == (45,)


def test_fresh_weights_have_the_same_limit(rng):
    costs = scaled_costs(rng)
    plain, _ = studied(costs, step=0.005, rounds=600, **PAPER)
    fresh, _ = studied(costs, step=0.005, rounds=600, fresh=True, **PAPER)
    assert fresh.objective == pytest.approx(plain.objective, rel=1e-6)
