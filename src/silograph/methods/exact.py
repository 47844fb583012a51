"""The exact optimum of the paper's model, in every regime, with a certificate from sums alone.

    minimise   Σ_i [g_i(w_i) + ρ‖w_i − u‖] + λ 1ᵀu      over w_i, u ≥ 0

With φ_i(u) = min over w of g_i(w) + ρ‖w − u‖ this is min Σ φ_i(u) + λ1ᵀu. Douglas-Rachford splitting solves it with one
sum per round. Silo i keeps a point s_i and a metric m_i (one number per pair):

    coordinator   u = (Σ m_i s_i − λ)₊ / Σ m_i
    silo          u_i = argmin φ_i(u') + ½‖u' − (2u − s_i)‖²_{m_i}     (pull.py)        force v_i = m_i (u_i − 2u + s_i)
                  s_i ← s_i + r (u_i − u)

Three things make it take few rounds. *The metric is each silo's own curvature, pair by pair*: an edge that the silo
does not have resists with the strength of its pull, one that it has with its own curvature; with the exact Hessian one
round would do. It is learned in the first rounds, then kept. *Anderson's acceleration* (mixing.py) takes over from
there; its Gram matrix is a sum too. *The start* is the pooled optimum, at which the fully fused problem is solved
already.

What the coordinator sees: Σ m_i, Σ m_i s_i, Σ v_i, and sums of numbers. Who is fused, γ_i and all graphs stay in the
silos.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Matrix, Vector
from silograph._util.vectors import distance, dot
from silograph.local.problem import LocalProblem
from silograph.local.prox import ProxResult, prox_step
from silograph.methods.common.bounds import DUAL_FIELDS, dual_bound, dual_parts, missing_share, relative_gap
from silograph.methods.common.mixing import coefficients
from silograph.protocol.messages import (
    LIST,
    NUMBER,
    NUMBER_NONNEGATIVE,
    PAIRS,
    PAIRS_NONNEGATIVE,
    Field,
    Step,
    Task,
    Total,
)
from silograph.protocol.method import Answer, Cohort, Decision, of_graph
from silograph.protocol.silo import Memory, Silo

OVER = 1.8  # r, the over-relaxation; convergence is proved below 2
ADAPTING = 8  # rounds in which the metric is learned
HISTORY = 20  # points that are mixed
HISTORY_NUMBERS = 5_000_000  # numbers that a silo keeps for mixing, whatever the size of the graph
STIFFEST, STIFFER = 1e3, 10.0  # times q, or times a present edge's curvature: the most by which an absent edge resists
AGAIN = 15  # rounds after which the metric is learned anew, unless the gap has fallen tenfold
FUSED_ABSENT = 100.0  # how much stiffer a fused silo's absent edges count than its present ones
NEAR = 3.0  # times the tolerance: a round expected to end there is treated as the last
BEND = 0.4  # how much the edges of a node bend together, times √(neighbours)
RESTART = 2.0  # growth of the residual at which mixing starts anew

PRODUCTS = Field("list", one_longer_than="mixing")
DOWN = {
    "u": PAIRS_NONNEGATIVE,
    "share": PAIRS,  # of what the forces miss
    "fused": NUMBER_NONNEGATIVE,  # how many silos are, who then take the shares
    "adopt": NUMBER,  # whether to adopt the metric last proposed
    "last": NUMBER,  # whether this round may be the last
}
STEPS = MappingProxyType(
    {
        "start": Step(
            down={"u": PAIRS_NONNEGATIVE},
            up={
                "primal": NUMBER,
                "fused": NUMBER_NONNEGATIVE,
                "metric": PAIRS_NONNEGATIVE,
                "target": PAIRS,
                "force": PAIRS,
            },
        ),
        "adapt": Step(
            down=DOWN,
            up=DUAL_FIELDS
            | {
                "primal": NUMBER,
                "fused": NUMBER_NONNEGATIVE,
                "metric": PAIRS_NONNEGATIVE,
                "target": PAIRS,
                "force": PAIRS,
            },
        ),
        "mix": Step(
            down=DOWN | {"mixing": LIST},
            up=DUAL_FIELDS
            | {"primal": NUMBER, "fused": NUMBER_NONNEGATIVE, "target": PAIRS, "force": PAIRS, "products": PRODUCTS},
        ),
        "close": Step(down={"u": PAIRS_NONNEGATIVE}, up={"primal": NUMBER, "fused": NUMBER_NONNEGATIVE}),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSplitting:
    """The exact method. `pooled` is the start: the optimum of all silos' data together."""

    name: ClassVar[str] = "exact"
    steps: ClassVar[Mapping[str, Step]] = STEPS

    alpha: float
    beta: float
    rho: float  # > 0
    lam: float  # ≥ 0
    pooled: Vector
    zeta: float = 0.0
    tol: float = 1e-6
    max_rounds: int = 200

    # --- the silo's half ----------------------------------------------------------------------------------------------

    def local(self, silo: Silo, task: Task) -> Answer:
        problem = silo.problem(alpha=self.alpha, beta=self.beta, zeta=self.zeta)
        u, memory = task.vector("u"), silo.memory
        if task.header.step == "start":
            return self._local_start(problem, u, memory)
        if task.header.step == "close":
            return self._finished(problem, u, silo)
        last = bool(task.number("last"))
        closing = self._finished(problem, u, silo) if last else None
        primal = self._primal(problem, u, memory) if closing is None else float(closing.parts["primal"])
        force = memory["force"]
        if np.isinf(memory["strength"]) or not task.number("fused"):
            force = force + task.vector("share")
        bound, memory["bound_y"] = dual_parts(problem, force, rho=self.rho, start=memory["bound_y"])
        self._take_point(task, u, memory)
        result, residual = self._step(problem, u, memory)
        parts = bound | {
            "primal": primal,
            "fused": float(np.isinf(result.strength)),
            "target": memory["metric"] * memory["next"],
            "force": result.force,
        }
        if task.header.step == "adapt":
            memory["metric_next"] = np.sqrt(memory["metric"] * self._metric(problem, result, u))
            parts["metric"] = memory["metric_next"]
        else:
            memory["points"] = [*memory["points"], memory["next"]]
            memory["residuals"] = [*memory["residuals"], residual]
            weighted = memory["metric"] * residual
            parts["products"] = np.array([dot(weighted, other) for other in memory["residuals"]])
        return Answer(parts=parts, reported=closing.reported if closing else {})

    def _local_start(self, problem: LocalProblem, u: Vector, memory: Memory) -> Answer:
        first = memory.get("y")
        result = prox_step(problem, u, metric=None, rho=self.rho, strength=4 * self.beta, start=first)
        metric = self._metric(problem, result, u)
        memory.update(w=result.w, y=result.y, strength=result.strength, force=result.force, metric=metric)
        memory.update(next=u + result.force / metric, u_own=u, points=[], residuals=[], bound_y=result.y)
        parts = {
            "primal": problem.value(result.w) + self.rho * distance(result.w, u),
            "fused": float(np.isinf(result.strength)),
            "metric": metric,
            "target": metric * memory["next"],
            "force": result.force,
        }
        return Answer(parts=parts)

    def _take_point(self, task: Task, u: Vector, memory: Memory) -> None:
        """The point s_i of this round: the last one in the metric now adopted, or a mixture of earlier ones."""
        if task.number("adopt"):
            ratio = memory["metric"] / memory["metric_next"]
            memory.update(point=u + ratio * (memory["next"] - u), metric=memory["metric_next"], points=[], residuals=[])
            return
        mixing = task.vector("mixing") if task.header.step == "mix" else np.zeros(0)
        kept = mixing.size
        points = memory["points"][len(memory["points"]) - kept :]
        residuals = memory["residuals"][len(memory["residuals"]) - kept :]
        point = sum((a * other for a, other in zip(mixing, points, strict=True)), np.zeros_like(u))
        memory.update(point=point if kept else memory["next"], points=points, residuals=residuals)

    def _step(self, problem: LocalProblem, u: Vector, memory: Memory) -> tuple[ProxResult, Vector]:
        anchor = 2 * u - memory["point"]
        result = prox_step(
            problem,
            anchor,
            metric=memory["metric"],
            rho=self.rho,
            strength=memory["strength"],
            start=memory["y"],
        )
        u_own = anchor + result.force / memory["metric"]
        residual = OVER * (u_own - u)
        memory.update(w=result.w, y=result.y, strength=result.strength, force=result.force, u_own=u_own)
        memory["next"] = memory["point"] + residual
        return result, residual

    def _metric(self, problem: LocalProblem, result: ProxResult, u: Vector) -> Vector:
        """The silo's curvature, pair by pair."""
        q = 4 * self.beta
        # The diagonal of ∇²g, its degree part enlarged, as the edges of a node bend together
        neighbours = 2 * np.count_nonzero(result.w) / problem.n_nodes
        own: Vector = q + BEND * np.sqrt(neighbours) * problem.pairs.sums(result.y**2) / self.alpha
        present, absent = own, FUSED_ABSENT * own
        if np.isfinite(result.strength):
            # Not softer than at the consensus itself: a point that flies off would soften the pull that should hold it
            strength = max(result.strength, self.rho / max(distance(result.w, u), 1e-300))
            pull = np.minimum(strength, np.maximum(STIFFEST * q, STIFFER * own))
            present, absent = own * pull / (own + pull), pull
        metric: Vector = np.where(result.w > 0, present, absent)
        return metric

    def _primal(self, problem: LocalProblem, u: Vector, memory: Memory) -> float:
        """The better of two graphs at u: the last one, and that moved along with u, which is u itself if fused."""
        moved = np.maximum(memory["w"] + u - memory["u_own"], 0.0)
        return min(problem.value(w) + self.rho * distance(w, u) for w in (memory["w"], moved))

    def _finished(self, problem: LocalProblem, u: Vector, silo: Silo) -> Answer:
        """The graph that belongs to the consensus u."""
        memory = silo.memory
        result = prox_step(
            problem,
            u,
            metric=None,
            rho=self.rho,
            strength=memory["strength"],
            start=memory["y"],
        )
        parts = {
            "primal": problem.value(result.w) + self.rho * distance(result.w, u),
            "fused": float(np.isinf(result.strength)),
        }
        return Answer(parts=parts, reported=of_graph(silo, result.w, u))

    # --- the coordinator's half ---------------------------------------------------------------------------------------

    def begin(self, cohort: Cohort) -> Decision:
        state = {
            "round": 0,
            "u": self.pooled,
            "dual": -np.inf,
            "gram": np.zeros((0, 0)),
            "targets": [],
            "adapting": ADAPTING,  # the last round of the metric's learning
            "check": ADAPTING + AGAIN,  # when to look whether that was enough
            "gap_then": np.inf,
            "best_primal": np.inf,
            "best_u": self.pooled,
        }
        return Decision(state=state, step="start", parts={"u": self.pooled})

    def merge(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        state = state | {"round": state["round"] + 1}
        step = total.header.step
        if step in ("adapt", "mix"):
            state["dual"] = max(state["dual"], dual_bound(total))
        primal = total.number("primal") + self.lam * float(state["u"].sum())
        gap = self._gap(cohort, primal, state["dual"])
        before = state.get("gap", np.inf)
        state.update(objective=primal, gap=gap, converged=bool(gap <= self.tol), consensus=state["u"])
        record = {"objective": primal, "bound": state["dual"], "gap": gap, "fused": total.number("fused")}
        if primal < state["best_primal"]:
            state.update(best_primal=primal, best_u=state["u"])
        if step == "close" or (state["converged"] and state["last"]):
            return Decision(state=state, step=None, record=record)
        best_will_do = self._gap(cohort, state["best_primal"], state["dual"]) <= self.tol
        if best_will_do or state["round"] >= self.max_rounds - 1:
            state["u"] = state["best_u"]
            return Decision(state=state, step="close", parts={"u": state["u"]}, record=record)
        # The gap falls by about as much as it just did: if that would do, this is to be the last round
        state["last"] = gap * min(gap / before, 1.0) <= NEAR * self.tol if np.isfinite(before) else False
        return self._next(cohort, state, total, record)

    def _gap(self, cohort: Cohort, primal: float, dual: float) -> float:
        return relative_gap(primal, dual, alpha=self.alpha, n_nodes=cohort.pairs.n_nodes, n_silos=cohort.n_silos)

    def _next(self, cohort: Cohort, state: Memory, total: Total, record: dict[str, float]) -> Decision:
        target, step = total.vector("target"), total.header.step
        adopt = step == "adapt"
        if step == "start":
            state["metric"] = total.vector("metric")
        self._look_back(state)
        adapting = state["round"] <= state["adapting"]
        mixing = np.zeros(0)
        if step == "mix" and not adapting:
            target, mixing = self._mixed(state, target, total.vector("products"))
        u = np.maximum(target - self.lam, 0.0) / state["metric"]
        if adopt:
            state["metric"] = total.vector("metric")
        state["u"] = u
        fused = total.number("fused")
        share = missing_share(total.vector("force"), u, lam=self.lam, n_sharing=fused or cohort.n_silos)
        parts: dict[str, Vector | float] = {
            "u": u,
            "share": share,
            "fused": fused,
            "adopt": float(adopt),
            "last": float(state["last"]),
        }
        if adapting:
            return Decision(state=state, step="adapt", parts=parts, record=record)
        return Decision(state=state, step="mix", parts=parts | {"mixing": mixing}, record=record)

    def _look_back(self, state: Memory) -> None:
        """Every so often: has the gap fallen? If it hardly has, the metric does not suit, and is learned anew."""
        if state["round"] != state["check"]:
            return
        stalled = state["gap"] > 0.1 * state["gap_then"]
        state.update(gap_then=state["gap"], check=state["round"] + AGAIN)
        if stalled:
            forgotten = {"gram": np.zeros((0, 0)), "targets": [], "residual": np.inf}
            state.update(adapting=state["round"] + ADAPTING // 2, **forgotten)

    def _mixed(self, state: Memory, target: Vector, products: Vector) -> tuple[Vector, Vector]:
        """Anderson's mixture of targets and its coefficients."""
        gram = _extended(state["gram"], products)
        targets = [*state["targets"], target]
        residual = float(gram[-1, -1])
        longest = max(2, min(HISTORY + 1, HISTORY_NUMBERS // (2 * target.size)))
        keep = 1 if residual > RESTART**2 * state.get("residual", np.inf) else min(len(targets), longest)
        gram, targets = gram[-keep:, -keep:], targets[-keep:]
        mixing = coefficients(gram)
        state.update(gram=gram, targets=targets, residual=residual)
        return sum((a * other for a, other in zip(mixing, targets, strict=True)), np.zeros_like(target)), mixing


def _extended(gram: Matrix, products: Vector) -> Matrix:
    """The Gram matrix with one row and column more."""
    out = np.empty((products.size, products.size))
    out[:-1, :-1] = gram
    out[-1, :] = out[:, -1] = products
    return out
