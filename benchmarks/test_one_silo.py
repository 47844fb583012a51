"""Every competitor solves the same problem: on small instances they all find silograph's optimum."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.measure import search
from benchmarks.one_silo.catalogue import STAGES, Case
from benchmarks.one_silo.datasets import SIGNALS, build, in_unit_alpha
from benchmarks.one_silo.growth import time_stages
from benchmarks.one_silo.objective import dual, primal, relative_gap
from benchmarks.one_silo.solvers import fbf, fdpg, silograph_gradient
from benchmarks.one_silo.solvers.recovery import recovered
from benchmarks.one_silo.steps import RULER
from silograph.local.problem import LocalProblem
from silograph.local.solvers import exact, gradient

FIRST_ORDER = fdpg.SOLVERS | fbf.SOLVERS | {"gradient": silograph_gradient.SOLVERS["gradient"]}


@pytest.fixture(params=sorted(SIGNALS))
def problem(request: pytest.FixtureRequest) -> LocalProblem:
    return build(Case(dataset=request.param, n_nodes=20, degree=4))


def best(problem: LocalProblem) -> float:
    return primal(problem, exact.solve(problem, tol=1e-12).w)


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_a_first_order_method_finds_the_optimum(name: str, problem: LocalProblem) -> None:
    run = FIRST_ORDER[name].start(problem)
    run.advance(400_000 if name == "fbf" else 60_000)
    assert min(primal(problem, answer.w) for answer in run.answers()) == pytest.approx(best(problem), rel=1e-6)


def test_the_paper_s_step_finds_the_optimum_where_it_is_short_enough() -> None:
    problem = build(Case(dataset="iid", n_nodes=20, degree=4))
    run = silograph_gradient.SOLVERS["gradient-paper"].start(problem)
    run.advance(5000)
    assert min(primal(problem, answer.w) for answer in run.answers()) == pytest.approx(best(problem), rel=1e-6)


@pytest.mark.parametrize("name", ["pygsp2", "pygsp2-safe"])
def test_pygsp2_finds_the_optimum(name: str) -> None:
    pytest.importorskip("pygsp2")
    from benchmarks.one_silo.solvers import pygsp2

    problem = build(Case(dataset="iid", n_nodes=20, degree=4))
    w = pygsp2.SOLVERS[name].call(problem, 20_000, 60.0).w
    assert primal(problem, w) == pytest.approx(best(problem), rel=1e-6)


def test_clarabel_finds_the_optimum(problem: LocalProblem) -> None:
    pytest.importorskip("cvxpy")
    from benchmarks.one_silo.solvers import cvxpy_clarabel

    w = cvxpy_clarabel.SOLVERS["clarabel"].call(problem, 1e-9, 60.0).w
    assert primal(problem, w) == pytest.approx(best(problem), rel=1e-6)


def test_the_fused_gradient_method_iterates_as_the_library_s(problem: LocalProblem) -> None:
    run = silograph_gradient.Gradient(problem, step=None)
    run.advance(9)
    assert run.w == pytest.approx(gradient.solve(problem, tol=0.0, max_iter=9).w, rel=1e-6, abs=1e-9)


def test_the_fused_constant_step_is_the_library_s() -> None:
    problem = build(Case(dataset="iid", n_nodes=20, degree=4))
    run = silograph_gradient.Gradient(problem, step=silograph_gradient.PAPER_STEP)
    run.advance(15)
    before = w = gradient.uniform_start(problem)
    for _ in range(15):
        before, w = (
            w,
            gradient.iterate(problem, w, before, step=silograph_gradient.PAPER_STEP, momentum=gradient.MOMENTUM),
        )
    assert run.w == pytest.approx(w, rel=1e-9, abs=1e-12)


def test_blocks_of_iterations_add_up(problem: LocalProblem) -> None:
    for solver in FIRST_ORDER.values():
        whole, blocks = solver.start(problem), solver.start(problem)
        whole.advance(30)
        for n_iter in (1, 9, 20):
            blocks.advance(n_iter)
        assert all((a.w == b.w).all() for a, b in zip(whole.answers(), blocks.answers(), strict=True))


def test_the_score_is_an_upper_bound_that_closes_at_the_optimum(problem: LocalProblem) -> None:
    solution = exact.solve(problem, tol=1e-12)
    lower_bound = dual(problem, solution.y)
    assert relative_gap(problem, solution.w, lower_bound) < 1e-11
    assert relative_gap(problem, 1.01 * solution.w, lower_bound) > 1e-6
    assert primal(problem, solution.w) == pytest.approx(problem.value(solution.w), rel=1e-12)


def test_infeasible_weights_score_infinity(problem: LocalProblem) -> None:
    w = np.ones(problem.cost.size)
    for bad in (0.0 * w, w - 2.0, np.nan * w):
        assert relative_gap(problem, bad, 0.0) == np.inf


def test_recovered_weights_leave_no_node_bare(problem: LocalProblem) -> None:
    (answer,) = recovered(problem, np.full(problem.n_nodes, 1e-9))
    assert problem.pairs.degrees(answer.w).min() > 0
    y = exact.solve(problem, tol=1e-12).y
    assert next(recovered(problem, y)).w == pytest.approx(problem.weights(y), abs=1e-12)


def test_measuring_reports_a_time_for_each_target() -> None:
    problem = build(Case(dataset="iid", n_nodes=20, degree=4))
    lower_bound = dual(problem, exact.solve(problem, tol=1e-12).y)
    solver = FIRST_ORDER["fdpg-restart"]
    measurement = search(solver, problem, lower_bound, 10.0, RULER)
    lap, found = measurement.lap(solver), measurement.found
    assert set(lap.seconds) == {1e-4, 1e-8}
    assert min(lap.seconds.values()) > 0
    assert found.effort[1e-4] <= found.effort[1e-8]
    assert found.best_error <= 1e-8


def test_every_stage_is_timed_in_every_lap() -> None:
    found = time_stages(30, 50, 3, RULER)
    assert {stage: len(laps) for stage, laps in found["seconds"].items()} == dict.fromkeys(STAGES, 3)
    assert min(min(laps) for laps in found["seconds"].values()) > 0


def test_instances_repeat_and_have_alpha_one() -> None:
    case = Case(dataset="mixed", n_nodes=30, degree=5)
    first, second = build(case), build(case)
    assert (first.cost == second.cost).all()
    assert first.alpha == 1.0
    assert first.quadratic == pytest.approx(2.0)
    assert in_unit_alpha(first).cost == pytest.approx(first.cost)
