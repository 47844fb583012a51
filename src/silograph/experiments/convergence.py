"""How near Algorithm 1 comes to the optimum, round by round, for several numbers K of local steps."""

from dataclasses import dataclass, replace

import numpy as np

from silograph._util.types import Vector
from silograph.engine.study import StudyResult, learn_silos
from silograph.experiments.grids import learn_point
from silograph.experiments.lab import Arrays
from silograph.experiments.recipe import CONTENDERS, Recipe, grid_of, settings_of
from silograph.experiments.scenarios import Scenario
from silograph.experiments.trials import draw, silos_of

LOCAL_STEPS = (1, 5, 10, 20)
ROUNDS = (1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 57, 80, 113, 160)
OPTIMAL = 1e-11  # relative gap of what distances are measured to


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """Which descent: a draw of a scenario, and a point of the grid."""

    scenario: Scenario
    seed: int
    nu: float
    lam: float
    recipe: Recipe


def follow_descent(descent: Descent) -> Arrays:
    """Relative distances to the optimum (K, rounds) of local graphs and consensus.

    And for every point of the grid, with the recipe's K and T, the largest relative rise of the objective in one round.
    """
    silos = silos_of(draw(descent.scenario, descent.seed))
    point = {"nu": descent.nu, "lam": descent.lam}
    settings = settings_of(CONTENDERS["exact"], descent.recipe, point)
    best = learn_silos(silos, replace(settings, tol=OPTIMAL), workers=1)
    local, consensus = [], []
    for local_steps in LOCAL_STEPS:
        recipes = [replace(descent.recipe, local_steps=local_steps, rounds=rounds) for rounds in ROUNDS]
        studies = [learn_point(silos, CONTENDERS["ppgl"], recipe, point) for recipe in recipes]
        local.append([_apart(_locals(study), _locals(best)) for study in studies])
        consensus.append([_apart(study.consensus, best.consensus) for study in studies])
    points = grid_of(CONTENDERS["ppgl"], descent.recipe)
    rises = [_largest_rise(learn_point(silos, CONTENDERS["ppgl"], descent.recipe, point)) for point in points]
    return {"local": np.array(local), "consensus": np.array(consensus), "rises": np.array(rises)}


def _largest_rise(study: StudyResult) -> float:
    objectives = np.array([record["objective"] for record in study.history])
    return float(np.max(np.diff(objectives) / np.abs(objectives[:-1])))


def _locals(study: StudyResult) -> Vector:
    return np.concatenate(list(study.graphs.values()))


def _apart(w: Vector, best: Vector) -> float:
    """‖w − w*‖/‖w*‖; the distance itself where the optimum is empty."""
    return float(np.linalg.norm(w - best) / (np.linalg.norm(best) or 1.0))
