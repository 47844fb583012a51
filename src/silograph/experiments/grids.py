"""A method at every point of its grid, on the same silos."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from silograph._util.types import Matrix, Vector
from silograph.engine.study import StudyResult, learn_silos
from silograph.experiments.recipe import Contender, Point, Recipe, grid_of, settings_of
from silograph.methods.common.sweeps import Iteration, SweepResult, sweep_algorithm1, sweep_averaging
from silograph.protocol.silo import Silo


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PointResult:
    """What a method learned at one point."""

    graphs: Matrix  # (silos, pairs)
    consensus: Vector
    gamma: Vector  # (silos,)
    gap: float = np.nan  # certified, relative; the largest where silos have their own; NaN for an iteration


def learn_point(silos: Sequence[Silo], contender: Contender, recipe: Recipe, point: Point) -> StudyResult:
    """The study at one point, with its certificate."""
    return learn_silos(silos, settings_of(contender, recipe, point), workers=1)


def learn_grid(silos: Sequence[Silo], contender: Contender, recipe: Recipe) -> list[PointResult]:
    """The same at all points; the iterations of several silos in one compiled sweep, number for number the same."""
    points = grid_of(contender, recipe)
    if contender.is_exact or contender.method == "independent":
        return [
            PointResult(
                graphs=np.stack(list(study.graphs.values())),
                consensus=study.consensus,
                gamma=np.array(list(study.contributions.values())),
                gap=max([study.gap, *(of_silo["gap"] for of_silo in study.evidence.values() if "gap" in of_silo)]),
            )
            for study in _studies(silos, contender, recipe, points)
        ]
    swept = _sweep(silos, contender, recipe, points)
    parts = zip(swept.graphs, swept.consensus, swept.gamma, strict=True)
    return [PointResult(graphs=graphs, consensus=consensus, gamma=gamma) for graphs, consensus, gamma in parts]


def _studies(
    silos: Sequence[Silo], contender: Contender, recipe: Recipe, points: Sequence[Point]
) -> Iterator[StudyResult]:
    """One study after the other; along λ, each starts where the last one ended, which saves a fifth of the rounds."""
    before: tuple[float | None, Vector] | None = None  # ν and consensus
    for point in points:
        start = before[1] if contender.method == "exact" and before and point["nu"] == before[0] else None
        study = learn_silos(silos, settings_of(contender, recipe, point), workers=1, start=start)
        before = (point.get("nu"), study.consensus)
        yield study


def objective(silos: Sequence[Silo], learned: PointResult, recipe: Recipe, point: Point) -> float:
    """The paper's objective of what was learned: Σ g_i(w_i) + ρ‖w_i − w_con‖ + λ‖w_con‖₁."""
    total = point["lam"] * float(learned.consensus.sum())
    for silo, w in zip(silos, learned.graphs, strict=True):
        problem = silo.problem(alpha=recipe.alpha, beta=recipe.beta, zeta=recipe.zeta)
        total += problem.value(w) + point["nu"] * point["lam"] * float(np.linalg.norm(w - learned.consensus))
    return total


def _sweep(silos: Sequence[Silo], contender: Contender, recipe: Recipe, points: Sequence[Point]) -> SweepResult:
    costs, pairs = np.stack([silo.cost for silo in silos]), silos[0].pairs
    iteration = Iteration(
        alpha=recipe.alpha,
        zeta=recipe.zeta,
        step=recipe.step,
        momentum=recipe.momentum,
        rounds=recipe.rounds,
        local_steps=recipe.local_steps,
        first_weight=recipe.first_weight,
    )
    if contender.method == "algorithm1":
        lams = np.array([point["lam"] for point in points])
        rhos = lams * np.array([point["nu"] for point in points])
        equal = contender.options.get("weights") == "equal"
        return sweep_algorithm1(
            costs,
            pairs,
            iteration,
            beta=recipe.beta,
            rhos=rhos,
            lams=lams,
            gamma_epsilon=recipe.gamma_epsilon,
            equal=equal,
        )
    betas = np.array([point.get("beta", recipe.beta) for point in points])
    strengths = np.array([point.get("strength", 0.0) for point in points])
    return sweep_averaging(contender.method, costs, pairs, iteration, betas=betas, strengths=strengths)  # type: ignore[arg-type]
