"""One trial: one draw of a scenario's graphs and signals, learned by every method at every point of its grid.

A trial keeps the scores of all points, so that tables, held-out rows and the sensitivity figure need no second run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from silograph._util.types import Vector
from silograph.data.blocks import moments_of_blocks
from silograph.data.costs import table_costs
from silograph.data.pairwise import moments_of
from silograph.datasets.synthetic import SyntheticSilos, make_silos
from silograph.errors import SilographError
from silograph.experiments.grids import PointResult, learn_grid, objective
from silograph.experiments.lab import SECONDS, Arrays
from silograph.experiments.recipe import CONTENDERS, Contender, Recipe, grid_of
from silograph.experiments.scenarios import Scenario
from silograph.graph.graph import Graph
from silograph.graph.pairs import Pairs
from silograph.metrics import average_precision, score
from silograph.protocol.silo import Silo

MEASURES = ("Precision", "Recall", "FS", "RE", "AP")  # the paper has all but AP, the average precision
FS, AP = MEASURES.index("FS"), MEASURES.index("AP")
CERTIFIED = 1e-6  # relative gap of what is called exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Which trial: everything that its numbers depend on."""

    scenario: Scenario
    seed: int
    recipe: Recipe = field(default_factory=Recipe)


def run_trial(trial: Trial) -> Arrays:
    """For each method: scores (points, graphs, measures), and γ (points, silos) where it learns a consensus.

    Graphs are the silos' in order and, for methods that learn one, the consensus last. Of the paper's model, iterated
    and exact, the objectives are kept too, to see how far the iteration is from the optimum; and of each method the
    seconds it took, to tell what dominates, which are the only thing that a second run changes. Of one sum, the average
    precision of the consensus where pairs without an edge do not tie.
    """
    drawn = draw(trial.scenario, trial.seed)
    silos, recipe = silos_of(drawn), trial.recipe
    out: Arrays = {}
    for name in trial.scenario.methods:
        contender, began = CONTENDERS[name], perf_counter()
        learned = learn_grid(silos, contender, recipe)
        if contender.is_exact:
            _check_certified(learned, trial, name)
        out[f"{name}/scores"] = np.array([scores_of(one, drawn, contender, recipe.threshold) for one in learned])
        out[name + SECONDS] = np.array(perf_counter() - began)
        if contender.has_consensus:
            out[f"{name}/gamma"] = np.array([one.gamma for one in learned])
        if name in ("ppgl", "exact"):
            points = zip(learned, grid_of(contender, recipe), strict=True)
            out[f"{name}/objective"] = np.array([objective(silos, one, recipe, point) for one, point in points])
        if name == "sum-home":
            out[f"{name}/ranked"] = np.array(ranked_precision(silos, learned[0].consensus, drawn.consensus, recipe))
    return out


def _check_certified(learned: Sequence[PointResult], trial: Trial, name: str) -> None:
    """Raise unless every optimum is one: the tables say so."""
    for one, point in zip(learned, grid_of(CONTENDERS[name], trial.recipe), strict=True):
        if not one.gap <= CERTIFIED:
            raise SilographError(
                f"{trial.scenario.label}, seed {trial.seed}, {name} at {dict(point)}: expected a certified relative "
                f"gap of {CERTIFIED:g}, got {one.gap:.1e}. Leave that point out of the grid, or tell us."
            )


def ranked_precision(silos: Sequence[Silo], pooled: Vector, truth: Graph, recipe: Recipe) -> float:
    """Average precision of the pooled graph, pairs without an edge ranked by how far they are from having one."""
    cost = np.mean([silo.cost for silo in silos], axis=0)
    problem = replace(silos[0].problem(alpha=recipe.alpha, beta=recipe.beta, zeta=recipe.zeta), cost=cost)
    absent = np.minimum(-problem.gradient(pooled), 0.0) / problem.quadratic
    return average_precision(truth, np.where(pooled > 0, pooled, absent))


def draw(scenario: Scenario, seed: int) -> SyntheticSilos:
    """The scenario's graphs and signals; the same seed draws the same graphs whatever the numbers of samples."""
    sizes = scenario.n_samples
    drawn = make_silos(n_samples=sizes, n_silos=len(sizes), shared=scenario.shared, seed=seed)
    graphs, signals = dict(drawn.graphs), dict(drawn.signals)
    for number in range(len(sizes) - scenario.unrelated, len(sizes)):
        name = f"C{number + 1}"
        other = make_silos(n_samples=sizes, n_silos=len(sizes), shared=scenario.shared, seed=(seed, number))
        graphs[name], signals[name] = other.graphs[name], other.signals[name]
    return replace(drawn, graphs=graphs, signals=signals)


def silos_of(drawn: SyntheticSilos) -> list[Silo]:
    """The silos as the methods meet them."""
    pairs = Pairs.all(drawn.places.shape[0])
    nodes = drawn.consensus.names
    read = {
        name: table_costs(
            moments_of(signals, pairs), moments_of_blocks(signals, pairs), standardize=False, names=nodes, source=name
        )
        for name, signals in drawn.signals.items()
    }
    return [
        Silo(name=name, pairs=pairs, cost=table.cost, n_samples=table.n_samples, blocks=table.blocks)
        for name, table in read.items()
    ]


def scores_of(learned: PointResult, drawn: SyntheticSilos, contender: Contender, threshold: float) -> list[list[float]]:
    """Each silo's graph against its own truth, and the consensus, where the method learns one, against what is shared.

    FedAvg and FedProx have one graph for all, which is every silo's.
    """
    compared: list[tuple[Graph, Vector]] = list(zip(drawn.graphs.values(), learned.graphs, strict=True))
    if contender.has_consensus:
        compared.append((drawn.consensus, learned.consensus))
    out = []
    for truth, w in compared:
        one = score(truth, w, threshold)
        out.append([one.precision, one.recall, one.f_score, one.relative_error, average_precision(truth, w)])
    return out
