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

    step           "lipschitz": η_i = 1/L_i with L_i = 4β + 2α(d − 1)/ζ² + ργ_i (Proposition 1), never too long
    fresh          the mean is weighted by γ from w_i^(t+1) and w_con^t, not from a round before: the same limit
    gamma_cap      γ_i at most so many times the last round's mean: a silo that fuses cannot take the consensus alone
    weights        "equal": the paper's ablation: γ_i = 1/I for ever

When silos fuse, γ_i grows without bound, the steps shrink or diverge, and the iteration stalls away from the optimum
whatever the options; docs/explanation/theory.md has the cases. The run therefore ends with the joint problem's
certificate (bounds.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import distance
from silograph.errors import ParameterError, ProtocolError
from silograph.local.problem import LocalProblem
from silograph.local.prox import resting_force
from silograph.local.solvers.gradient import take_gradient_steps
from silograph.methods.common.bounds import DUAL_FIELDS, dual_bound, dual_parts, missing_share, shrink_into
from silograph.methods.common.registry import COUPLING_SETTINGS, GRADIENT_SETTINGS, MethodSpec, Solver
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.methods.common.steps import LocalSteps, steps_of
from silograph.protocol.messages import (
    FLAG,
    FORCE,
    NUMBER_NONNEGATIVE,
    OBJECTIVE,
    PAIRS,
    PAIRS_NONNEGATIVE,
    Field,
    Parts,
    Step,
    Task,
    Total,
)
from silograph.protocol.method import Answer, Cohort, Decision, Outcome, RoundRecord, States, report_on
from silograph.protocol.silo import Silo, SiloState
from silograph.protocol.units import Units
from silograph.theory import lipschitz_constant

LOOSE = 1e-2  # relative gap beyond which its user is told

STEPS = MappingProxyType(
    {
        "round": Step(
            down={"w_con": PAIRS_NONNEGATIVE, "gamma_mean": NUMBER_NONNEGATIVE},
            up={
                "objective": OBJECTIVE,
                "weighted": PAIRS_NONNEGATIVE,  # γw has no unit
                "gamma": Field("number", "1/weight", nonnegative=True),
                "diverged": FLAG,
            },
        ),
        "close": Step(down={"w_con": PAIRS_NONNEGATIVE}, up={"objective": OBJECTIVE, "force": FORCE, "fused": FLAG}),
        "certify": Step(down={"share": PAIRS, "fused": NUMBER_NONNEGATIVE}, up=DUAL_FIELDS),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Algorithm1Silo:
    """What a silo keeps."""

    w: Vector
    w_before: Vector
    gamma: float
    force: Vector | None = None  # for the certificate,
    fused: bool = False  # and whether it takes a share


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Algorithm1State:
    """What the coordinator keeps."""

    w_con: Vector
    objective: float = np.nan
    diverged: bool = False


@dataclass(frozen=True, slots=True)
class Algorithm1:
    """The paper's algorithm."""

    name: ClassVar[str] = "algorithm1"
    steps: ClassVar[Mapping[str, Step]] = STEPS
    states: ClassVar[States] = States(silo=Algorithm1Silo, coordinator=Algorithm1State)

    settings: StudySettings
    model: ModelParameters  # with ρ > 0

    @property
    def equal(self) -> bool:
        """Whether this is the ablation: γ_i = 1/I for ever."""
        return self.settings.weights == "equal"

    def units(self, task: Task) -> Units:
        return self.model.units

    # --- the silo's half: lines 3 to 11 -----------------------------------------------------------------------------

    def local(self, silo: Silo, state: SiloState[Algorithm1Silo], task: Task) -> Answer[Algorithm1Silo]:
        problem = self.model.problem(silo)
        if task.header.step == "certify":
            return self._certify(problem, task, state.kept)
        w_con = task.vector("w_con")
        if task.header.step == "close":
            return self._close(problem, w_con, silo, state.kept)
        gamma_mean = task.number("gamma_mean")
        own = Algorithm1Silo(w=w_con, w_before=w_con, gamma=gamma_mean) if state.own is None else state.own  # line 1
        far = distance(own.w, w_con)
        gamma = self._gamma(far, gamma_mean, first=task.header.round == 1)  # line 5
        objective = problem.value(own.w) + self.model.rho * far
        w, w_before = take_gradient_steps(  # lines 6 to 9
            problem,
            own.w,
            own.w_before,
            n_steps=steps_of(silo, self.settings.local_steps),
            step=self._step(self.model.rho * gamma, problem.n_nodes),
            momentum=self.settings.momentum,
            anchor=w_con,
            pull=self.model.rho * gamma,
        )
        diverged = not self.model.is_sound(w)
        if not diverged:
            own = Algorithm1Silo(w=w, w_before=w_before, gamma=gamma)
        if self.settings.fresh and not self.equal:
            gamma = self._gamma(distance(own.w, w_con), gamma_mean, first=False)
        parts: Parts = {"objective": objective, "weighted": gamma * own.w, "gamma": gamma, "diverged": float(diverged)}
        return Answer(parts=parts, state=own)  # line 10

    def _gamma(self, far: float, gamma_mean: float, *, first: bool) -> float:
        if first or self.equal:
            return gamma_mean  # 1/I
        gamma = 1 / (far + self.settings.gamma_epsilon)  # (5-new)
        cap = self.settings.gamma_cap
        return gamma if cap is None else min(gamma, cap * gamma_mean)

    def _step(self, pull: float, n_nodes: int) -> float:
        if self.settings.step != "lipschitz":
            return LocalSteps(self.settings, self.model).step
        alpha, beta, zeta = self.model.alpha, self.model.beta, self.model.zeta
        return 1 / lipschitz_constant(alpha=alpha, beta=beta, zeta=zeta, n_nodes=n_nodes, pull=pull)

    def _close(self, problem: LocalProblem, w_con: Vector, silo: Silo, own: Algorithm1Silo) -> Answer[Algorithm1Silo]:
        """The objective reached, and the force that the silo's distance to the consensus calls for."""
        w = own.w
        far = distance(w, w_con)
        fused = far <= self.settings.gamma_epsilon
        found = (
            self.model.rho * (w - w_con) / far if not fused else shrink_into(resting_force(problem, w), self.model.rho)
        )
        force = np.zeros_like(w) if found is None else found
        parts: Parts = {"objective": problem.value(w) + self.model.rho * far, "force": force, "fused": float(fused)}
        gamma = own.gamma if self.equal else 1 / (far + self.settings.gamma_epsilon)
        own = replace(own, force=force, fused=fused)
        return Answer(parts=parts, state=own, graph=w, reported=report_on(silo, w, w_con, weight=gamma))

    def _certify(self, problem: LocalProblem, task: Task, own: Algorithm1Silo) -> Answer[Algorithm1Silo]:
        if own.force is None:
            raise ProtocolError("expected to be asked for a force before its certificate.")
        force = own.force + task.vector("share") if own.fused or not task.number("fused") else own.force
        parts, _ = dual_parts(problem, force, rho=self.model.rho, start=problem.multipliers(own.w))
        return Answer(parts=parts, state=own)

    # --- the coordinator's half: lines 12 to 15 ---------------------------------------------------------------------

    def begin(self, cohort: Cohort) -> Decision[Algorithm1State]:
        w_con = np.full(cohort.pairs.size, self.settings.first_weight)  # line 1
        parts: Parts = {"w_con": w_con, "gamma_mean": 1 / cohort.n_silos}
        return Decision(state=Algorithm1State(w_con=w_con), step="round", parts=parts)

    def merge(self, cohort: Cohort, state: Algorithm1State, total: Total) -> Decision[Algorithm1State]:
        if total.header.step == "close":
            return self._merge_close(cohort, state, total)
        if total.header.step == "certify":
            return self._merge_certify(cohort, state, total)
        record = {"objective": total.number("objective") + self.model.lam * float(state.w_con.sum())}
        if total.number("diverged"):
            state = replace(state, diverged=True)
            return Decision(state=state, step="close", parts={"w_con": state.w_con}, record=record)
        gamma = total.number("gamma")  # C_γ
        w_con = np.maximum(
            total.vector("weighted") / gamma - self.model.lam / (self.model.rho * gamma), 0.0
        )  # (45), line 13
        state = replace(state, w_con=w_con)
        if total.header.round < self.settings.rounds_used:
            mean = 1 / cohort.n_silos if self.equal else gamma / cohort.n_silos
            parts: Parts = {"w_con": w_con, "gamma_mean": mean}
            return Decision(state=state, step="round", parts=parts, record=record)
        return Decision(state=state, step="close", parts={"w_con": w_con}, record=record)

    def _merge_close(self, cohort: Cohort, state: Algorithm1State, total: Total) -> Decision[Algorithm1State]:
        objective = total.number("objective") + self.model.lam * float(state.w_con.sum())
        fused = total.number("fused")
        share = missing_share(total.vector("force"), state.w_con, lam=self.model.lam, n_sharing=fused or cohort.n_silos)
        state, record = replace(state, objective=objective), {"objective": objective}
        return Decision(state=state, step="certify", parts={"share": share, "fused": fused}, record=record)

    def _merge_certify(self, cohort: Cohort, state: Algorithm1State, total: Total) -> Decision[Algorithm1State]:
        objective, bound = state.objective, dual_bound(total)
        gap = self.model.gap(objective, bound, cohort)
        outcome = Outcome(
            consensus=state.w_con,
            objective=objective,
            gap=gap,
            converged=bool(gap <= self.settings.tol),
            diverged=state.diverged,
        )
        return Decision(outcome=outcome, record={"objective": objective, "bound": bound, "gap": gap})


def build(settings: StudySettings, model: ModelParameters) -> Algorithm1:
    """The method for a study."""
    if model.rho == 0:
        raise ParameterError(
            "Algorithm 1 divides by rho, which is 0: the coupling is, or the silos are alike. "
            "Use method='exact', or give nu and lam."
        )
    return Algorithm1(settings, model)


def trouble(gap: float, history: Sequence[RoundRecord]) -> str | None:
    """What to tell a user whose run ended far from the optimum; its gap has no tolerance to meet."""
    if gap <= LOOSE:
        return None
    objectives = [record["objective"] for record in history]
    last = objectives[-6:]
    stalled = max(last) - min(last) <= 1e-4 * abs(objectives[-1])
    how = "stalled" if stalled else "is still moving"
    cure = "" if stalled else "More rounds may help. "
    return (
        f"Algorithm 1 {how}: after {len(history)} rounds the certified relative gap is {gap:.1e}. When "
        f"silos fuse, its weights grow without bound and it stops short of the optimum. {cure}method='exact' solves "
        "the same model to the end; fresh=True, gamma_cap=5 and step='lipschitz' make Algorithm 1 safer."
    )


METHOD = MethodSpec(
    build=build,
    gradient=Solver(
        settings=GRADIENT_SETTINGS | COUPLING_SETTINGS | {"fresh", "gamma_cap", "gamma_epsilon"},
        lipschitz=True,
        trouble=trouble,
    ),
)
