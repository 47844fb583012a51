"""Noise that hides whole people: ABIDE's of New York, a table each, spread over sites; and how many it would take.

The consensus with noise is compared with that without: average precision of its scores against the other's edges, and
the correlation of weights. More people than there are: drawn from those, with replacement, so that more people make
noise smaller and nothing else better. Their noise is numpy's, of the same size.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from benchmarks.privacy_runs import DELTA
from silograph.audit.plan import scores_of, simulate_noise
from silograph.data.bounded import RowBounds
from silograph.data.pairwise import moments_of
from silograph.datasets import load_abide
from silograph.errors import SilographError
from silograph.graph.pairs import Pairs
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.pooling import CostSum
from silograph.methods.common.settings import StudySettings
from silograph.methods.oneshot import pooled_model
from silograph.metrics import average_precision
from silograph.privacy.noise import Noise, plan_noise
from silograph.privacy.settings import Privacy

N_SITES, DEGREE, USEFUL = 4, 5, 0.9
EPSILONS = (1, 2, 4, 8, 16)
MOST_PEOPLE = 3_000_000


def load_costs() -> np.ndarray | None:
    """(people, pairs): z/N of each one's rows, brought to unit length; nothing without the data."""
    try:
        series = load_abide().series
    except SilographError:
        return None
    pairs = Pairs.all(next(iter(series.values())).shape[1])
    return np.array([moments_of(values, pairs, RowBounds()).costs() for values in series.values()])


def consensus_of(total: np.ndarray, n_people: int, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Weights and scores."""
    settings, total = StudySettings(method="oneshot", degree=DEGREE), np.maximum(total, 0.0)
    model = pooled_model(settings, total, pairs, n_people)
    problem = CostSum.of(pairs, total, float(n_people)).problem(
        alpha=model.alpha, beta=model.beta, zeta=model.zeta, shift=0.0
    )
    return model.pooled, scores_of(problem, solve_to_rounding(problem, None))


def noise_of(epsilon: float, n_nodes: int, n_people: int) -> Noise:
    """Each site's share, for whole tables."""
    privacy = Privacy(sums="masked", epsilon=epsilon, delta=DELTA, unit="table")
    return plan_noise(privacy, n_nodes=n_nodes, n_sites=N_SITES, min_samples=None, shared=True, n_tables=n_people)


def agreement(costs: np.ndarray, n_people: int, epsilon: float, seed: int, *, resample: bool) -> dict[str, float]:
    """The consensus of so many people with noise, against the one without."""
    pairs, rng = Pairs.all(round((1 + sqrt(1 + 8 * costs.shape[1])) / 2)), np.random.default_rng([seed, n_people])
    times = rng.multinomial(n_people, np.full(len(costs), 1 / len(costs))) if resample else np.ones(len(costs))
    total = times @ costs
    exact, _ = consensus_of(total, n_people, pairs)
    noise = noise_of(epsilon, pairs.n_nodes, n_people)
    if resample:
        drawn = simulate_noise(noise, pairs, N_SITES, rng)
    else:
        drawn = sum(noise.add(np.zeros(pairs.size), pairs) for _ in range(N_SITES))
    weights, scores = consensus_of(total + drawn, n_people, pairs)
    return {
        "average precision": average_precision(exact, scores),
        "correlation": float(np.corrcoef(exact, weights)[0, 1]),
        "noise of a cost over its mean": N_SITES**0.5 * noise.cost_sigma / float(total.mean()),
    }


def people_needed(costs: np.ndarray, epsilon: float, seeds: range, tell: Callable[[str], None]) -> int | None:
    """The number of people from which on the average precision is .9, within a tenth."""

    def is_useful(n_people: int) -> bool:
        found = [agreement(costs, n_people, epsilon, seed, resample=True)["average precision"] for seed in seeds]
        tell(f"people: ε = {epsilon:g}, {n_people} people: {np.mean(found):.3f}")
        return bool(np.mean(found) >= USEFUL)

    low, high = len(costs), len(costs)
    while not is_useful(high):
        if high > MOST_PEOPLE:
            return None
        low, high = high, 2 * high
    while high > 1.1 * low:
        middle = round(sqrt(low * high))
        low, high = (low, middle) if is_useful(middle) else (middle, high)
    return high


def measure_people(tell: Callable[[str], None], *, quick: bool) -> dict | None:
    """Agreement at every ε with the people there are, and how many it would take."""
    costs = load_costs()
    if costs is None:
        tell("people: $SILOGRAPH_DATA has no ABIDE data, so this part is left out")
        return None
    tell(f"people: read {len(costs)}")
    epsilons, seeds = (EPSILONS[-1:], range(1)) if quick else (EPSILONS, range(3))
    rows = []
    for epsilon in epsilons:
        found = [agreement(costs, len(costs), epsilon, seed, resample=False) for seed in seeds]
        rows.append({"epsilon": epsilon, **{name: float(np.mean([one[name] for one in found])) for name in found[0]}})
        rows[-1]["people needed"] = people_needed(costs, epsilon, seeds, tell)
    return {"people": len(costs), "nodes": round((1 + sqrt(1 + 8 * costs.shape[1])) / 2), "rows": rows}


def people_lines(data: dict) -> list[str]:
    """The table, and the sentence."""
    rows = data["rows"]
    lines = [
        "## Whole people: ABIDE of New York",
        "",
        f"{data['people']} people, {data['nodes']} regions (without those that never change for someone), a table "
        f'each, spread over {N_SITES} sites; `unit = "table"`, '
        f"degree {DEGREE}. The consensus with noise against the one without: average precision of its scores against "
        "the other's edges, correlation of weights.",
        "",
        "| ε | average precision | correlation | noise of a cost / its mean | people from which on it is .9 |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        needed = "more than tried" if row["people needed"] is None else f"about {rounded(row['people needed']):,}"
        lines.append(
            f"| {row['epsilon']:g} | {row['average precision']:.3f} | {row['correlation']:.3f} | "
            f"{row['noise of a cost over its mean']:.2f} | {needed} |"
        )
    told = ", ".join(
        f"{rounded(row['people needed']):,} at ε = {row['epsilon']:g}" for row in rows if row["people needed"]
    )
    return [
        *lines,
        "",
        f"Call it useful where the average precision is {USEFUL:g}. It takes so many people, within a fifth: {told}. "
        f"Beyond the {data['people']} that there are, people were drawn from these with replacement, so that this says "
        "when noise no longer matters, not how good the consensus is then. An ε of 8 or 16 promises little. Below, "
        "keep it to rows, or do without.",
        "",
    ]


def rounded(people: int) -> int:
    """Two digits: the search ends within a tenth, and three draws of noise are few."""
    return int(float(f"{people:.1e}"))
