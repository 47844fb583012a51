"""A silo's graph under the pull of the consensus, exactly: the local step of the exact method.

    minimise over w ≥ 0 and u'    g(w) + ρ‖w − u'‖ + ½ Σ_e m_e (u'_e − x_e)²

For a given strength s of the pull between w and u', both pulls in series are one quadratic term per pair, of strength
k_e = 1/(1/m_e + 1/s), towards the anchor x: a local problem. Its force v = k(w − x) must satisfy ‖v‖ ≤ ρ, with s
infinite (w = u', the silo is *fused*) if ‖v‖ < ρ there, and ‖v‖ = ρ otherwise: one equation for one number s. An
infinite m leaves u' = x: the graph nearest to optimal at a given consensus x.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from silograph._types import Vector
from silograph.methods.method import dot
from silograph.problem import LocalProblem
from silograph.solvers import exact, newton
from silograph.solvers.solution import Solution

SOLVE_TOL = 1e-20  # relative gap of a local solve: weights to 1e-10, for one Newton step more than 1e-10 of the gap
ACCURACY = 1e-12  # of the force; with both, what a graph is does not depend on when a search stopped
ENOUGH = 1e-9  # where rounding forbids that
MAX_SOLVES = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pulled:
    """The graph under the pull, the force it bears, and where a similar pull may start."""

    w: Vector
    force: Vector  # v, ‖v‖ ≤ ρ; w minimises g(w) + vᵀw
    strength: float  # s; infinite where the silo is fused
    y: Vector  # multipliers
    n_solves: int


def solved(problem: LocalProblem, start: Vector | None) -> Solution:
    """The solution as exact as rounding allows."""
    solution = newton.solve(problem, start=start, tol=SOLVE_TOL, max_iter=60)
    if solution.relative_gap > ENOUGH:
        solution = exact.solve(problem, start=start, tol=ENOUGH)
    return solution


def anchored(problem: LocalProblem, anchor: Vector, strength: float | Vector) -> LocalProblem:
    """The problem with a pull ½ Σ k_e (w_e − a_e)² added."""
    return replace(problem, cost=problem.cost - strength * anchor, quadratic=problem.quadratic + strength)


def resting_force(problem: LocalProblem, w: Vector) -> Vector:
    """The smallest force v under which w is optimal: all of −∇g on its edges, its positive part elsewhere."""
    slope = problem.gradient(w)
    return np.where(w > 0, -slope, np.maximum(-slope, 0.0))


def pulled(
    problem: LocalProblem,
    anchor: Vector,
    *,
    metric: Vector | None,
    rho: float,
    strength: float,
    start: Vector | None,
) -> Pulled:
    """Solve the local step; `strength` and `start` are those of the last one. `metric` m is infinite if None.

    The equation ‖v(s)‖ = ρ is solved by a bracketed secant method, in a coordinate of 1/s in which the logarithm of the
    force is nearly straight.
    """
    unit = problem.quadratic if metric is None else float(np.median(metric))
    search = _Search(problem, anchor, metric, rho, float(np.mean(unit)), start)
    if metric is None:
        size = np.inf  # where a node of the anchor has no edge, no force holds a graph there
        if (problem.pairs.degrees(anchor) + problem.zeta).min() > 0:
            force = resting_force(problem, anchor)
            size = np.sqrt(dot(force, force))
        if size <= rho:
            y = problem.multipliers(anchor)
            return Pulled(w=anchor, force=_lowest(problem, anchor, force, rho), strength=np.inf, y=y, n_solves=0)
        search.note(0.0, float(np.log(size / rho)))
    return search.run(strength)


def _lowest(problem: LocalProblem, w: Vector, least: Vector, rho: float) -> Vector:
    """Of the forces that hold w, from the smallest one to −∇g, the last that is no larger than ρ.

    On absent edges it is the lowest, and so asks the least of Σ v ≤ λ: at the pooled optimum −∇g satisfies it.
    """
    way = -problem.gradient(w) - least
    square, along, room = dot(way, way), dot(way, least), rho**2 - dot(least, least)
    part = 1.0 if square + 2 * along <= room else room / (along + np.sqrt(along**2 + square * room))
    force: Vector = least + part * way
    return force


class _Search:
    """The secant method for the strength; its coordinate is log(1 + unit/s), zero where the silo is fused."""

    def __init__(
        self,
        problem: LocalProblem,
        anchor: Vector,
        metric: Vector | None,
        rho: float,
        unit: float,
        start: Vector | None,
    ) -> None:
        self._problem = problem
        self._anchor = anchor
        self._metric = metric
        self._rho = rho
        self._unit = unit
        self._y = start
        self._n_solves = 0
        self._strong: tuple[float, float] | None = None  # coordinate and excess where the force is over ρ
        self._weak: tuple[float, float] | None = None  # and where it is under

    def note(self, at: float, excess: float) -> None:
        """Keep a bracket's end."""
        if excess > 0:
            self._strong = (at, excess)
        else:
            self._weak = (at, excess)

    def run(self, strength: float) -> Pulled:
        at = 0.0 if np.isinf(strength) else float(np.log1p(self._unit / strength))
        if at == 0.0 and self._metric is None:  # then the fused end is known
            at = self._first_guess()
        before: tuple[float, float] | None = None
        for turn in range(MAX_SOLVES):
            result, excess = self._evaluate(at)
            if abs(excess) <= ACCURACY or (at == 0.0 and excess <= 0):
                return result
            self.note(at, excess)
            if self._strong and self._weak and self._weak[0] - self._strong[0] <= 1e-14 * self._weak[0]:
                return result
            at, before = self._next(at, excess, before, turn), (at, excess)
        return result

    def _evaluate(self, at: float) -> tuple[Pulled, float]:
        strength = np.inf if at == 0.0 else self._unit / np.expm1(at)
        if self._metric is None:
            k: float | Vector = strength
        elif at == 0.0:
            k = self._metric
        else:
            k = self._metric / (1 + self._metric / strength)
        solution = solved(anchored(self._problem, self._anchor, k), self._y)
        self._n_solves += 1
        self._y = solution.y
        force = k * (solution.w - self._anchor)
        size = float(np.sqrt(dot(force, force)))
        if size > self._rho:  # by less than the accuracy, where this is the answer
            force = force * (self._rho / size)
        result = Pulled(w=solution.w, force=force, strength=strength, y=solution.y, n_solves=self._n_solves)
        return result, float(np.log(size / self._rho)) if size > 0 else -np.inf

    def _first_guess(self) -> float:
        """Where to look when only the fused end is known: as far as its excess, were the force to fall with slope 1."""
        excess = self._strong[1] if self._strong else 0.0
        return min(max(excess, 1e-6), 1.0)

    def _next(self, at: float, excess: float, before: tuple[float, float] | None, turn: int) -> float:
        if self._strong is None:  # the force is too small so far: pull harder, or fuse
            guess = at + 1.5 * max(excess, -3.0)
            return guess if guess > 0 else 0.0
        if self._weak is None:
            slope = 1.0
            if before is not None and before[0] != at:
                slope = min(max(-(excess - before[1]) / (at - before[0]), 0.1), 2.0)
            return at + 1.2 * excess / slope
        left, right = self._strong, self._weak
        width = right[0] - left[0]
        known = np.isfinite(left[1]) and np.isfinite(right[1])
        between = left[1] / (left[1] - right[1]) if known else 0.5
        share = between
        if before is not None and before[0] != at and np.isfinite(excess - before[1]) and excess != before[1]:
            share = (at - excess * (at - before[0]) / (excess - before[1]) - left[0]) / width
        if turn % 5 == 4:
            share = 0.5
        elif not 0.0 < share < 1.0:
            share = between
        return left[0] + min(max(share, 1e-8), 1 - 1e-8) * width
