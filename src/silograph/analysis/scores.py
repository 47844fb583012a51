"""A rank for every pair in every silo's graph and in the consensus, from what all silos know together.

A silo's scores are those of its problem under its pull to the consensus (local/scores.py). The consensus' own are u
where it has an edge. Where it has none, they are, of the exact method and of silos alone,

    t = (Σ_i r_i h_i a_i − λ) / (q Σ_i r_i h_i),    a_i = y_i + y_j − c_i,    h_i = s_i / (q + s_i)

which with r = 1 is u before anything is cut off at zero: the t for which the graphs that it draws,
w_i = (a_i + s_i t)/(q + s_i), have Σ_i s_i (w_i − t) = λ, s_i being the strength by which the consensus draws silo i.
Where all silos are at the consensus it is −(λ + Σ_i ∇g_i)/(I q). (The reduced cost of the consensus itself is λ at
every pair that nobody has, and would not rank them.) Of a consensus from mean costs they are the reduced costs of that
problem.

r are what silos count in the rank, `_ranking_weights`. Where a graph is the strongest edges of an optimum, those of the
consensus are chosen by t. All other pairs are lowered below zero, and their order stays.
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

ODD_ONE_OUT = 3  # the power that makes a silo which is drawn less than most count less in the consensus' rank


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
    whole = study
    if study.optimum is not None:
        whole = replace(study, consensus=study.optimum.consensus, graphs=study.optimum.graphs)
    drawn, worth = _drawn_silos(silos, settings, whole)
    towards, own = lowered(worth, whole.consensus), {}
    for one in drawn:
        scores = pair_scores(one.problem, one.w, one.y, pull=one.pull, towards=one.silo.take(towards))
        own[one.silo.name] = lowered(_spread(one.silo, scores), study.graphs[one.silo.name])
    return StudyScores(consensus=lowered(worth, study.consensus), silos=own)


def consensus_rank(silos: Sequence[Silo], settings: StudySettings, study: StudyResult) -> Vector:
    """By what to choose the edges of the consensus; by their weights, where exact costs may not be looked at."""
    return _drawn_silos(silos, settings, study)[1] if has_scores(settings) else study.consensus


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Drawn:
    """A silo's problem and solution, and the strength by which the consensus draws its graph."""

    silo: Silo
    problem: LocalProblem
    w: Vector
    y: Vector
    pull: float


def _drawn_silos(silos: Sequence[Silo], settings: StudySettings, study: StudyResult) -> tuple[list["_Drawn"], Vector]:
    """The silos as they are drawn to the consensus of the whole optimum, and what pairs are worth to that."""
    drawn = [_drawn(silo, settings, study) for silo in silos]
    pooled = settings.solver_used.consensus == "pooled"
    return drawn, _of_pooled(silos, settings, study) if pooled else _of_joint(drawn, study.lam)


def _drawn(silo: Silo, settings: StudySettings, study: StudyResult) -> _Drawn:
    problem = silo.problem(alpha=study.alpha, beta=study.beta, zeta=settings.zeta_used)
    w, u = silo.take(study.graphs[silo.name]), silo.take(study.consensus)
    pull = _pull(silo, settings, study, distance(w, u))
    return _Drawn(silo=silo, problem=problem, w=w, y=problem.multipliers(w), pull=pull)


def _of_joint(drawn: Sequence[_Drawn], lam: float) -> Vector:
    """The consensus before anything is cut off at zero."""
    size = drawn[0].silo.study_pairs.size
    worth, parts, n_silos = np.zeros(size), np.zeros(size), np.zeros(size)
    for one, weight in zip(drawn, _ranking_weights(drawn), strict=True):
        at = slice(None) if one.silo.place is None else one.silo.place
        worth[at] -= weight * one.problem.reduced_cost(one.y)
        parts[at] += weight * one.problem.quadratic
        n_silos[at] += 1
    parts[n_silos == 0] = np.nan  # nobody has the pair
    return (worth - lam * n_silos / len(drawn)) / parts  # λ of a pair is that of the silos that have it


def _ranking_weights(drawn: Sequence[_Drawn]) -> Vector:
    """r_i h_i, with r_i = √N_i min(h_i / median h, 1)³, the roots having a mean of 1.

    In the model silos count alike, whatever their N. For a rank they need not: chance makes a_i vary by 1/N_i, and what
    is a silo's own does not shrink with N_i, so √N_i is between counting rows and counting silos. And a silo that has
    little in common with the others could outweigh them by an a_i far below zero, which w ≥ 0 prevents in u: the cube
    does so here. Average precision of the consensus, with its edges chosen by u and by t, on ten draws of 20 nodes: RBF
    .889 and .905, Erdős–Rényi .886 and .897, Barabási–Albert .923 and .934, one of five silos unrelated .855 and .864.
    """
    if all(one.pull == 0 for one in drawn):
        drawing = np.ones(len(drawn))
    else:
        drawing = np.array([1 / (1 + one.problem.quadratic / one.pull) if one.pull > 0 else 0.0 for one in drawn])
    known = [one.silo.n_samples for one in drawn]
    roots = np.ones(len(drawn)) if None in known else np.sqrt(np.array(known, dtype=np.float64))
    common = np.minimum(drawing / np.median(drawing), 1.0) ** ODD_ONE_OUT
    return np.asarray(drawing * common * roots / roots.mean())


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
    """The weights of edges, and the scores of all other pairs, lowered below zero if one of them is above."""
    highest = np.nanmax(scores, where=w == 0, initial=0.0)
    return np.where(w > 0, w, np.minimum(scores - highest, HIGHEST_ABSENT))


def _spread(silo: Silo, scores: Vector) -> Vector:
    if silo.place is None:
        return scores
    full = np.full(silo.study_pairs.size, np.nan)
    full[silo.place] = scores
    return full
