"""One sum: the consensus is the pooled optimum, own graphs are Ditto's exact ones, pulls are chosen by unseen rows."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from silograph.data.blocks import moments_of_blocks
from silograph.data.costs import table_costs
from silograph.data.pairwise import moments_of
from silograph.engine.study import learn_silos
from silograph.errors import ParameterError, ProtocolError, SignalError
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.personal import PULLS, Others, held_out_losses
from silograph.methods.common.pooling import CostSum
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import build_setup
from silograph.methods.common.setup_checks import ScalarsError
from silograph.methods.oneshot import OneShot, pooled_model
from silograph.privacy.settings import Privacy
from silograph.protocol.exchange import answer_task
from silograph.protocol.messages import Header, Task, Total
from silograph.protocol.method import Cohort
from silograph.protocol.silo import Silo, SiloState

D = 8
PAIRS = Pairs.all(D)
NAMES = [f"node {k}" for k in range(D)]


def silo_of(name: str, X: np.ndarray) -> Silo:
    read = table_costs(moments_of(X, PAIRS), moments_of_blocks(X, PAIRS), standardize=False, names=NAMES, source=name)
    return Silo(name=name, pairs=PAIRS, cost=read.cost, n_samples=read.n_samples, blocks=read.blocks)


def some_silos(seed: int = 0, n: int = 3, n_samples: int = 60) -> list[Silo]:
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(D, D))
    return [
        silo_of(f"silo {i}", rng.normal(size=(n_samples, D)) @ (mix + 0.4 * rng.normal(size=(D, D)))) for i in range(n)
    ]


def learned(silos=None, **settings):
    return learn_silos(some_silos() if silos is None else silos, StudySettings(method="oneshot", **settings))


def test_the_consensus_is_the_pooled_optimum_with_its_sparsity(rng):
    silos = some_silos()
    study = learned(silos, alpha=1.0, beta=0.5, sparsity=0.3, pull=1.0)
    mean = np.mean([silo.cost for silo in silos], axis=0)
    assert study.lam / 3 == pytest.approx(0.3 * np.median(mean), rel=1e-12)
    w, S = cp.Variable(PAIRS.size, nonneg=True), np.zeros((D, PAIRS.size))
    S[PAIRS.rows, np.arange(PAIRS.size)] = S[PAIRS.cols, np.arange(PAIRS.size)] = 1
    objective = (mean + 0.3 * np.median(mean)) @ w + cp.sum_squares(w) - cp.sum(cp.log(S @ w))
    best = cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL")
    assert study.objective == pytest.approx(3 * best, rel=1e-6)
    assert study.gap <= 1e-8


def test_with_one_pull_for_all_it_is_the_exact_form_of_ditto():
    silos = some_silos()
    ours = learned(silos, alpha=1.0, beta=0.5, pull=2.0)
    ditto = learn_silos(silos, StudySettings(method="ditto", alpha=1.0, beta=0.5, pull=2.0))
    np.testing.assert_array_equal(ours.consensus, ditto.consensus)
    for name, w in ditto.graphs.items():
        np.testing.assert_array_equal(ours.graphs[name], w)


@pytest.mark.parametrize("degree", [2.0, 4.0])
def test_the_graph_of_all_together_has_the_degree_asked_for(degree):
    study = learned(degree=degree)
    assert 2 * np.count_nonzero(study.consensus) / D == pytest.approx(degree, abs=1 / D + 1e-9)


def test_every_silo_tells_its_owner_its_pull_and_its_gap():
    study = learned(degree=3)
    for name in study.graphs:
        evidence = study.evidence[name]
        assert evidence["pull"] in PULLS
        assert evidence["gap"] <= 1e-8
        assert evidence[f"loss at {evidence['pull']:g}"] == min(evidence[f"loss at {pull:g}"] for pull in PULLS)
    assert "pull" not in str(study.reported)


def test_held_out_rows_leave_the_consensus_as_well(monkeypatch):
    silos = some_silos()
    silo, problem = silos[0], silos[0].problem(alpha=1.0, beta=0.5, zeta=0.0)
    rest = silos[1].cost + silos[2].cost
    sums = CostSum.of(PAIRS, rest + silo.cost, 3.0)
    losses = held_out_losses(problem, silo.blocks, Others.of(sums, silo.cost, None, weight=1.0, shift=0.0), [5.0])
    due, rows = 0.0, 0
    for held in silo.blocks.folds(4):
        seen = [k for k in range(16) if k not in held]
        own = replace(problem, cost=silo.blocks.cost(seen))
        u = solve_to_rounding(replace(problem, cost=(rest + own.cost) / 3), None).w
        w = solve_to_rounding(replace(own, cost=own.cost - 10 * u, quadratic=own.quadratic + 10), None).w
        n = silo.blocks.counts[held].sum()
        due, rows = due + n * replace(problem, cost=silo.blocks.cost(held)).value(w), rows + n
    assert losses[5.0] == pytest.approx(due / rows, rel=1e-6)


def test_silos_alike_choose_a_strong_pull_and_strangers_a_weak_one():
    rng = np.random.default_rng(3)
    mix = rng.normal(size=(D, D))
    alike = [silo_of(f"silo {i}", rng.normal(size=(20, D)) @ mix) for i in range(6)]
    stranger = silo_of("stranger", rng.normal(size=(400, D)) @ rng.normal(size=(D, D)))
    study = learned([*alike, stranger], degree=3)
    pulls = {name: evidence["pull"] for name, evidence in study.evidence.items()}
    assert pulls["stranger"] < 1 < np.median([pulls[silo.name] for silo in alike])


def test_two_and_three_sums_count_those_near_the_consensus_more():
    rng = np.random.default_rng(5)
    mix = rng.normal(size=(D, D))
    alike = [silo_of(f"silo {i}", rng.normal(size=(300, D)) @ mix) for i in range(4)]
    stranger = silo_of("stranger", rng.normal(size=(300, D)) @ rng.normal(size=(D, D)))
    target = learned(alike, alpha=1.0, beta=0.5, pull=1.0).consensus
    far = [
        np.linalg.norm(learned([*alike, stranger], alpha=1.0, beta=0.5, pull=1.0, sums=sums).consensus - target)
        for sums in (1, 2, 3)
    ]
    assert far[2] < far[1] < far[0]


@pytest.mark.parametrize("name", ["coupling", "nu", "lam", "rounds"])
def test_settings_of_a_coupled_model_are_refused(name):
    with pytest.raises(ParameterError, match=rf"{name}|nu and lam"):
        StudySettings(method="oneshot", **{name: 1})


@pytest.mark.parametrize("sums", [0, 4, 1.5])
def test_other_numbers_of_sums_are_refused(sums):
    with pytest.raises(ParameterError, match="sums: expected"):
        StudySettings(method="oneshot", sums=sums)


def test_a_silo_without_rows_cannot_choose_and_is_named_before_anything_is_sent():
    silos = [Silo(name=silo.name, pairs=PAIRS, cost=silo.cost) for silo in some_silos()]
    with pytest.raises(SignalError, match=r"silo 0: .* Give pull"):
        learned(silos, degree=3)
    assert learned(silos, degree=3, pull=1.0).converged


def test_signals_of_any_unit_give_the_same_graphs():
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(50, D)) @ rng.normal(size=(D, D)) for _ in range(3)]
    metres, tesla = (
        learned([silo_of(f"{i}", unit * X) for i, X in enumerate(tables)], degree=3) for unit in (1.0, 2.0**-43)
    )
    assert metres.cost_unit == 1.0
    assert tesla.cost_unit < 1e-20
    for name, w in metres.graphs.items():
        np.testing.assert_allclose(tesla.graphs[name], w, rtol=1e-9)


# --- a hostile coordinator --------------------------------------------------------------------------------------------


def asked(step: str, number: int, parts: dict, *, state=None, sums: int = 1, **scalars: float):
    silos = some_silos()
    settings = StudySettings(method="oneshot", degree=3, sums=sums)
    total = np.sum([silo.cost for silo in silos], axis=0)
    model = replace(pooled_model(settings, total, PAIRS, 3), **scalars)
    task = Task(
        header=Header(run="r", method="oneshot", step=step, round=number), parts={"cost": total, "weight": 3.0} | parts
    )
    return answer_task(OneShot(settings, model), silos[0], state or SiloState(), task, report=False)


def test_what_leaves_after_the_sum_is_the_word_that_it_was_received():
    update, state = asked("personal", 1, {})
    assert dict(update._parts) == {"silos": 1.0}
    assert state.graph is not None


def test_a_further_sum_than_the_study_says_is_not_answered():
    with pytest.raises(ProtocolError, match="expected a step of 'oneshot', got 'weigh'"):
        asked("weigh", 1, {})
    _, state = asked("weigh", 1, {}, sums=2)
    with pytest.raises(ProtocolError, match="expected 2 sums"):
        asked("weigh", 2, {}, sums=2, state=state)


@pytest.mark.parametrize("scalars", [{"alpha": 1e-3}, {"beta": 10.0}, {"lam": 1.0}])
def test_parameters_other_than_the_sum_calls_for_are_refused(scalars):
    with pytest.raises(ScalarsError, match="which the sum calls for"):
        asked("personal", 1, {}, **scalars)


def test_a_sum_of_silos_that_count_differently_is_refused_as_the_first():
    with pytest.raises(ProtocolError, match="count alike"):
        asked("personal", 1, {"weight": 2.0})


def test_the_certificate_is_that_of_the_pooled_problem():
    silos = some_silos()
    study = learned(silos, degree=3, pull=1.0)
    mean = np.mean([silo.cost for silo in silos], axis=0)
    problem = LocalProblem(cost=mean, pairs=PAIRS, quadratic=4 * study.beta, alpha=study.alpha)
    assert problem.value(study.consensus) * 3 == pytest.approx(study.objective, rel=1e-12)


# --- noise ----------------------------------------------------------------------------------------------------------


def test_what_a_noisy_sum_leaves_for_the_others_is_never_below_zero(rng):
    """Noise may take the sum below a silo's own term; what it holds out must not make costs negative then."""
    pairs, (silo, *_) = PAIRS, some_silos()
    noisy = np.maximum(silo.cost + rng.normal(size=pairs.size), 0.0)
    others = Others.of(CostSum.of(pairs, noisy, 3.0), silo.cost, None, weight=1.0, shift=0.25)
    assert (others.sums.cost < 0).any()
    problem = silo.problem(alpha=1.0, beta=0.5, zeta=0.0)
    nothing_sent = others.problem(replace(problem, cost=np.zeros(pairs.size)))
    np.testing.assert_allclose(nothing_sent.cost, np.maximum(noisy - silo.cost, 0) / 3 + 0.25)
    np.testing.assert_allclose(others.problem(problem).cost, noisy / 3 + 0.25, atol=1e-15)


def test_the_coordinator_takes_a_negative_sum_for_zero_before_anything_comes_from_it():
    settings = StudySettings(method="oneshot", degree=3, privacy=Privacy(epsilon=1, delta=1e-5, min_samples=10))
    cost = np.linspace(-0.5, 2.0, PAIRS.size)
    header = Header(run="r", method="setup", step="costs", round=1)
    total, cohort = Total(header=header, n_silos=3, parts={"cost": cost}), Cohort(pairs=PAIRS, silos=("a",), n_silos=3)
    model = build_setup(settings, PAIRS).merge(cohort, None, total).outcome
    due = pooled_model(settings, np.maximum(cost, 0), PAIRS, 3)
    assert (model.alpha, model.beta) == (due.alpha, due.beta)
    assert model.pooled.tobytes() == due.pooled.tobytes()
    assert (model.cost_sum >= 0).all()
