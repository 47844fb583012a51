"""How far a silo that had no part in a consensus is from it, against silos that had none in one of the others.

    d² = mean over splits of (w₁ − u)ᵀ(w₂ − u) / ‖u‖²

w₁ and w₂ are the silo's graphs, each learned alone from one half of its rows, and u is the whole consensus. Rows vary
independently in both halves, so that d² has no part that comes of few rows alone: the plain ‖w − u‖² calls three of
four silos with a fifth of the others' rows unusual. Graphs of few rows are off by more than that, on average, so that a
half has no more rows than half of the median silo. d² may be below zero. What has no rows has the plain one.

Silos that made a consensus lie nearer to it than one that did not. So each is compared with a consensus of all the
others, learned anew at the parameters of all. If the newcomer is drawn like the silos, its distance has any place among
theirs with the same probability, but for what one silo more or less does to the consensus and its parameters: so
(1 + #{as far or farther})/(n + 1) is at most 5 % in about 5 % of all cases (benchmarks/newcomers.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from silograph._util.types import Vector
from silograph.analysis.beside import Beside
from silograph.data.blocks import fit_in_memory
from silograph.engine.batch import is_large, map_in_order
from silograph.engine.study import StudyResult, learn_silos
from silograph.errors import ParameterError, SignalError
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.registry import spec_of
from silograph.methods.common.settings import AUTO, StudySettings
from silograph.methods.common.setup import FixedModel
from silograph.protocol.silo import Silo

MOST_LEFT_OUT = 200  # silos of more, drawn by a fixed seed: beyond, p gets finer and nothing else
LEAST_FOR_LEVEL, LEVEL = 19, 0.05  # 1/(19 + 1) is the level
LEFT_OUT_TOL = 1e-4  # relative gap of a consensus without one silo: far below what the silo changes
SPLITS, SEED = 4, 0
FEWEST_ROWS = 4

OnProgress = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A silo beside a consensus of the others."""

    silo: str
    n_samples: int | None
    distance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A newcomer's distance among those of silos that were left out."""

    n: int  # that it is compared with
    farther_than: int
    p: float | None  # None: too few to tell
    usual: bool | None


def has_consensus_to_join(settings: StudySettings, n_silos: int) -> bool:
    """Whether a newcomer can have a graph of its own beside what was learned."""
    own = spec_of(settings.method).own_graphs
    return n_silos > 1 and own and not settings.by_gradient and not settings.privacy.noisy


def check_newcomers(settings: StudySettings, n_silos: int) -> None:
    """Raise where no newcomer could be compared with the silos of such a study."""
    if settings.privacy.noisy:
        raise ParameterError("newcomers: silos are left out one by one by exact rows, so that epsilon would not hold.")
    if not has_consensus_to_join(settings, n_silos):
        raise ParameterError(
            f"newcomers: {n_silos} silos by {settings.method!r} leave no consensus beside which another silo has an "
            "exact graph of its own. Take several silos and an exact method."
        )


def distance_of(silo: Silo, beside: Beside, known: Vector | None, *, rows: int | None) -> float:
    """√d², with its sign, on the silo's pairs of which the consensus knows anything (None: on all).

    Two halves together have about so many `rows`, or all that there are. None: the plain distance of whole graphs.
    """
    u = silo.take(beside.consensus)
    counted = np.ones(u.size, dtype=np.bool_) if known is None else silo.take(known) > 0
    size = float(u[counted] @ u[counted])
    if size == 0:
        raise SignalError(f"{silo.name}: the consensus has no edge among this silo's nodes, so there is no distance.")

    def away(some: Silo) -> Vector:
        problem = some.problem(alpha=beside.alpha, beta=beside.beta, zeta=beside.zeta)
        return np.where(counted, solve_to_rounding(problem, None).w - u, 0.0)

    if rows is None:
        off = away(replace(silo))
        return float(np.sqrt(off @ off / size))
    products = [float(np.dot(*map(away, halves))) for halves in _splits(silo, rows)]
    square = float(np.mean(products)) / size
    return float(np.copysign(np.sqrt(abs(square)), square))


def leave_out(
    silos: Sequence[Silo],
    settings: StudySettings,
    study: StudyResult,
    *,
    workers: int | None = None,
    on_progress: OnProgress = lambda what, part: None,
) -> tuple[LeftOut, ...]:
    """The distance of each silo to a consensus of the others; of many silos, of some of them."""
    check_newcomers(settings, len(silos))
    chosen = [number for number in _drawn(len(silos)) if _others_have_all_nodes(silos, number)]
    rows, found = rows_to_halve(silos), list[LeftOut]()

    def far(number: int) -> LeftOut:
        silo, others = silos[number], [silo for k, silo in enumerate(silos) if k != number]
        beside = _beside_others(others, settings, study, len(silos))
        known = _known(others) if settings.may_lack_nodes else None
        return LeftOut(
            silo=silo.name, n_samples=silo.n_samples, distance=distance_of(replace(silo), beside, known, rows=rows)
        )

    for one in map_in_order(far, chosen, workers=workers, large=lambda _: is_large(silos)):
        found.append(one)
        on_progress(f"Leaving out each of {len(chosen)} silos", len(found) / len(chosen))
    return tuple(found)


def compare(distance: float, others: Sequence[float]) -> Comparison:
    """Where a distance lies among those of silos that were left out; from nineteen on, whether that is usual."""
    n, as_far = len(others), sum(other >= distance for other in others)
    p = (1 + as_far) / (n + 1) if n >= LEAST_FOR_LEVEL else None
    return Comparison(n=n, farther_than=n - as_far, p=p, usual=None if p is None else p > LEVEL)


def rows_to_halve(silos: Sequence[Silo]) -> int | None:
    """The median number of rows; None where one has none of which halves can be taken, or blocks cannot be kept."""
    n_samples = [silo.n_samples or 0 for silo in silos]
    can = fit_in_memory(silos[0].study_pairs) and min(n_samples) >= FEWEST_ROWS
    return int(np.median(n_samples)) if can else None


def _splits(silo: Silo, rows: int) -> list[tuple[Silo, Silo]]:
    """The silo with some of its blocks and with as many others, a few times."""
    assert silo.blocks is not None
    n_blocks, out = len(silo.blocks.counts), []
    most = max(1, round(n_blocks / 2 * rows / silo.blocks.counts.sum()))
    for number in range(SPLITS):
        halves = np.array_split(np.random.default_rng([SEED, number]).permutation(n_blocks), 2)
        costs = [silo.blocks.cost(np.sort(half[:most]).tolist()) for half in halves]
        out.append((replace(silo, cost=costs[0], blocks=None), replace(silo, cost=costs[1], blocks=None)))
    return out


def _drawn(n_silos: int) -> list[int]:
    if n_silos <= MOST_LEFT_OUT:
        return list(range(n_silos))
    return sorted(np.random.default_rng(SEED).choice(n_silos, MOST_LEFT_OUT, replace=False).tolist())


def _beside_others(others: Sequence[Silo], settings: StudySettings, study: StudyResult, n_silos: int) -> Beside:
    """A consensus of these, at the parameters of all; it starts at that of all, and need not be as exact."""
    tol = max(LEFT_OUT_TOL, settings.tol)
    rough = replace(settings, tol=tol, degree=None, alpha=study.alpha, beta=study.beta)
    if rough.coupling == AUTO:
        rough = replace(rough, coupling=None)
    if rough.holds_out:  # the consensus does not depend on the pull, and to choose one takes long
        rough = replace(rough, pull=1.0)
    lam = study.lam * len(others) / n_silos
    # What one sum calls for is found again by each silo, which believes no other parameters
    one_sum = spec_of(settings.method).one_sum
    fixed = None if one_sum else FixedModel(alpha=study.alpha, beta=study.beta, rho=study.rho, lam=lam)
    start = study.whole_consensus if study.rho > 0 else None
    learned = learn_silos([replace(silo) for silo in others], rough, start=start, fixed=fixed, workers=1)
    return Beside(consensus=learned.consensus, alpha=study.alpha, beta=study.beta, zeta=settings.zeta_used)


def _known(silos: Sequence[Silo]) -> Vector:
    """How many of them have each of the study's pairs."""
    return np.asarray(sum(silo.spread(np.ones(silo.pairs.size)) for silo in silos))


def _others_have_all_nodes(silos: Sequence[Silo], number: int) -> bool:
    """Without it, a node that it alone has would have no consensus; such a silo is not left out."""
    own = [np.arange(silo.pairs.n_nodes) if silo.nodes is None else silo.nodes for silo in silos]
    others = np.unique(np.concatenate([nodes for k, nodes in enumerate(own) if k != number]))
    return bool(np.isin(own[number], others).all())
