"""Two silos: where the consensus drifts between them, and how a detour ends it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.joint.fuzz import problems, solve
from silograph.engine.study import learn_silos
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.sliding import FRACTIONS, Drift, along, find_way, lean_of, values_along
from silograph.protocol.silo import Silo
from testing.silo_problems import silo_costs


def drifting_study(tol: float = 1e-6):
    """Two silos whose pulls are far stronger than λ: without a detour it takes some hundred rounds."""
    costs = silo_costs(np.random.default_rng([777, 612]), "different", 2, 7, 3)
    pairs = Pairs.all(7)
    silos = [Silo(name=name, pairs=pairs, cost=cost) for name, cost in zip(("oslo", "lima"), costs, strict=True)]
    return costs, learn_silos(silos, StudySettings(alpha=0.135, beta=1.67, lam=0.00271, nu=59.3, tol=tol))


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 40))
def test_sums_over_two_silos_tell_the_way_along_which_the_objective_falls(seed, size):
    rng = np.random.default_rng(seed)
    u, *graphs = rng.uniform(size=(3, size))
    missing = rng.normal(size=size)
    told = [lean_of(w, u, 0.7) for w in graphs]
    way = find_way(*(sum(one[name] for one in told) for name in ("apart", "tilted", "tilt", "tilt_square")), missing)
    slopes = [missing @ (w - u) for w in graphs]
    if min(slopes) >= 0:
        assert way is None
    else:
        spread = abs((graphs[0] - graphs[1]).sum())
        np.testing.assert_allclose(way, graphs[int(np.argmin(slopes))] - u, atol=1e-10 * max(1, 1 / spread))


def test_graphs_of_the_same_weight_tell_no_way():
    u, w = np.zeros(3), np.array([1.0, 2.0, 3.0])
    told = [lean_of(one, u, 1.0) for one in (w, w[::-1].copy())]
    sums = [sum(one[name] for one in told) for name in ("apart", "tilted", "tilt", "tilt_square")]
    assert find_way(*sums, -np.ones(3)) is None


def test_a_way_begins_at_the_consensus_and_passes_the_silo(rng):
    w, u = rng.uniform(size=(2, 5))
    assert FRACTIONS[0] == 0.0
    values = values_along(w, u, w - u, own=3.0, rho=2.0)
    assert values[0] == pytest.approx(3.0 + 2.0 * np.linalg.norm(w - u))
    assert values[list(FRACTIONS).index(1.0)] == pytest.approx(3.0)
    assert all((point >= 0).all() for point in along(u, -10 * u))


def test_what_falls_or_changes_or_is_fused_does_not_drift():
    still = Drift().after(np.ones(4), fallen=0.99, fused=0)
    assert still.after(np.ones(4), fallen=0.99, fused=0).after(np.ones(4), fallen=0.99, fused=0).is_long
    for fallen, fused, missing in ((0.5, 0, np.ones(4)), (0.99, 1, np.ones(4)), (0.99, 0, 2 * np.ones(4))):
        assert still.after(missing, fallen=fallen, fused=fused).rounds == 0
    later = still.after(np.ones(4), fallen=0.99, fused=0)
    assert later.ended(worth=False).patience > later.ended(worth=True).patience == later.patience


def test_a_drift_ends_at_the_lighter_silo_and_at_the_optimum_of_an_independent_solver():
    import cvxpy as cp

    from testing.judge import minimum

    costs, study = drifting_study(tol=1e-8)
    assert study.converged
    assert study.n_rounds <= 40
    steps = [record["step"] for record in study.history]
    assert "look" in steps
    assert steps[steps.index("look") + 1] == "probe"
    lighter = min(study.graphs.values(), key=np.sum)
    np.testing.assert_array_equal(lighter, study.consensus)
    rows, cols = np.triu_indices(7, 1)
    incidence = np.zeros((7, rows.size))
    incidence[rows, np.arange(rows.size)] = incidence[cols, np.arange(rows.size)] = 1
    u = cp.Variable(rows.size, nonneg=True)
    total = study.lam * cp.sum(u)
    for cost in costs:
        w = cp.Variable(rows.size, nonneg=True)
        total += cost @ w + 2 * study.beta * cp.sum_squares(w) - study.alpha * cp.sum(cp.log(incidence @ w))
        total += study.rho * cp.norm(w - u)
    assert study.objective == pytest.approx(minimum(total), rel=2e-7)


def test_a_drift_has_the_same_bits_in_any_order_of_silos_and_after_a_stop(tmp_path):
    costs, whole = drifting_study()
    settings = StudySettings(alpha=0.135, beta=1.67, lam=0.00271, nu=59.3, tol=1e-6)
    silos = [Silo(name=name, pairs=Pairs.all(7), cost=cost) for name, cost in zip(("oslo", "lima"), costs, strict=True)]
    turned = learn_silos(silos[::-1], settings)
    np.testing.assert_array_equal(whole.consensus, turned.consensus)

    class StopError(Exception):
        pass

    def stop_after(step):
        def told(stage, record):
            if record.get("step") == step:
                raise StopError

        return told

    for step in ("look", "probe"):
        with pytest.raises(StopError):
            learn_silos(silos, settings, checkpoint=tmp_path / step, on_round=stop_after(step))
        resumed = learn_silos(silos, settings, checkpoint=tmp_path / step)
        np.testing.assert_array_equal(whole.consensus, resumed.consensus)
        assert resumed.n_rounds == whole.n_rounds


def test_random_problems_are_certified_and_three_silos_are_never_asked_to_look():
    rounds = []
    for label, costs, parameters in problems(120, seed=20261):
        study = solve(costs, parameters)
        assert study.converged, label
        rounds.append(study.n_rounds)
        assert len(costs) == 2 or not {"look", "probe"} & {record["step"] for record in study.history}, label
    assert np.mean(np.array(rounds) <= 25) >= 0.97
