"""Every competitor of the joint benchmark solves the same problem: on small instances they find silograph's optimum."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from benchmarks.joint.catalogue import COMPETITORS, NEIGHBOURS, ROUND_NODES, STAGES, Case
from benchmarks.joint.claims import claims
from benchmarks.joint.datasets import build, silos_of, with_squares
from benchmarks.joint.growth import time_stages
from benchmarks.joint.objective import JointProblem, lower_bound, objective, relative_error
from benchmarks.joint.report import page
from benchmarks.joint.rounds import count, regime
from benchmarks.joint.solvers import admm, algorithm1_numpy
from benchmarks.joint.solvers.square import from_square, to_square
from benchmarks.joint.steps import RULER
from benchmarks.machine import facts
from benchmarks.measure import search, time_other
from benchmarks.solver import Answer, Iterative, OtherModel, Solver
from benchmarks.suite import Competitor
from silograph.engine.study import StudyResult, learn_silos
from silograph.methods.common.settings import StudySettings
from testing.silo_problems import instances
from testing.transcription import algorithm1

SAME = [competitor for competitor in COMPETITORS if competitor.same_model]
CASE = Case(n_silos=3, n_nodes=8, coupling=0.5)
# What a run of a few seconds promises; Algorithm 1 is not asked for more than it gives
ACCURACY = {"algorithm1": 1e-4, "algorithm1-numpy": 1e-4}


@pytest.fixture(scope="module")
def built() -> tuple[JointProblem, float, StudyResult]:
    return build(CASE)


def solver_of(competitor: Competitor) -> Solver:
    for package in competitor.needs:
        pytest.importorskip(package, reason=f"{package} is not installed")
    solver: Solver = importlib.import_module(f"benchmarks.joint.solvers.{competitor.module}").SOLVERS[competitor.name]
    return solver


def nearest(solver: Solver, problem: JointProblem, bound: float, accuracy: float) -> float:
    """The relative error of the best answer that the solver gives with the settings of the benchmark."""
    if isinstance(solver, Iterative):
        runs = [solver.start(problem, step) for step in solver.steps]
        for run in runs:
            run.advance(2000)
        return min(relative_error(problem, answer, bound) for run in runs for answer in run.answers())
    assert not isinstance(solver, OtherModel)
    errors = []
    for setting in solver.settings(accuracy):
        errors.append(relative_error(problem, solver.call(problem, setting, 10.0), bound))
        if errors[-1] <= accuracy:
            break
    return min(errors)


@pytest.mark.filterwarnings("default")  # of packages that are not ours
@pytest.mark.parametrize("competitor", SAME, ids=lambda one: one.name)
def test_a_competitor_finds_the_optimum(competitor: Competitor, built: tuple[JointProblem, float, StudyResult]) -> None:
    problem, bound, _ = built
    accuracy = ACCURACY.get(competitor.name, 1e-6)
    assert nearest(solver_of(competitor), problem, bound, accuracy) <= accuracy


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("competitor", NEIGHBOURS, ids=lambda one: one.name)
def test_another_model_learns_graphs_from_the_same_signals(
    competitor: Competitor, built: tuple[JointProblem, float, StudyResult]
) -> None:
    solver = solver_of(competitor)
    assert isinstance(solver, OtherModel)
    found = time_other(solver, built[0], 4.0, 2, RULER)
    assert 0 < found["degree"] < CASE.n_nodes
    assert len(found["seconds"]) == 2
    assert min(found["seconds"]) > 0


@pytest.mark.parametrize("coupling", [0.5, 1.0, 2.0])
def test_admm_finds_the_optimum_in_every_regime(coupling: float) -> None:
    problem, bound, _ = build(Case(n_silos=4, n_nodes=10, coupling=coupling))
    assert nearest(admm.SOLVERS["admm"], problem, bound, 1e-8) <= 1e-8


def test_admm_with_squares_finds_the_optimum_of_its_own_model(built: tuple[JointProblem, float, StudyResult]) -> None:
    problem, _, study = built
    squared, bound = with_squares(problem, study)
    assert nearest(admm.SOLVERS["admm-squares"], squared, bound, 1e-8) <= 1e-8


def test_algorithm_1_in_one_array_iterates_as_its_transcription(built: tuple[JointProblem, float, StudyResult]) -> None:
    problem = built[0]
    step = 0.002
    run = algorithm1_numpy.Run(problem, step)
    run.advance(12)
    same = algorithm1(
        list(problem.costs),
        alpha=problem.alpha,
        beta=problem.beta,
        nu=problem.rho / problem.lam,
        lam=problem.lam,
        zeta=0.0,
        step=step / problem.alpha,
        momentum=0.9,
        local_steps=5,
        rounds=12,
    )
    (answer,) = run.answers()
    assert answer.w == pytest.approx(np.array(same.w), rel=1e-9, abs=1e-12)
    assert answer.u == pytest.approx(same.u, rel=1e-9, abs=1e-12)


def test_the_score_is_an_upper_bound_that_closes_at_the_optimum(built: tuple[JointProblem, float, StudyResult]) -> None:
    problem, bound, study = built
    best = Answer(w=np.array(list(study.graphs.values())), u=study.consensus)
    assert relative_error(problem, best, bound) < 1e-9
    assert objective(problem, best.w, best.u) == pytest.approx(study.objective, rel=1e-9)
    assert relative_error(problem, Answer(w=1.01 * best.w, u=best.u), bound) > 1e-6
    for bad in (0.0 * best.w, best.w - 1.0, np.nan * best.w):
        assert relative_error(problem, Answer(w=bad, u=best.u), bound) == np.inf


def test_any_forces_give_a_lower_bound(built: tuple[JointProblem, float, StudyResult]) -> None:
    problem, bound, _ = built
    rng = np.random.default_rng(0)
    for scale in (0.0, 0.1, 1.0, 10.0):
        forces = scale * problem.rho * rng.normal(size=problem.costs.shape)
        assert lower_bound(problem, forces) <= bound + 1e-9 * abs(bound)


def test_measuring_reports_a_time_for_each_target(built: tuple[JointProblem, float, StudyResult]) -> None:
    problem, bound, _ = built
    for solver in (admm.SOLVERS["admm"], solver_of(COMPETITORS[0])):
        assert not isinstance(solver, OtherModel)
        measurement = search(solver, problem, bound, 5.0, RULER)
        lap = measurement.lap(solver)
        assert set(lap.seconds) == set(measurement.found.effort) == {1e-4, 1e-6}
        assert min(lap.seconds.values()) > 0
        assert measurement.found.best_error <= 1e-6


def test_set_up_and_rounds_are_timed_apart() -> None:
    found = time_stages(3, 8, 30, 2)
    assert {stage: len(laps) for stage, laps in found["seconds"].items()} == dict.fromkeys(STAGES, 2)
    for rounds, each, n_rounds in zip(
        found["seconds"]["rounds"], found["seconds"]["per_round"], found["n_rounds"], strict=True
    ):
        assert each * n_rounds == pytest.approx(rounds)
    assert min(found["n_rounds"] + found["n_setup_rounds"]) > 0
    assert max(found["gap"]) <= 1e-6


def test_the_sizes_whose_rounds_are_counted_are_all_there_are() -> None:
    sizes = {costs[0].size for _, costs, _ in instances()}
    assert sizes == {d * (d - 1) // 2 for d in ROUND_NODES}
    assert {one["label"] for one in count(5)} == {label for label, _, _ in instances(5)}


def test_matrices_and_pairs_are_the_same_graphs() -> None:
    pairs = np.random.default_rng(0).uniform(size=(3, 15))
    assert (from_square(to_square(pairs)) == pairs).all()


def test_the_instances_cover_all_regimes_and_repeat() -> None:
    every = list(instances())
    assert len(every) >= 60
    assert len({label for label, _, _ in every}) == len(every)
    sizes = {(len(costs), costs[0].size) for _, costs, _ in every}
    assert {min(sizes)[0], max(sizes)[0]} == {2, 50}
    assert {min(size for _, size in sizes), max(size for _, size in sizes)} == {10, 19900}
    small = list(instances(largest=5))
    again = list(instances(largest=5))
    assert all(
        (a == b).all() for (_, x, _), (_, y, _) in zip(small, again, strict=True) for a, b in zip(x, y, strict=True)
    )


def test_a_regime_is_told_from_the_optimum() -> None:
    costs = build(CASE)[0].costs

    def at(coupling: float, sparsity: float) -> str:
        return regime(learn_silos(silos_of(costs), StudySettings(coupling=coupling, sparsity=sparsity)))

    assert at(0.2, 0.1) in ("apart", "one nearly fused")
    assert at(5.0, 0.1) == "all fused"
    assert at(0.5, 1.2) == "empty consensus"


def test_a_report_tells_what_was_skipped_and_what_was_missed() -> None:
    ran = {"outcome": "ran", "effort": {"0.0001": 1, "1e-06": 2}, "best_error": 1e-8}
    both = [{"seconds": {"0.0001": 0.01, "1e-06": ours}, "solver_seconds": {}} for ours in (0.02, 0.04, 0.02)]
    quick = [{"seconds": {"0.0001": 0.01, "1e-06": 0.01}, "solver_seconds": {}} for _ in range(3)]
    solvers = {
        "silograph": ran | {"laps": both},
        "admm": ran | {"laps": quick},
        "admm-squares": ran | {"laps": quick},
        "algorithm1": ran | {"laps": [], "effort": {}, "best_error": 1e-2},
        "scs": {"outcome": "skipped", "laps": [], "reason": "scs not installed"},
    }
    effort = {"quick": False, "time_limit": 1.0, "laps": 3}
    case = {"n_silos": 5, "n_nodes": 34, "coupling": 0.7}
    records = [
        {"case": case, "made": {"code": code, "cpu": "x", "effort": effort}, "load": 0.5, "instance": {"fused": 0.0}}
        | {"solvers": solvers}
        for code in "ab"
    ]
    report = {"machine": facts(), "instances": records}
    said = "\n".join(claims(report))
    assert (
        "admm / silograph to 1e-6: 0.5× (0.25–0.5) to 0.5× (0.25–0.5) (aim of 10× missed: silograph is slower)" in said
    )
    assert "algorithm1 / silograph to 1e-6: never reached" in said
    assert "admm-squares" not in said
    written = page(report).markdown()
    assert "2 versions" in written
    assert "scs not installed" in written
    assert "never / never<br>error 1e-02" in written
    (apart,) = (table for table in page(report).tables if table.header[-1] == "admm-squares")
    assert "×" not in "".join(cell for row in apart.rows for cell in row)
