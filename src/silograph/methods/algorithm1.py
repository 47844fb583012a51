"""Algorithm 1 of the paper, verbatim: accelerated gradient steps in the silos, a γ-weighted mean at the coordinator.

    γ_i⁰ = 1/I,   w_con⁰ = w_i⁰ = w_i^(−1,0) = w_i^(−1,−1)                                  line 1
    in each silo, K_i times:                                                            lines 6 to 9
        w_ex = w + ξ (w − w_before)                                                     (2-0)
        w̆    = w_ex − η (∇g_i(w_ex) + ργ_i^t (w_ex − w_con^t))                           (2-1)
        w    = max(w̆, 0)                                                                (2-2)
    w_con^(t+1) = max(Σ γ_i^t w_i^(t+1)/Σ γ_i^t − λ/(ρ Σ γ_i^t), 0)                      (45), line 13
    γ_i^(t+1)   = 1/(‖w_i^(t+1) − w_con^(t+1)‖ + ε_γ)                                    (5-new), line 14

One thing is arranged differently: γ_i is computed in the silo, which knows w_i and receives w_con, so that the
coordinator needs Σ γ_i w_i and Σ γ_i only. The numbers are the same.

Options that the paper does not have, all off by default:

    step=None      η_i = 1/L_i with L_i = 4β + 2α(d − 1)/ζ² + ργ_i (Proposition 1), where a constant may be too long
    fresh=True     the mean is weighted by γ from w_i^(t+1) and w_con^t, not from a round before: the same limit
    cap=c          γ_i at most c times the last round's mean: a silo that fuses cannot take the consensus alone
    equal=True     the paper's ablation: γ_i = 1/I for ever

When silos fuse, γ_i grows without bound, the steps shrink or diverge, and the iteration stalls away from the optimum
whatever the options; docs/theory.md has the cases. The run therefore ends with the joint problem's certificate
(bounds.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import distance
from silograph.local.problem import LocalProblem
from silograph.local.prox import resting_force
from silograph.local.solvers.gradient import take_gradient_steps
from silograph.methods.common.bounds import DUAL_FIELDS, dual_bound, dual_parts, missing_share, relative_gap, within
from silograph.methods.common.steps import FIRST_WEIGHT, is_sound, steps_of
from silograph.protocol.messages import (
    NUMBER,
    NUMBER_NONNEGATIVE,
    PAIRS,
    PAIRS_NONNEGATIVE,
    Step,
    Task,
    Total,
)
from silograph.protocol.method import Answer, Cohort, Decision, of_graph
from silograph.protocol.silo import Memory, Silo
from silograph.theory import lipschitz_constant

STEPS = MappingProxyType(
    {
        "round": Step(
            down={"w_con": PAIRS_NONNEGATIVE, "gamma_mean": NUMBER_NONNEGATIVE},
            up={
                "objective": NUMBER,
                "weighted": PAIRS_NONNEGATIVE,
                "gamma": NUMBER_NONNEGATIVE,
                "diverged": NUMBER_NONNEGATIVE,
            },
        ),
        "close": Step(
            down={"w_con": PAIRS_NONNEGATIVE},
            up={"objective": NUMBER, "force": PAIRS, "fused": NUMBER_NONNEGATIVE},
        ),
        "certify": Step(down={"share": PAIRS, "fused": NUMBER_NONNEGATIVE}, up=DUAL_FIELDS),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm1:
    """The paper's algorithm."""

    name: ClassVar[str] = "algorithm1"
    steps: ClassVar[Mapping[str, Step]] = STEPS

    alpha: float
    beta: float
    rho: float  # λν
    lam: float
    zeta: float = 0.5
    local_steps: int = 5  # K
    rounds: int = 50  # T
    step: float | None = 0.005  # η_w; None: 1/L_i
    momentum: float = 0.9  # ξ
    gamma_epsilon: float = 1e-8  # ε_γ
    first_weight: float = FIRST_WEIGHT  # w⁰
    equal: bool = False
    fresh: bool = False
    cap: float | None = None
    tol: float = 1e-6

    # --- the silo's half: lines 3 to 11 -----------------------------------------------------------------------------

    def local(self, silo: Silo, task: Task) -> Answer:
        problem = silo.problem(alpha=self.alpha, beta=self.beta, zeta=self.zeta)
        if task.header.step == "certify":
            return self._certified(problem, task, silo.memory)
        w_con, memory = task.vector("w_con"), silo.memory
        if task.header.step == "close":
            return self._closed(problem, w_con, silo)
        if "w" not in memory:  # line 1
            memory.update(w=w_con, w_before=w_con)
        far = distance(memory["w"], w_con)
        gamma = self._gamma(far, task.number("gamma_mean"), first=task.header.round == 1)  # line 5
        objective = problem.value(memory["w"]) + self.rho * far
        w, w_before = take_gradient_steps(  # lines 6 to 9
            problem,
            memory["w"],
            memory["w_before"],
            n_steps=steps_of(silo, self.local_steps),
            step=self._step(self.rho * gamma, problem.n_nodes),
            momentum=self.momentum,
            anchor=w_con,
            pull=self.rho * gamma,
        )
        diverged = not is_sound(w)
        if not diverged:
            memory.update(w=w, w_before=w_before, gamma=gamma)
        if self.fresh and not self.equal:
            gamma = self._gamma(distance(memory["w"], w_con), task.number("gamma_mean"), first=False)
        parts = {"objective": objective, "weighted": gamma * memory["w"], "gamma": gamma, "diverged": float(diverged)}
        return Answer(parts=parts)  # line 10

    def _gamma(self, far: float, gamma_mean: float, *, first: bool) -> float:
        if first or self.equal:
            return gamma_mean  # 1/I
        gamma = 1 / (far + self.gamma_epsilon)  # (5-new)
        return gamma if self.cap is None else min(gamma, self.cap * gamma_mean)

    def _step(self, pull: float, n_nodes: int) -> float:
        if self.step is not None:
            return self.step
        return 1 / lipschitz_constant(alpha=self.alpha, beta=self.beta, zeta=self.zeta, n_nodes=n_nodes, pull=pull)

    def _closed(self, problem: LocalProblem, w_con: Vector, silo: Silo) -> Answer:
        """The objective reached, and the force that the silo's distance to the consensus calls for."""
        w, memory = silo.memory["w"], silo.memory
        far = distance(w, w_con)
        fused = far <= self.gamma_epsilon
        force = self.rho * (w - w_con) / far if not fused else within(resting_force(problem, w), self.rho)
        memory["force"] = np.zeros_like(w) if force is None else force
        memory["fused"] = float(fused)
        parts = {"objective": problem.value(w) + self.rho * far, "force": memory["force"], "fused": float(fused)}
        gamma = memory["gamma"] if self.equal else 1 / (far + self.gamma_epsilon)
        return Answer(parts=parts, reported=of_graph(silo, w, w_con, weight=gamma))

    def _certified(self, problem: LocalProblem, task: Task, memory: Memory) -> Answer:
        shares = memory["fused"] or not task.number("fused")
        force = memory["force"] + task.vector("share") if shares else memory["force"]
        parts, _ = dual_parts(problem, force, rho=self.rho, start=problem.multipliers(memory["w"]))
        return Answer(parts=parts)

    # --- the coordinator's half: lines 12 to 15 ---------------------------------------------------------------------

    def begin(self, cohort: Cohort) -> Decision:
        w_con = np.full(cohort.pairs.size, self.first_weight)  # line 1
        state = {"w_con": w_con, "gap": np.inf, "converged": False, "diverged": False, "consensus": w_con}
        return Decision(state=state, step="round", parts={"w_con": w_con, "gamma_mean": 1 / cohort.n_silos})

    def merge(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        if total.header.step == "close":
            return self._merge_close(cohort, state, total)
        if total.header.step == "certify":
            return self._merge_certify(cohort, state, total)
        record = {"objective": total.number("objective") + self.lam * float(state["w_con"].sum())}
        if total.number("diverged"):
            state = state | {"diverged": True}
            return Decision(state=state, step="close", parts={"w_con": state["w_con"]}, record=record)
        gamma = total.number("gamma")  # C_γ
        w_con = np.maximum(total.vector("weighted") / gamma - self.lam / (self.rho * gamma), 0.0)  # (45), line 13
        state = state | {"w_con": w_con, "consensus": w_con}
        if total.header.round < self.rounds:
            mean = 1 / cohort.n_silos if self.equal else gamma / cohort.n_silos
            parts: dict[str, Vector | float] = {"w_con": w_con, "gamma_mean": mean}
            return Decision(state=state, step="round", parts=parts, record=record)
        return Decision(state=state, step="close", parts={"w_con": w_con}, record=record)

    def _merge_close(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        objective = total.number("objective") + self.lam * float(state["w_con"].sum())
        fused = total.number("fused")
        share = missing_share(total.vector("force"), state["w_con"], lam=self.lam, n_sharing=fused or cohort.n_silos)
        state = state | {"objective": objective}
        parts: dict[str, Vector | float] = {"share": share, "fused": fused}
        return Decision(state=state, step="certify", parts=parts, record={"objective": objective})

    def _merge_certify(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        bound = dual_bound(total)
        gap = relative_gap(
            state["objective"],
            bound,
            alpha=self.alpha,
            n_nodes=cohort.pairs.n_nodes,
            n_silos=cohort.n_silos,
        )
        state = state | {"gap": gap, "converged": bool(gap <= self.tol)}
        return Decision(state=state, step=None, record={"objective": state["objective"], "bound": bound, "gap": gap})
