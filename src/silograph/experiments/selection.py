"""Choosing a point of a method's grid, fairly: each method by its own best mean F-score over the seeds.

The paper tunes on the numbers it reports. The held-out choice beside it does not: the seeds are split in two halves,
each half is scored with the point that is best on the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from silograph._util.types import Matrix, Vector
from silograph.experiments.lab import Arrays
from silograph.experiments.recipe import CONTENDERS, Point, Recipe, grid_of
from silograph.experiments.scenarios import Scenario
from silograph.experiments.trials import FS

CONSENSUS, LOCAL = "consensus", "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table: a method, and which of its graphs are scored."""

    label: str
    method: str  # key of CONTENDERS
    graphs: str = LOCAL


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chosen:
    """A row's scores at the point chosen."""

    index: int
    point: Point
    scores: Matrix  # (seeds, measures)
    held_out: Vector  # (seeds,) the measure chosen by, at the point that the other half of the seeds chose
    at_edge: Point  # parameters of the point that are the least or greatest of their grid


def scores_of(row: Row, n_silos: int, results: Sequence[Arrays]) -> np.ndarray:
    """Scores (seeds, points, measures); those of local graphs are averaged over silos."""
    every = np.stack([arrays[f"{row.method}/scores"] for arrays in results])
    out: np.ndarray = every[:, :, n_silos] if row.graphs == CONSENSUS else every[:, :, :n_silos].mean(axis=2)
    return out


def best_point(f_scores: Matrix) -> int:
    """The point (of (seeds, points)) with the best mean over seeds; the first of equals."""
    return int(np.argmax(f_scores.mean(axis=0)))


def choose(row: Row, scenario: Scenario, results: Sequence[Arrays], recipe: Recipe) -> Chosen:
    """The row's best point by F-score, and its scores there."""
    points = grid_of(CONTENDERS[row.method], recipe)
    return choose_from(scores_of(row, len(scenario.n_samples), results), points, by=FS)


def choose_from(scores: np.ndarray, points: Sequence[Point], *, by: int) -> Chosen:
    """The best point of scores (seeds, points, measures) by one measure, and all measures there."""
    index = best_point(scores[:, :, by])
    return Chosen(
        index=index,
        point=points[index],
        scores=scores[:, index],
        held_out=held_out(scores[:, :, by]),
        at_edge=at_edge(points[index], points),
    )


def at_edge(point: Point, points: Sequence[Point]) -> Point:
    """Where a wider grid might have served better."""
    out = {}
    for name, value in point.items():
        values = {other[name] for other in points}
        if len(values) > 1 and value in (min(values), max(values)) and value != 0:  # below 0 there is nothing
            out[name] = value
    return out


def held_out(f_scores: Matrix) -> Vector:
    """Each seed's score at the point that is best for the other half of the seeds."""
    n_seeds = f_scores.shape[0]
    if n_seeds < 2:
        return np.full(n_seeds, np.nan)
    out = np.empty(n_seeds)
    even = np.arange(n_seeds) % 2 == 0
    for half in (even, ~even):
        out[half] = f_scores[half, best_point(f_scores[~half])]
    return out
