"""A rank for every pair in every silo's graph and in the consensus, from what all silos know together.

A silo's scores are those of its problem under its pull to the consensus (local/scores.py). The consensus' own are u
where it has an edge. Where it has none, they are, of the exact method and of silos alone,

    −(λ + Σ_i ∇g_i(w_i)) / (I q) ≤ 0

as optimality has Σ v_i ≤ λ of forces v_i ≥ −∇g_i(w_i): the reduced cost λ − Σ v_i is λ itself at every pair that nobody
has, and would not rank them. Of a consensus from mean costs they are the reduced costs of that problem.

Where a graph is the strongest edges of an optimum, scores of all other pairs are lower by the weight that it cuts at:
so they are negative without an edge, and their order stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import distance
from silograph.engine.study import StudyResult
from silograph.local.problem import LocalProblem
from silograph.local.scores import HIGHEST_ABSENT, pair_scores
from silograph.methods.common.pooling import CostSum
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudyScores:
    """One number per pair of the study: weights of edges, negative where there is none, NaN where nothing is known."""

    consensus: Vector
    silos: Mapping[str, Vector]


def has_scores(settings: StudySettings) -> bool:
    """Whether pairs without an edge can be ranked: of optima, and where ε does not forbid to look at exact costs."""
    return not settings.by_gradient and not settings.privacy.noisy


def scores_of(silos: Sequence[Silo], settings: StudySettings, study: StudyResult) -> StudyScores:
    """The scores of a study whose silos are all in this process."""
    if study.optimum is not None:
        whole = replace(study, consensus=study.optimum.consensus, graphs=study.optimum.graphs, optimum=None)
        found = scores_of(silos, settings, whole)
        return StudyScores(
            consensus=lowered(found.consensus, study.consensus),
            silos={name: lowered(own, study.graphs[name]) for name, own in found.silos.items()},
        )
    problems = {silo.name: silo.problem(alpha=study.alpha, beta=study.beta, zeta=settings.zeta_used) for silo in silos}
    if settings.solver_used.consensus == "pooled":
        consensus = _of_pooled(silos, settings, study)
    else:
        consensus = _of_joint(silos, problems, study)
    own = {}
    for silo in silos:
        w, u, problem = silo.take(study.graphs[silo.name]), silo.take(study.consensus), problems[silo.name]
        scores = pair_scores(
            problem,
            w,
            problem.multipliers(w),
            pull=_pull(silo, settings, study, distance(w, u)),
            towards=silo.take(consensus),
        )
        own[silo.name] = _spread(silo, scores)
    return StudyScores(consensus=consensus, silos=own)


def _of_joint(silos: Sequence[Silo], problems: Mapping[str, LocalProblem], study: StudyResult) -> Vector:
    size = silos[0].study_pairs.size
    slopes, count = np.zeros(size), np.zeros(size)
    for silo in silos:
        slope = problems[silo.name].gradient(silo.take(study.graphs[silo.name]))
        at = slice(None) if silo.place is None else silo.place
        slopes[at] += slope
        count[at] += 1.0
    count[count == 0] = np.nan  # nobody has the pair
    absent = -(study.lam / len(silos) + slopes / count) / (4 * study.beta)
    return np.where(study.consensus > 0, study.consensus, np.minimum(absent, HIGHEST_ABSENT))


def _of_pooled(silos: Sequence[Silo], settings: StudySettings, study: StudyResult) -> Vector:
    size = silos[0].study_pairs.size
    cost, weight = np.zeros(size), np.zeros(size)
    for silo in silos:
        gamma = study.evidence.get(silo.name, {}).get("weight", 1.0)  # of one-shot with several sums
        at = slice(None) if silo.place is None else silo.place
        cost[at] += gamma * silo.cost
        weight[at] += gamma
    sums = CostSum.of(silos[0].study_pairs, cost, weight)
    problem = sums.problem(alpha=study.alpha, beta=study.beta, zeta=settings.zeta_used, shift=study.lam / len(silos))
    u = study.consensus if sums.place is None else study.consensus[sums.place]
    scores = pair_scores(problem, u, problem.multipliers(u))
    if sums.place is None:
        return scores
    full = np.full(size, np.nan)
    full[sums.place] = scores
    return full


def _pull(silo: Silo, settings: StudySettings, study: StudyResult, far: float) -> float:
    """The strength by which the consensus draws the silo's graph."""
    if far == 0:
        return np.inf
    if "pull" in settings.used:
        chosen = study.evidence.get(silo.name, {}).get("pull", settings.pull_used)
        return chosen * 4 * study.beta
    if settings.is_coupled and settings.weights == "equal":
        return study.rho / len(study.graphs)
    return study.rho / far


def lowered(scores: Vector, w: Vector) -> Vector:
    """Scores of which those above zero that are no edge of w, and all below, are lowered below zero."""
    left_out = scores[(scores > 0) & (w == 0)]
    if left_out.size == 0:
        return scores
    return np.where(w > 0, w, np.minimum(scores - left_out.max(), HIGHEST_ABSENT))


def _spread(silo: Silo, scores: Vector) -> Vector:
    if silo.place is None:
        return scores
    full = np.full(silo.study_pairs.size, np.nan)
    full[silo.place] = scores
    return full
