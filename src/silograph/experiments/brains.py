"""ABIDE: one study in which every subject is a silo, learned without knowing who is autistic.

As learning does not see the groups, any relabelling of subjects is as likely as the true one if the groups do not
differ: a permutation test needs no second study.
"""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from silograph._util.types import Matrix, Vector
from silograph.analysis.comparing.columns import Differences, compare_columns
from silograph.analysis.comparing.design import Design
from silograph.analysis.comparing.relabelling import Relabellings
from silograph.data.moments import Moments
from silograph.datasets.abide import Abide, load_abide
from silograph.experiments.grids import learn_point
from silograph.experiments.lab import SECONDS, Arrays
from silograph.experiments.recipe import CONTENDERS, Recipe
from silograph.graph.pairs import Pairs
from silograph.protocol.silo import Silo

GROUPS = ("autism", "control")


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


def differences(values: Matrix, is_first: np.ndarray, relabellings: int) -> Differences:
    """What `silograph compare` says of columns (subjects, columns)."""
    nothing = np.empty((is_first.size, 0))
    design = Design(is_first=is_first, site=np.zeros(is_first.size, dtype=np.int32), covariates=nothing)
    return compare_columns(values, Relabellings(design=design, labels_only=True, asked=relabellings, seed=0))
