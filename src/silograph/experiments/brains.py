"""ABIDE: one study in which every subject is a silo, learned without knowing who is autistic.

As learning does not see the groups, any relabelling of subjects is as likely as the true one if the groups do not
differ: a permutation test needs no second study.
"""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from silograph._util.types import Matrix, Vector
from silograph.data.moments import Moments
from silograph.datasets.abide import Abide, load_abide
from silograph.experiments.grids import learn_point
from silograph.experiments.lab import SECONDS, Arrays
from silograph.experiments.recipe import CONTENDERS, Recipe
from silograph.graph.pairs import Pairs
from silograph.protocol.silo import Silo

GROUPS = ("autism", "control")
BATCH, EDGE_BATCH = 5000, 200  # relabellings at once, of one number and of all edges


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainStudy:
    """Which study."""

    method: str  # key of CONTENDERS
    nu: float
    lam: float
    recipe: Recipe
    path: Path
    data: str  # fingerprint of what is there
    subjects: int | None = None  # of each group; None: all
    seed: int = 0  # which subjects, where not all


def learn_brains(study: BrainStudy) -> Arrays:
    """Every subject's weights (subjects, pairs), the consensus, γ and the gap."""
    abide = subjects_of(study)
    pairs = Pairs.all(len(abide.regions))
    silos = []
    for subject, series in abide.series.items():
        moments = Moments.of(series, pairs)
        cost = moments.costs(standardize=True, names=abide.regions, source=subject)
        silos.append(Silo(name=subject, pairs=pairs, cost=cost, n_samples=moments.n_samples))
    began = perf_counter()
    learned_study = learn_point(silos, CONTENDERS[study.method], study.recipe, {"nu": study.nu, "lam": study.lam})
    return {
        "weights": np.stack(list(learned_study.graphs.values())),
        "consensus": learned_study.consensus,
        "gamma": np.array(list(learned_study.contributions.values())),
        "gap": np.array(learned_study.gap),
        "is_autistic": np.array([abide.groups[subject] == "autism" for subject in abide.series]),
        study.method + SECONDS: np.array(perf_counter() - began),
    }


def subjects_of(study: BrainStudy) -> Abide:
    """The subjects of the study: all, or so many of each group at random."""
    abide = load_abide(study.path)
    if study.subjects is None:
        return abide
    rng, kept = np.random.default_rng([37, study.seed]), set()
    for group in GROUPS:
        members = [subject for subject, of in abide.groups.items() if of == group]
        kept.update(rng.permutation(members)[: study.subjects].tolist())
    return Abide(
        series={subject: abide.series[subject] for subject in abide.series if subject in kept},
        groups={subject: abide.groups[subject] for subject in abide.groups if subject in kept},
        regions=abide.regions,
        dropped=abide.dropped,
        skipped=abide.skipped,
    )


def edges_and_weights(weights: Matrix, threshold: float) -> tuple[Vector, Vector]:
    """Each subject's number of edges, and their mean weight."""
    found = weights > threshold
    counts = found.sum(axis=1).astype(np.float64)
    sums = np.where(found, weights, 0.0).sum(axis=1)
    return counts, sums / np.maximum(counts, 1)


def permutation_p(values: Vector, is_first: np.ndarray, n_permutations: int, seed: int = 0) -> float:
    """Two-sided p-value of the difference between two groups' means, under random relabelling of their members.

    The true labelling counts as one of the permutations, so that p is never 0 and the test keeps its level.
    """
    rng = np.random.default_rng(seed)
    n, n_first = values.size, int(is_first.sum())
    centred = values - values.mean()
    # The difference of means is a fixed multiple of the first group's sum of centred values
    seen = abs(float(centred[is_first].sum())) * (1 - 1e-9)  # sums in another order round differently
    extreme, left = 0, n_permutations
    while left:
        size = min(left, BATCH)
        order = rng.permuted(np.broadcast_to(np.arange(n), (size, n)), axis=1)
        extreme += int((np.abs(centred[order[:, :n_first]].sum(axis=1)) >= seen).sum())
        left -= size
    return (extreme + 1) / (n_permutations + 1)


def edges_that_differ(weights: Matrix, is_first: np.ndarray, n_permutations: int, seed: int = 0) -> tuple[int, float]:
    """How many edges differ between the groups, and the p-value of the one that differs most.

    An edge's difference of group means is measured in units of its standard error; the largest one under random
    relabelling is what each is compared with, so that the chance of any false one is at most 5 %.
    """
    rng = np.random.default_rng(seed)
    spread = weights.std(axis=0)
    scaled = (weights - weights.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    if scaled.size == 0:
        return 0, 1.0
    contrast = np.where(is_first, 1 / is_first.sum(), -1 / (~is_first).sum())
    seen = np.abs(contrast @ scaled) * (1 - 1e-9)  # sums in another order round differently
    largest = np.empty(n_permutations)
    for start in range(0, n_permutations, EDGE_BATCH):
        size = min(EDGE_BATCH, n_permutations - start)
        relabelled = rng.permuted(np.broadcast_to(contrast, (size, contrast.size)), axis=1)
        largest[start : start + size] = np.abs(relabelled @ scaled).max(axis=1)
    as_large = n_permutations - np.searchsorted(np.sort(largest), seen, side="left")
    p = (as_large + 1) / (n_permutations + 1)  # the true labelling is one of the permutations
    return int(np.sum(p <= 0.05)), float(p.min())
