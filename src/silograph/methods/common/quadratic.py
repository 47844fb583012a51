"""The optimum of silos that a square pulls to what they share: MRMTL, and the paper's model with equal weights.

    minimise   Σ_i [g_i(w_i) + (s/2)‖w_i − u‖²] + λ 1ᵀu    over w_i ≥ 0 and u ≥ 0

With λ = 0, u is the mean and this is MRMTL. With s = ρ/I it is what Algorithm 1 without adaptive weights minimises.

Exact local solves and u = (mean − λ/(Is))₊ take turns, accelerated (mixing.py). The certificate comes from sums: the
forces v_i = s(w_i − u), each moved by the same δ so that Σ v_i ≤ λ, are dual feasible, and as g_i is q-strongly convex

    optimum ≥ Σ [g_i(w_i) + v_iᵀw_i] + δᵀΣ w_i − I‖δ‖²/(2q) − Σ‖v_i + δ‖²/(2s).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import distance, dot
from silograph.local.prox import add_pull, solve_exactly
from silograph.methods.common.bounds import missing_share
from silograph.methods.common.mixing import coefficients
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.protocol.messages import GAP, PAIRS_NONNEGATIVE, WEIGHTS, Field, Parts, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, Outcome, States, report_on
from silograph.protocol.silo import Silo, SiloState
from silograph.protocol.units import Units

HISTORY = 10

STEPS = MappingProxyType(
    {
        "learn": Step(
            down={"u": PAIRS_NONNEGATIVE},
            up={
                "w": WEIGHTS,
                "value": Field("number", "energy"),  # of both sides of the certificate
                "gap": GAP,
                "square": Field("number", "weight²", nonnegative=True),  # ‖w − u‖²
                "work": Field("number", "weight²"),  # (w − u)ᵀw
            },
        )
    }
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuadraticSilo:
    """What a silo keeps."""

    y: Vector  # multipliers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuadraticState:
    """What the coordinator keeps."""

    u: Vector
    bound: float = -np.inf
    points: tuple[Vector, ...] = ()
    residuals: tuple[Vector, ...] = ()


@dataclass(frozen=True, slots=True)
class QuadraticCoupling:
    """The optimum."""

    steps: ClassVar[Mapping[str, Step]] = STEPS
    states: ClassVar[States] = States(silo=QuadraticSilo, coordinator=QuadraticState)

    name: str
    settings: StudySettings
    model: ModelParameters
    pull: float  # s > 0
    start: Vector
    weight: float | None = None  # γ to report, where the model fixes it

    def units(self, task: Task) -> Units:
        return self.model.units

    def local(self, silo: Silo, state: SiloState[QuadraticSilo], task: Task) -> Answer[QuadraticSilo]:
        u = task.vector("u")
        problem = self.model.problem(silo)
        start = state.start if state.own is None else state.own.y
        solution = solve_exactly(add_pull(problem, u, self.pull), start)
        w = solution.w
        parts: Parts = {
            "w": w,
            "value": problem.value(w),
            "gap": solution.gap,
            "square": distance(w, u) ** 2,
            "work": dot(w - u, w),
        }
        reported = report_on(silo, w, u, weight=self.weight)
        return Answer(parts=parts, state=QuadraticSilo(y=solution.y), graph=w, reported=reported)

    def begin(self, cohort: Cohort) -> Decision[QuadraticState]:
        return Decision(state=QuadraticState(u=self.start), step="learn", parts={"u": self.start})

    def merge(self, cohort: Cohort, state: QuadraticState, total: Total) -> Decision[QuadraticState]:
        n = total.n_silos
        following = np.maximum(total.vector("w") / n - self.model.lam / (n * self.pull), 0.0)
        objective, bound = self._objective(state.u, following, total), self._bound(state.u, following, total)
        bound = max(bound, state.bound)
        gap = self.model.gap(objective, bound, cohort)
        converged, record = bool(gap <= self.settings.tol), {"objective": objective, "bound": bound, "gap": gap}
        if converged or total.header.round >= self.settings.rounds_used:
            outcome = Outcome(consensus=following, objective=objective, gap=gap, converged=converged)
            return Decision(outcome=outcome, record=record)
        points = (*state.points, following)[-HISTORY:]
        residuals = (*state.residuals, following - state.u)[-HISTORY:]
        mixing = coefficients(np.array([[dot(a, b) for a in residuals] for b in residuals]))
        u = np.maximum(sum((a * x for a, x in zip(mixing, points, strict=True)), np.zeros_like(following)), 0.0)
        state = QuadraticState(u=u, bound=bound, points=points, residuals=residuals)
        return Decision(state=state, step="learn", parts={"u": u}, record=record)

    def _objective(self, u: Vector, following: Vector, total: Total) -> float:
        """The objective of the silos' graphs, u being where it is best for them rather than where it was."""
        moved = following - u
        spread = total.vector("w") - total.n_silos * u
        square = total.number("square") - 2 * dot(moved, spread) + total.n_silos * dot(moved, moved)
        return total.number("value") + 0.5 * self.pull * square + self.model.lam * float(following.sum())

    def _bound(self, u: Vector, following: Vector, total: Total) -> float:
        n, s = total.n_silos, self.pull
        force = s * (total.vector("w") - n * u)
        share = missing_share(force, following, lam=self.model.lam, n_sharing=n)
        shift = n * dot(share, share)
        # What a local solve is short of its optimum, a force taken from it may be short of by the pull over q more
        short = (1 + s / (4 * self.model.beta)) * total.number("gap")
        moved = s**2 * total.number("square") + 2 * dot(share, force) + shift
        held = total.number("value") - short + s * total.number("work")
        return held + dot(share, total.vector("w")) - shift / (8 * self.model.beta) - moved / (2 * s)
