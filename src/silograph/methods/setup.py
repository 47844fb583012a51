"""The set-up exchange: from parameters without units to the model's own, by sums alone.

    degree     → α, β     the θ at which the silos' own graphs have this mean degree, on average (tuning.py)
    coupling   → ρ        ρ = coupling · ρ_ref, where ρ_ref² is the mean of ‖v_i‖² and v_i the force that would hold
                          silo i's graph at the pooled optimum: silos fuse one after another around coupling 1
    sparsity   → λ        λ = sparsity · λ_max, where λ_max is the largest entry of Σ v_i at u = 0: from there on the
                          consensus is empty

Silos that are alike need no force: then ρ_ref = 0, and all learn the pooled graph. The coordinator sees sums: of log θ,
of numbers of edges, of costs (whose mean makes the pooled problem), of ‖v_i‖², of v_i.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import dot
from silograph.graph.pairs import Pairs
from silograph.local.degree import (
    DEGREE_PROMISE,
    DEGREE_TOL,
    MAX_DEGREE_SOLVES,
    DegreeSearch,
    first_theta,
    mean_degree,
    problem_at,
)
from silograph.local.problem import LocalProblem
from silograph.local.prox import prox_step, resting_force
from silograph.local.solvers.polish import solve_to_rounding
from silograph.protocol.messages import (
    NUMBER,
    NUMBER_NONNEGATIVE,
    PAIRS,
    PAIRS_NONNEGATIVE,
    Step,
    Task,
    Total,
)
from silograph.protocol.method import Answer, Cohort, Decision
from silograph.protocol.silo import Memory, Silo

ALIKE = 1e-9  # forces, relative to q‖u‖, that are rounding

STEPS = MappingProxyType(
    {
        "rule": Step(down={}, up={"log_theta": NUMBER}),
        "degree": Step(down={"theta": NUMBER_NONNEGATIVE}, up={"degree": NUMBER_NONNEGATIVE}),
        "costs": Step(down={}, up={"cost": PAIRS_NONNEGATIVE}),
        "forces": Step(
            down={"u": PAIRS_NONNEGATIVE, "alpha": NUMBER, "beta": NUMBER}, up={"force_square": NUMBER_NONNEGATIVE}
        ),
        "empty": Step(down={"rho": NUMBER, "alpha": NUMBER, "beta": NUMBER}, up={"force": PAIRS}),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The exchange. Either a degree or α and β; either coupling and sparsity, or ρ and λ, or neither."""

    name: ClassVar[str] = "setup"
    steps: ClassVar[Mapping[str, Step]] = STEPS

    degree: float | None = None
    alpha: float | None = None
    beta: float | None = None
    coupling: float | None = None
    sparsity: float | None = None
    rho: float | None = None
    lam: float | None = None
    zeta: float = 0.0

    # --- the silo's half ----------------------------------------------------------------------------------------------

    def local(self, silo: Silo, task: Task) -> Answer:
        step = task.header.step
        if step == "rule":
            assert self.degree is not None
            return Answer(parts={"log_theta": float(np.log(first_theta(silo.cost, silo.pairs, self.degree)))})
        if step == "degree":
            problem = problem_at(task.number("theta"), silo.cost, silo.pairs, self.zeta)
            solution = solve_to_rounding(problem, silo.memory.get("y"))
            silo.memory["y"] = solution.y
            return Answer(parts={"degree": mean_degree(problem, solution.w)})
        if step == "costs":
            return Answer(parts={"cost": silo.cost})
        problem = silo.problem(alpha=task.number("alpha"), beta=task.number("beta"), zeta=self.zeta)
        if step == "forces":
            force = resting_force(problem, task.vector("u"))
            return Answer(parts={"force_square": dot(force, force)})
        nothing = np.zeros(silo.pairs.size)
        rho = task.number("rho")
        result = prox_step(
            problem,
            nothing,
            metric=None,
            rho=rho,
            strength=float(problem.quadratic),
            start=silo.memory.get("y"),
        )
        silo.memory["y"] = result.y
        return Answer(parts={"force": result.force})

    # --- the coordinator's half ---------------------------------------------------------------------------------------

    def begin(self, cohort: Cohort) -> Decision:
        if self.degree is not None:
            return Decision(state={}, step="rule")
        return Decision(state={"alpha": self.alpha, "beta": self.beta}, step="costs")

    def merge(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        take = {
            "rule": self._take_rule,
            "degree": self._take_degree,
            "costs": self._take_costs,
            "forces": self._take_forces,
            "empty": self._take_empty,
        }[total.header.step]
        return take(cohort, dict(state), total)

    def _take_rule(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        search = DegreeSearch(total.number("log_theta") / total.n_silos)
        return self._at_theta(state | {"search": asdict(search), "solves": 0}, search.log_theta)

    def _at_theta(self, state: Memory, log_theta: float) -> Decision:
        theta = float(np.exp(log_theta))
        state.update(theta=theta, solves=state["solves"] + 1)
        return Decision(state=state, step="degree", parts={"theta": theta})

    def _take_degree(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        assert self.degree is not None
        got, n_nodes = total.number("degree") / total.n_silos, cohort.pairs.n_nodes
        off = abs(got - self.degree)
        record = {"theta": state["theta"], "degree": got}
        if off < abs(state.get("degree", np.inf) - self.degree):
            state.update(degree=got, best_theta=state["theta"])
        # Edges are whole: half an edge off in each silo is as near as any graphs can be
        near = max(DEGREE_TOL * self.degree, (1 + 1e-9) / n_nodes / total.n_silos)
        search = DegreeSearch(**state["search"])
        going_on = off > near and state["solves"] < MAX_DEGREE_SOLVES
        if going_on and search.advance(float(np.log(max(got, 1 / n_nodes) / self.degree))):
            state["search"] = asdict(search)
            decision = self._at_theta(state, search.log_theta)
            return Decision(state=decision.state, step=decision.step, parts=decision.parts, record=record)
        reached = abs(state["degree"] - self.degree) <= max(DEGREE_PROMISE * self.degree, near)
        state.update(alpha=1 / state["best_theta"], beta=1 / (2 * state["best_theta"]), degree_reached=bool(reached))
        return Decision(state=state, step="costs", record=record)

    def _take_costs(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        state["cost"] = total.vector("cost") / total.n_silos
        if self.coupling is None:
            return self._done(cohort, state | {"rho": self.rho, "lam": self.lam}, {})
        pooled = self._pooled(cohort.pairs, state, lam=0.0, n_silos=total.n_silos)
        state["pooled"] = pooled
        return Decision(state=state, step="forces", parts={"u": pooled, "alpha": state["alpha"], "beta": state["beta"]})

    def _take_forces(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        assert self.coupling is not None
        reference = float(np.sqrt(total.number("force_square") / total.n_silos))
        alike = reference <= ALIKE * 4 * state["beta"] * np.sqrt(dot(state["pooled"], state["pooled"]))
        rho = 0.0 if alike else self.coupling * reference
        state.update(rho_reference=reference, rho=rho, alike=bool(alike), lam=0.0)
        record = {"rho": rho}
        if rho == 0 or self.sparsity == 0:
            return self._done(cohort, state, record)
        parts = {"rho": rho, "alpha": state["alpha"], "beta": state["beta"]}
        return Decision(state=state, step="empty", parts=parts, record=record)

    def _take_empty(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        assert self.sparsity is not None
        largest = float(total.vector("force").max())
        state.update(lam_largest=largest, lam=self.sparsity * max(largest, 0.0))
        return self._done(cohort, state, {"rho": state["rho"], "lam": state["lam"]})

    def _done(self, cohort: Cohort, state: Memory, record: dict[str, float]) -> Decision:
        lam = 0.0 if state["lam"] is None else state["lam"]
        if lam > 0 and lam >= state.get("lam_largest", np.inf):  # the optimal consensus is known: it is empty
            state["start"] = np.zeros(cohort.pairs.size)
        else:
            state["start"] = self._pooled(cohort.pairs, state, lam=lam, n_silos=cohort.n_silos)
        return Decision(state=state, step=None, record=record)

    def _pooled(self, pairs: Pairs, state: Memory, *, lam: float, n_silos: int) -> Vector:
        """The optimum of all silos' data together, each silo counting alike: the start, and the fully fused graph."""
        problem = LocalProblem(
            cost=state["cost"] + lam / n_silos,
            pairs=pairs,
            quadratic=4 * state["beta"],
            alpha=state["alpha"],
            zeta=self.zeta,
        )
        return solve_to_rounding(problem, None).w
