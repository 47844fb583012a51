"""From how many people on is it useful? By simulation: the consensus with noise against the consensus without.

Silos are the paper's synthetic ones, a row per person. Pairs are ranked by weight, and those without an edge by how far
they are from one. The number is the smallest at which the mean average precision is within .05 of that without noise.
Noise here is Gaussian and from a seed: nothing is protected by it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from math import sqrt

import numpy as np

from silograph._util.checks import check_whole
from silograph._util.types import Vector
from silograph.data.bounded import RowBounds
from silograph.data.pairwise import moments_of
from silograph.datasets.synthetic import SyntheticSilos, make_silos
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem
from silograph.local.solvers.polish import solve_to_rounding
from silograph.local.solvers.solution import Solution
from silograph.methods.common.pooling import CostSum
from silograph.methods.common.settings import StudySettings
from silograph.methods.oneshot import pooled_model
from silograph.metrics import average_precision
from silograph.privacy.noise import Noise, plan_noise
from silograph.privacy.settings import Privacy

WITHIN = 0.05  # of the average precision without noise
FEWEST, MOST = 25, 10_000_000  # people of each site that are tried
MOST_DRAWN = 20_000  # rows of each site; more only lessen the noise, and are not drawn
NEAR = 1.1  # ratio of two numbers of people at which the search ends
DEGREE_PART = 6 / 19  # of the other nodes: 6 neighbours of 20 nodes, as the silos' graphs have


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Average precision of the consensus at one number of people, the mean over draws."""

    people: int  # of each site
    without: float  # noise
    with_noise: float

    def is_useful(self, within: float = WITHIN) -> bool:
        """Whether noise takes away no more than that."""
        return self.without - self.with_noise <= within


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many people each site needs, and what was tried."""

    people: int | None  # of each site; None: more than were tried
    trials: tuple[Trial, ...]  # by rising numbers of people


def plan(
    nodes: int,
    sites: int,
    epsilon: float,
    delta: float,
    *,
    masked: bool = True,
    collusion: int = 1,
    within: float = WITHIN,
    draws: int = 30,
    seed: int = 0,
    on_progress: Callable[[Trial], None] = lambda trial: None,
) -> Plan:
    """The people that each site needs, a row each, at this ε and δ."""
    check_whole("nodes", nodes, least=5)
    check_whole("draws", draws, least=1)
    privacy = Privacy(sums="masked" if masked else "open", epsilon=epsilon, delta=delta, collusion=collusion)
    check_whole("sites", sites, least=1)
    privacy.check_sites(sites)
    tried: dict[int, Trial] = {}

    def is_useful(people: int) -> bool:
        tried[people] = try_people(people, nodes, sites, privacy, draws=draws, seed=seed)
        on_progress(tried[people])
        return tried[people].is_useful(within)

    high = FEWEST
    while not is_useful(high):
        if high >= MOST:
            return Plan(people=None, trials=_by_people(tried))
        high *= 2
    low = high // 2
    while high > FEWEST and high > NEAR * low:
        middle = round(sqrt(low * high))
        low, high = (low, middle) if is_useful(middle) else (middle, high)
    return Plan(people=high, trials=_by_people(tried))


def _by_people(tried: dict[int, Trial]) -> tuple[Trial, ...]:
    return tuple(tried[people] for people in sorted(tried))


def try_people(people: int, nodes: int, sites: int, privacy: Privacy, *, draws: int, seed: int) -> Trial:
    """Draw silos and noise, and compare the consensus with the true one; the same silos at every number of people."""
    pairs = Pairs.all(nodes)
    noise = plan_noise(privacy, n_nodes=nodes, n_sites=sites, min_samples=people, shared=privacy.masked, n_tables=sites)
    settings = StudySettings(method="oneshot", degree=DEGREE_PART * (nodes - 1))
    found = np.empty((draws, 2))
    for k, (number, drawn) in enumerate(islice(_draws(min(people, MOST_DRAWN), nodes, sites, seed), draws)):
        total, rng = sum_of_costs(drawn, pairs), np.random.default_rng([seed, number, 1])
        for place, cost in enumerate((total, total + simulate_noise(noise, pairs, sites, rng))):
            scores = consensus_scores(settings, np.maximum(cost, 0.0), pairs, sites)
            found[k, place] = average_precision(drawn.consensus, scores)
    without, with_noise = found.mean(axis=0)
    return Trial(people=people, without=float(without), with_noise=float(with_noise))


def _draws(n_samples: int, nodes: int, sites: int, seed: int) -> Iterator[tuple[int, SyntheticSilos]]:
    """Silos that share an edge at least: few nodes may have none, and then there is nothing to find."""
    for number in count():
        drawn = make_silos(n_samples=n_samples, n_silos=sites, n_nodes=nodes, seed=[seed, number])
        if drawn.consensus.n_edges:
            yield number, drawn


def sum_of_costs(drawn: SyntheticSilos, pairs: Pairs) -> Vector:
    """Σ z/N over the silos, of rows of unit length."""
    total = np.zeros(pairs.size)
    for signals in drawn.signals.values():
        total += moments_of(signals, pairs, RowBounds()).costs()
    return total


def simulate_noise(noise: Noise, pairs: Pairs, n_sites: int, rng: np.random.Generator) -> Vector:
    """The noise of all sites together on their sum, from a seed."""
    size = noise.sigma * noise.share * sqrt(n_sites)
    diagonal, rest = rng.normal(size=pairs.n_nodes), rng.normal(size=pairs.size)
    out: Vector = size * (pairs.sums(diagonal) - sqrt(2) * rest)
    return out


def consensus_scores(settings: StudySettings, cost_sum: Vector, pairs: Pairs, n_silos: int) -> Vector:
    """The consensus of one sum, every pair by its score."""
    model = pooled_model(settings, cost_sum, pairs, n_silos)
    sums = CostSum.of(pairs, cost_sum, float(n_silos))
    problem = sums.problem(alpha=model.alpha, beta=model.beta, zeta=model.zeta, shift=model.lam / n_silos)
    return scores_of(problem, solve_to_rounding(problem, None))


def scores_of(problem: LocalProblem, solution: Solution) -> Vector:
    """Weights of edges, and of pairs without one, below zero, how far they are from being one."""
    absent = np.minimum(-problem.reduced_cost(solution.y), 0.0) / problem.quadratic
    scores: Vector = np.where(solution.w > 0, solution.w, absent)
    return scores
