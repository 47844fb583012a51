"""A silo's half of the exact method: one step of the splitting, with the silo's own curvature as its metric.

u_i = argmin φ_i(u') + ½‖u' − (2u − s_i)‖²_{m_i}    (local/prox.py)    v_i = m_i (u_i − 2u + s_i)
s_i ← s_i + r (u_i − u)
"""

from dataclasses import dataclass, replace
from math import isfinite, isinf, sqrt

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import Vector
from silograph._util.vectors import distance, dot, long_scratch
from silograph.errors import ProtocolError
from silograph.local.problem import LocalProblem
from silograph.local.prox import prox_step
from silograph.methods.common.bounds import BOUND_TOL, dual_parts
from silograph.methods.common.setup import ModelParameters
from silograph.methods.common.sliding import lean_of, values_along
from silograph.protocol.messages import Parts, Task
from silograph.protocol.method import Answer, report_on
from silograph.protocol.silo import Silo

# Behind each, in brackets, the mean number of rounds to 1e-6 with other values, as in exact.py, where it is 8.8 as it
# stands; of the last three as measured when it was 10.1
OVER = 1.6  # r, the over-relaxation; convergence is proved below 2 [1.5 or 1.8: 8.9]
# The most by which an absent edge resists: times q, or times a present edge's curvature [a tenth or a third, ten or
# three times as much: 10.1 each]
STIFFEST, STIFFER = 1e3, 10.0
FUSED_ABSENT = 100.0  # how much stiffer a fused silo's absent edges count than its present ones [10: 10.2, 1000: 10.3]
BEND = 0.4  # how much a node's edges bend together, times √(neighbours) [0: 13.6, one fails; 0.13: 10.5, 1.2: 10.8]
FINER_BOUND = 0.1  # the relative gap of a bound's solve, than the forces


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplittingSilo:
    """What a silo keeps: its graph, its point and metric, and the points that are mixed."""

    w: Vector
    y: Vector  # multipliers
    strength: float  # of the pull; infinite where the silo is fused
    force: Vector  # v_i
    bound_y: Vector  # multipliers of the last bound
    u_own: Vector  # u_i
    metric: Vector  # m_i
    point: Vector  # s_i after the last round
    proposed: Vector | None = None  # the metric that the coordinator may adopt
    points: tuple[Vector, ...] = ()
    residuals: tuple[Vector, ...] = ()
    way: Vector | None = None  # the one last probed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SiloHalf:
    """What a silo does in each step."""

    model: ModelParameters
    problem: LocalProblem
    counted: bool  # whether fused silos are counted pair by pair

    def start(self, u: Vector, start: Vector | None) -> Answer[SplittingSilo]:
        """The graph nearest to optimal at the first u."""
        rho = self.model.rho
        result = prox_step(self.problem, u, metric=None, rho=rho, strength=4 * self.model.beta, start=start)
        metric = self._metric(result.w, result.y, result.strength, u)
        kept = SplittingSilo(
            w=result.w,
            y=result.y,
            strength=result.strength,
            force=result.force,
            bound_y=result.y,
            u_own=u,
            metric=metric,
            point=u + result.force / metric,
        )
        told = self._told(kept, metric * kept.point)
        return Answer(parts={"primal": self._value(result.w, u), "metric": metric, **told}, state=kept)

    def step(self, u: Vector, silo: Silo, kept: SplittingSilo, task: Task) -> Answer[SplittingSilo]:
        """One step of the splitting, and this silo's parts of both bounds."""
        closing = self.close(u, silo, kept) if task.number("last") else None
        primal = self._primal(u, kept) if closing is None else closing.parts["primal"]
        accuracy = task.number("accuracy")
        bound, bound_y = dual_parts(
            self.problem,
            _with_share(kept, task),
            rho=self.model.rho,
            start=kept.bound_y,
            tol=max(FINER_BOUND * accuracy, BOUND_TOL),
        )
        point, metric, points, residuals = _take_point(task, u, kept)
        anchor = 2 * u - point
        result = prox_step(
            self.problem, anchor, metric=metric, rho=self.model.rho, strength=kept.strength, start=kept.y, tol=accuracy
        )
        u_own, residual, after, target = (long_scratch(u.size) for _ in range(4))
        _advance(u, point, metric, result.force, u_own, residual, after, target)
        proposed, own = None, dict[str, Vector | float]()
        if task.header.step == "adapt":
            proposed = np.sqrt(metric * self._metric(result.w, result.y, result.strength, u))
            own["metric"] = proposed
        else:
            points, residuals, weighted = (*points, after), (*residuals, residual), metric * residual
            own["products"] = np.array([dot(weighted, other) for other in residuals])
        now = SplittingSilo(
            w=result.w,
            y=result.y,
            strength=result.strength,
            force=result.force,
            bound_y=bound_y,
            u_own=u_own,
            metric=metric,
            point=after,
            proposed=proposed,
            points=points,
            residuals=residuals,
        )
        parts: Parts = {**bound, "primal": primal, **self._told(now, target), **own}
        if closing is None:
            return Answer(parts=parts, state=now)
        return Answer(parts=parts, state=now, graph=closing.graph, reported=closing.reported)

    def look(self, u: Vector, kept: SplittingSilo) -> Answer[SplittingSilo]:
        """Where its graph lies from u (sliding.py)."""
        unit = float(np.sqrt(self.model.alpha / (4 * self.model.beta)))
        return Answer(parts=lean_of(kept.w, u, unit), state=kept)

    def probe(self, u: Vector, way: Vector, kept: SplittingSilo) -> Answer[SplittingSilo]:
        """The objective along a way (sliding.py)."""
        ahead = values_along(kept.w, u, way, own=self.problem.value(kept.w), rho=self.model.rho)
        return Answer(parts={"ahead": ahead}, state=replace(kept, way=way))

    def close(self, u: Vector, silo: Silo, kept: SplittingSilo) -> Answer[SplittingSilo]:
        """The graph that belongs to the consensus u."""
        result = prox_step(self.problem, u, metric=None, rho=self.model.rho, strength=kept.strength, start=kept.y)
        parts: Parts = {"primal": self._value(result.w, u), "fused": float(isinf(result.strength))}
        return Answer(parts=parts, state=kept, graph=result.w, reported=report_on(silo, result.w, u))

    def _told(self, kept: SplittingSilo, target: Vector) -> dict[str, Vector | float]:
        """What a silo tells of its step."""
        fused = float(isinf(kept.strength))
        at = {"fused_at": np.full(kept.w.size, fused)} if self.counted else {}
        return {"fused": fused, "target": target, "force": kept.force, **at}

    def _metric(self, w: Vector, y: Vector, strength: float, u: Vector) -> Vector:
        """The silo's curvature, pair by pair."""
        pairs = self.problem.pairs
        # The diagonal of ∇²g, its degree part enlarged, as the edges of a node bend together
        bend = BEND * sqrt(2 * np.count_nonzero(w) / pairs.n_nodes) / self.model.alpha
        metric = pairs.sums(bend * (y * y))
        if isfinite(strength):
            # Not softer than at the consensus itself: a point that flies off would soften the pull that should hold it
            strength = max(strength, self.model.rho / max(distance(w, u), 1e-300))
        _stiffen(metric, w, 4 * self.model.beta, strength)
        return metric

    def _value(self, w: Vector, u: Vector) -> float:
        return self.problem.value(w) + self.model.rho * distance(w, u)

    def _primal(self, u: Vector, kept: SplittingSilo) -> float:
        """The better of two graphs at u: the last one, and that moved along with u, which is u itself if fused."""
        moved = np.maximum(kept.w + (u - kept.u_own), 0.0)
        return min(self._value(kept.w, u), self._value(moved, u))


@kernel
def _advance(
    u: Vector, point: Vector, metric: Vector, force: Vector,
    u_own: Vector, residual: Vector, after: Vector, target: Vector,
) -> None:  # fmt: skip
    """Fill u_i, the residual, the point after the step, and where the silo would have the consensus."""
    for e in range(u.size):
        u_own[e] = 2.0 * u[e] - point[e] + force[e] / metric[e]
        residual[e] = OVER * (u_own[e] - u[e])
        after[e] = point[e] + residual[e]
        target[e] = metric[e] * after[e]


@kernel
def _stiffen(bend: Vector, w: Vector, quadratic: float, strength: float) -> None:
    """The metric, of what degrees bend: of a present edge its curvature and its pull in series, of others the pull."""
    for e in range(w.size):
        own = quadratic + bend[e]
        if strength == np.inf:
            bend[e] = own if w[e] > 0.0 else FUSED_ABSENT * own
        else:
            pull = min(strength, max(STIFFEST * quadratic, STIFFER * own))
            bend[e] = own * pull / (own + pull) if w[e] > 0.0 else pull


def _with_share(kept: SplittingSilo, task: Task) -> Vector:
    """The force with the silo's share of what forces miss: of the fused ones, or of all where none is."""
    share, fused = task.vector("share"), task.parts["fused"]
    if isinf(kept.strength):
        return kept.force + share
    if isinstance(fused, np.ndarray):
        return kept.force + np.where(fused == 0, share, 0.0)
    return kept.force if fused else kept.force + share


def _take_point(
    task: Task, u: Vector, kept: SplittingSilo
) -> tuple[Vector, Vector, tuple[Vector, ...], tuple[Vector, ...]]:
    """The point s_i of this round, its metric, and what is mixed next time with it.

    It is the last one, in the metric that is now adopted, or a mixture of earlier ones.
    """
    point = kept.point
    if slide := task.number("slide"):
        if kept.way is None:
            raise ProtocolError("expected a way to be probed before it is gone.")
        point = point + slide * kept.way
    if task.number("adopt"):
        if kept.proposed is None:
            raise ProtocolError("expected a metric to be proposed before it is adopted.")
        return u + kept.metric / kept.proposed * (point - u), kept.proposed, (), ()
    mixing = task.vector("mixing") if task.header.step == "mix" else np.zeros(0)
    first = len(kept.points) - mixing.size
    if first < 0:
        raise ProtocolError(f"expected at most {len(kept.points)} points to be mixed, got {mixing.size}.")
    if mixing.size == 0:
        return point, kept.metric, (), ()
    points = kept.points[first:]
    mixed = mixing[0] * points[0]
    for a, other in zip(mixing[1:], points[1:], strict=True):
        mixed += a * other
    return mixed, kept.metric, points, kept.residuals[first:]
