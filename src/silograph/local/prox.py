"""A silo's graph under the pull of the consensus, exactly: the local step of the exact method.

    minimise over w ≥ 0 and u'    g(w) + ρ‖w − u'‖ + ½ Σ_e m_e (u'_e − x_e)²

For a given strength s of the pull between w and u', both pulls in series are one quadratic term per pair, of strength
k_e = 1/(1/m_e + 1/s), towards the anchor x: a local problem. Its force v = k(w − x) must satisfy ‖v‖ ≤ ρ, with s
infinite (w = u', the silo is *fused*) if ‖v‖ < ρ there, and ‖v‖ = ρ otherwise: one equation for one number s. An
infinite m leaves u' = x: the graph nearest to optimal at a given consensus x.
"""

from dataclasses import dataclass, replace
from math import expm1, isinf, log1p

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import dot, long_scratch
from silograph.local.problem import LocalProblem
from silograph.local.pull_strength import (
    FORCE_TOL,
    MAX_NEWTON_ITER,
    MAX_PROX_SOLVES,
    ROUGH_TOL,
    SOLVE_TOL,
    TOO_HARD,
    WITHIN_RHO,
    find_pull_strength,
    harmonic_mean,
    next_coordinate,
)
from silograph.local.solvers import exact, newton
from silograph.local.solvers.solution import Solution


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProxResult:
    """The graph under the pull, the force it bears, and where a similar pull may start."""

    w: Vector
    force: Vector  # v, ‖v‖ ≤ ρ; w minimises g(w) + vᵀw
    strength: float  # s; infinite where the silo is fused
    y: Vector  # multipliers
    n_solves: int


def solve_exactly(problem: LocalProblem, start: Vector | None) -> Solution:
    """The solution as exact as rounding allows."""
    solution = newton.solve(problem, start=start, tol=SOLVE_TOL, max_iter=MAX_NEWTON_ITER)
    if solution.relative_gap > ROUGH_TOL:
        solution = exact.solve(problem, start=start, tol=ROUGH_TOL)
    return solution


def add_pull(problem: LocalProblem, anchor: Vector, strength: float | Vector) -> LocalProblem:
    """The problem with a pull ½ Σ k_e (w_e − a_e)² added."""
    return replace(problem, cost=problem.cost - strength * anchor, quadratic=problem.quadratic + strength)


def resting_force(problem: LocalProblem, w: Vector, degrees: Vector | None = None) -> Vector:
    """The smallest force v under which w is optimal: all of −∇g on its edges, its positive part elsewhere.

    `degrees` are the nodes', where w is part of a larger graph.
    """
    slope = problem.gradient(w, degrees)
    return np.where(w > 0, -slope, np.maximum(-slope, 0.0))


def prox_step(
    problem: LocalProblem,
    anchor: Vector,
    *,
    metric: Vector | None,
    rho: float,
    strength: float,
    start: Vector | None,
    tol: float = FORCE_TOL,
) -> ProxResult:
    """Solve the local step; `strength` and `start` are those of the last one. `metric` m is infinite if None.

    The equation ‖v(s)‖ = ρ is solved by Newton's method (pull_strength.py), to a relative error of `tol`.
    """
    fused_excess = np.nan
    if metric is None:
        size = np.inf  # where a node of the anchor has no edge, no force holds a graph there
        if (problem.pairs.degrees(anchor) + problem.zeta).min() > 0:
            force = resting_force(problem, anchor)
            size = np.sqrt(dot(force, force))
        if size <= rho:
            y = problem.multipliers(anchor)
            return ProxResult(
                w=anchor, force=_lowest_force(problem, anchor, force, rho), strength=np.inf, y=y, n_solves=0
            )
        fused_excess = float(np.log(size / rho))
    unit = float(np.mean(problem.quadratic)) if metric is None else harmonic_mean(metric)
    at = 0.0 if isinf(strength) else log1p(unit / strength)
    if at == 0.0 and metric is None:  # then the fused end is known: look as far from it as its excess is large
        at = min(max(fused_excess, 1e-6), 1.0)
    stiff = np.full(anchor.size, np.inf) if metric is None else metric
    first = newton.default_start(problem) if start is None else start
    assert not isinstance(problem.quadratic, np.ndarray)
    w, force = long_scratch(anchor.size), long_scratch(anchor.size)
    status, at, y, n_solves = find_pull_strength(
        *problem.pairs.index,
        problem.cost,
        problem.quadratic,
        problem.alpha,
        problem.zeta,
        anchor,
        stiff,
        rho,
        unit,
        at,
        metric is None,
        first,
        max(tol, FORCE_TOL),
        w,
        force,
        tuple(long_scratch(anchor.size) for _ in range(4)),
    )
    if status == TOO_HARD:
        return _search_slowly(problem, anchor, stiff, rho, unit, at, first, fused=metric is None)
    return ProxResult(w=w, force=force, strength=_strength(at, unit), y=y, n_solves=n_solves)


def _strength(at: float, unit: float) -> float:
    return np.inf if at == 0.0 else unit / expm1(at)


def _search_slowly(
    problem: LocalProblem, anchor: Vector, metric: Vector, rho: float, unit: float, at: float, y: Vector, *, fused: bool
) -> ProxResult:
    """The same search with the solver for problems that Newton's method alone cannot do; slopes are secants."""
    strong_at, weak_at = 0.0 if fused else np.nan, np.nan
    slope, last = -1.0, (np.nan, np.nan)
    for turn in range(MAX_PROX_SOLVES):
        k = 1 / (1 / metric + np.expm1(at) / unit)
        solution = solve_exactly(add_pull(problem, anchor, k), y)
        y = solution.y
        force = k * (solution.w - anchor)
        size = float(np.sqrt(dot(force, force)))
        excess = float(np.log(size / rho)) if size > 0 else -np.inf
        force = force * min(1.0, WITHIN_RHO * rho / size) if size > 0 else force
        strong_at, weak_at = (at, weak_at) if excess > 0 else (strong_at, at)
        enough = abs(excess) <= ROUGH_TOL or (at == 0.0 and excess <= 0)
        if enough or weak_at - strong_at <= 1e-14 * weak_at:
            break
        secant = (excess - last[1]) / (at - last[0]) if at != last[0] else np.nan
        slope = secant if np.isfinite(secant) else slope
        at, last = next_coordinate(at, excess, slope, strong_at, weak_at, turn), (at, excess)
    return ProxResult(w=solution.w, force=force, strength=_strength(at, unit), y=solution.y, n_solves=turn + 1)


def _lowest_force(problem: LocalProblem, w: Vector, least: Vector, rho: float) -> Vector:
    """Of the forces that hold w, from the smallest one to −∇g, the last that is no larger than ρ.

    On absent edges it is the lowest, and so asks the least of Σ v ≤ λ: at the pooled optimum −∇g satisfies it.
    """
    way = -problem.gradient(w) - least
    square, along, spare = dot(way, way), dot(way, least), (WITHIN_RHO * rho) ** 2 - dot(least, least)
    if spare <= 0:
        inside: Vector = least * min(1.0, WITHIN_RHO * rho / np.sqrt(dot(least, least)))
        return inside
    part = 1.0 if square + 2 * along <= spare else spare / (along + np.sqrt(along**2 + square * spare))
    force: Vector = least + part * way
    return force
