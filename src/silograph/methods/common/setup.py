"""The set-up exchange: from parameters without units to the model's own, by sums alone.

    degree     → α, β     the θ at which the silos' own graphs have this mean degree, on average (local/degree.py)
    coupling   → ρ        ρ = coupling · ρ_ref, where ρ_ref² is the mean of ‖v_i‖² and v_i the force that would hold
                          silo i's graph at the pooled optimum: silos fuse one after another around coupling 1
    sparsity   → λ        λ = sparsity · λ_max, where λ_max is the largest entry of Σ v_i at u = 0: from there on the
                          consensus is empty

Silos that are alike need no force: then ρ_ref = 0, and all learn the pooled graph. The coordinator sees sums: of log θ,
of numbers of edges, of costs (whose mean makes the pooled problem), of ‖v_i‖², of v_i.

Where silos may lack nodes, it also sees how many have each pair, n_e: the pooled problem is of means over those
(pooling.py), the penalty of a pair is λ_e = λ n_e/I, and λ_max the largest of I Σ v_ie / n_e. For ρ_ref, a silo takes
the pooled optimum with the degrees that its nodes have there, neighbours that it lacks included. So v_i says how far
its costs are from the mean, as in a silo that lacks nothing. With the degrees among its own nodes alone, a node whose
neighbours are all elsewhere would make ρ_ref infinite, and one with a weak neighbour left nearly so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import dot
from silograph.errors import ParameterError, ProtocolError
from silograph.graph.pairs import Pairs
from silograph.local.degree import (
    DEGREE_PROMISE,
    DEGREE_TOL,
    MAX_DEGREE_SOLVES,
    DegreeSearch,
    check_degree,
    first_theta,
    mean_degree,
    problem_at,
)
from silograph.local.problem import LocalProblem
from silograph.local.prox import prox_step, resting_force
from silograph.local.solvers.gradient import is_sound
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.bounds import joint_scale
from silograph.methods.common.pooling import CostSum, PooledOptimum, count_of, mean_over
from silograph.methods.common.registry import spec_of
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup_checks import ALIKE, ScalarsError, SetupSilo, check_model, check_scalars, take_turn
from silograph.protocol.messages import COSTS, FORCE, HAS, NUMBER, NUMBER_NONNEGATIVE, Field, Parts, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, Method, States
from silograph.protocol.silo import Silo, SiloState
from silograph.protocol.units import Units, units_of

DEFAULT_COUPLING, DEFAULT_SPARSITY = 0.5, 0.1
USUAL_DEGREE = 8.0  # of whole optima over several silos: below, weights rank true edges worse (analysis/choosing.py)
SCALARS = ("alpha", "beta", "rho", "lam", "alike")  # all that a silo must know of what set-up found
FARTHEST_LOG_THETA = 200.0  # of a θ that is counted in the costs' unit; honest ones are within 100

DEGREE = Field("number", nonnegative=True, most="degree")

STEPS = MappingProxyType(
    {
        "rule": Step(down={}, up={"log_theta": Field("number", most=FARTHEST_LOG_THETA)}),
        "degree": Step(down={"theta": NUMBER_NONNEGATIVE}, up={"degree": DEGREE}),
        "costs": Step(down={}, up={"cost": COSTS}),
        "forces": Step(
            down={"u": Field("pairs", nonnegative=True, whole=True), "alpha": NUMBER, "beta": NUMBER},
            up={"force_square": Field("number", "slope²", nonnegative=True)},
        ),
        "empty": Step(down={"rho": NUMBER, "alpha": NUMBER, "beta": NUMBER}, up={"force": FORCE}),
    }
)
COSTS_AND_COUNT = Step(down={}, up={"cost": COSTS, "count": HAS})  # where silos may lack nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedModel:
    """The model's own parameters, known beforehand: for folds and half-samples of a study that was set up already."""

    alpha: float
    beta: float
    rho: float
    lam: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelParameters:
    """What set-up finds: the model's own parameters, and where to start."""

    n_silos: int
    alpha: float
    beta: float
    zeta: float
    pooled: Vector  # the optimum of all data together; zero in a silo, whose half does not need it
    rho: float = 0.0
    lam: float = 0.0
    alike: bool = False  # whether the silos' data are the same
    degree: float | None = None  # what the silos' own graphs have; None where α and β were given
    degree_reached: bool = True
    start: Vector | None = None  # the consensus of a similar study
    cost_unit: float = 1.0
    cost_sum: Vector | None = None  # of all silos; not known in a silo
    count: Vector | None = None  # of the silos that have each pair; None: all have all

    def problem(self, silo: Silo) -> LocalProblem:
        """The silo's own problem."""
        return silo.problem(alpha=self.alpha, beta=self.beta, zeta=self.zeta)

    @property
    def weight(self) -> float | Vector:
        """How many silos the sum of costs is over: one number, or one per pair where silos may lack some."""
        return float(self.n_silos) if self.count is None else self.count

    @property
    def penalty(self) -> float | Vector:
        """λ, or λ_e = λ n_e/I, pair by pair."""
        return self.lam if self.count is None else self.lam * (self.count / self.n_silos)

    def pooled_optimum(self, sums: CostSum) -> PooledOptimum:
        """The pooled graph of these sums."""
        return sums.solve(alpha=self.alpha, beta=self.beta, zeta=self.zeta, shift=self.lam / self.n_silos)

    @property
    def units(self) -> Units:
        """What the run's numbers are counted in."""
        return units_of(cost=self.cost_unit, alpha=self.alpha, quadratic=4 * self.beta, rho=self.rho)

    def is_sound(self, w: Vector) -> bool:
        """Whether gradient steps were not too long."""
        return is_sound(w, self.alpha, 4 * self.beta)

    def scale(self, objective: float, cohort: Cohort) -> float:
        """What a gap of all silos together is measured against."""
        return joint_scale(objective, alpha=self.alpha, n_nodes=cohort.pairs.n_nodes, n_silos=self.n_silos)

    def gap(self, primal: float, dual: float, cohort: Cohort) -> float:
        """The relative gap; what rounding makes negative counts as nothing."""
        return max(primal - dual, 0.0) / self.scale(primal, cohort)

    @property
    def scalars(self) -> dict[str, float]:
        """All that a silo must know of them."""
        return {name: float(getattr(self, name)) for name in SCALARS}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetupState:
    """What the coordinator knows so far."""

    search: DegreeSearch | None = None
    theta: float = np.nan  # asked last,
    solves: int = 0  # and how many were
    best_theta: float = np.nan  # whose degree is nearest
    degree: float | None = None  # at the best θ
    degree_reached: bool = True
    alpha: float = np.nan
    beta: float = np.nan
    cost: Vector | None = None  # the sum of all silos'
    count: Vector | None = None  # of the silos that have each pair; None: all have all
    pooled: Vector | None = None
    rho: float = 0.0
    lam: float = 0.0
    alike: bool = False
    lam_largest: float = np.inf  # from there on the consensus is empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The exchange. Either a degree or α and β; either coupling and sparsity, or ρ and λ, or neither."""

    name: ClassVar[str] = "setup"
    states: ClassVar[States] = States(silo=SetupSilo, coordinator=SetupState, outcome=ModelParameters)

    degree: float | None = None
    alpha: float | None = None
    beta: float | None = None
    coupling: float | None = None
    sparsity: float | None = None
    rho: float | None = None
    lam: float | None = None
    zeta: float = 0.0
    cost_unit: float = 1.0
    missing_nodes: bool = False  # whether silos may lack some

    @property
    def steps(self) -> Mapping[str, Step]:
        """Every kind of exchange."""
        return {**STEPS, "costs": COSTS_AND_COUNT} if self.missing_nodes else STEPS

    def units(self, task: Task) -> Units:
        if "alpha" not in task.parts:
            return units_of(cost=self.cost_unit)
        return units_of(
            cost=self.cost_unit,
            alpha=task.number("alpha"),
            quadratic=4 * task.number("beta"),
            rho=task.number("rho") if "rho" in task.parts else np.inf,
        )

    # --- the silo's half ----------------------------------------------------------------------------------------------

    def local(self, silo: Silo, state: SiloState[SetupSilo], task: Task) -> Answer[SetupSilo]:
        step, kept = task.header.step, take_turn(self, state.own, task.header.step)
        if step == "rule":
            assert self.degree is not None
            theta = first_theta(silo.cost, silo.pairs, self.degree)
            return Answer(parts={"log_theta": float(np.log(theta * self.cost_unit))}, state=kept)
        if step == "degree":
            if not (theta := task.number("theta")) > 0:
                raise ProtocolError(f"expected θ > 0, got {theta:g}.")
            problem = problem_at(theta, silo.cost, silo.pairs, self.zeta)
            solution = solve_to_rounding(problem, state.start)
            kept = replace(kept, thetas=(*kept.thetas, theta))
            return Answer(parts={"degree": mean_degree(problem, solution.w)}, start=solution.y, state=kept)
        if step == "costs":
            return Answer(parts=terms_of(silo, self.missing_nodes), state=kept)
        alpha, beta = task.number("alpha"), task.number("beta")
        check_model(self, kept, alpha, beta)
        problem = silo.problem(alpha=alpha, beta=beta, zeta=self.zeta)
        if step == "forces":
            u = task.vector("u")
            degrees = silo.study_pairs.degrees(u) if silo.nodes is not None else None
            force = resting_force(problem, silo.take(u), None if degrees is None else degrees[silo.nodes])
            kept = replace(kept, alpha=alpha, force_square=float(dot(force, force)), u_square=float(dot(u, u)))
            return Answer(parts={"force_square": kept.force_square}, state=kept)
        if not (rho := task.number("rho")) > 0:
            raise ScalarsError(f"rho: expected a number > 0, got {rho:g}.")
        nothing, strength = np.zeros(silo.pairs.size), float(problem.quadratic)
        result = prox_step(problem, nothing, metric=None, rho=rho, strength=strength, start=state.start)
        return Answer(parts={"force": result.force}, start=result.y, state=replace(kept, rho=rho))

    def check_scalars(self, kept: Sequence[SetupSilo], scalars: Mapping[str, float], n_silos: int) -> None:
        """Raise ScalarsError unless what these silos were asked can lead to these parameters of learning."""
        check_scalars(self, kept, scalars, n_silos)

    # --- the coordinator's half ---------------------------------------------------------------------------------------

    def begin(self, cohort: Cohort) -> Decision[SetupState]:
        if self.degree is not None:
            return Decision(state=SetupState(), step="rule")
        assert self.alpha is not None
        assert self.beta is not None
        return Decision(state=SetupState(alpha=self.alpha, beta=self.beta), step="costs")

    def merge(self, cohort: Cohort, state: SetupState, total: Total) -> Decision[SetupState]:
        take = {
            "rule": self._take_rule,
            "degree": self._take_degree,
            "costs": self._take_costs,
            "forces": self._take_forces,
            "empty": self._take_empty,
        }[total.header.step]
        return take(cohort, state, total)

    def _take_rule(self, cohort: Cohort, state: SetupState, total: Total) -> Decision[SetupState]:
        log_theta = total.number("log_theta") / total.n_silos - float(np.log(self.cost_unit))
        return self._at_theta(state, DegreeSearch(log_theta), {})

    def _at_theta(self, state: SetupState, search: DegreeSearch, record: dict[str, float]) -> Decision[SetupState]:
        theta = float(np.exp(search.log_theta))
        state = replace(state, search=search, theta=theta, solves=state.solves + 1)
        return Decision(state=state, step="degree", parts={"theta": theta}, record=record)

    def _take_degree(self, cohort: Cohort, state: SetupState, total: Total) -> Decision[SetupState]:
        assert self.degree is not None
        assert state.search is not None
        got, n_nodes = total.number("degree") / total.n_silos, cohort.pairs.n_nodes
        off = abs(got - self.degree)
        record = {"theta": state.theta, "degree": got}
        search = replace(state.search)
        if state.degree is None or off < abs(state.degree - self.degree):
            state = replace(state, degree=got, best_theta=state.theta)
        # Edges are whole: half an edge off in each silo is as near as any graphs can be
        near = max(DEGREE_TOL * self.degree, (1 + 1e-9) / n_nodes / total.n_silos)
        going_on = off > near and state.solves < MAX_DEGREE_SOLVES
        if going_on and search.advance(float(np.log(max(got, 1 / n_nodes) / self.degree))):
            return self._at_theta(state, search, record)
        assert state.degree is not None
        reached = abs(state.degree - self.degree) <= max(DEGREE_PROMISE * self.degree, near)
        alpha, beta = 1 / state.best_theta, 1 / (2 * state.best_theta)
        state = replace(state, alpha=alpha, beta=beta, degree_reached=bool(reached))
        return Decision(state=state, step="costs", record=record)

    def _take_costs(self, cohort: Cohort, state: SetupState, total: Total) -> Decision[SetupState]:
        state = replace(state, cost=total.vector("cost"), count=count_of(cohort, total))
        if self.coupling is None:
            return self._end(cohort, replace(state, rho=self.rho or 0.0, lam=self.lam or 0.0), {})
        pooled = self._pooled(cohort, state, lam=0.0)
        parts: Parts = {"u": pooled, "alpha": state.alpha, "beta": state.beta}
        return Decision(state=replace(state, pooled=pooled), step="forces", parts=parts)

    def _take_forces(self, cohort: Cohort, state: SetupState, total: Total) -> Decision[SetupState]:
        assert self.coupling is not None
        assert state.pooled is not None
        reference = float(np.sqrt(total.number("force_square") / total.n_silos))
        alike = reference <= ALIKE * 4 * state.beta * np.sqrt(dot(state.pooled, state.pooled))
        rho = 0.0 if alike else self.coupling * reference
        state, record = replace(state, rho=rho, alike=bool(alike)), {"rho": rho}
        if rho == 0 or self.sparsity == 0:
            return self._end(cohort, state, record)
        parts: Parts = {"rho": rho, "alpha": state.alpha, "beta": state.beta}
        return Decision(state=state, step="empty", parts=parts, record=record)

    def _take_empty(self, cohort: Cohort, state: SetupState, total: Total) -> Decision[SetupState]:
        assert self.sparsity is not None
        force = total.vector("force")
        if state.count is not None:
            force = cohort.n_silos * mean_over(force, state.count)
        largest = float(force.max())
        state = replace(state, lam_largest=largest, lam=self.sparsity * max(largest, 0.0))
        return self._end(cohort, state, {"rho": state.rho, "lam": state.lam})

    def _end(self, cohort: Cohort, state: SetupState, record: dict[str, float]) -> Decision[SetupState]:
        if 0 < state.lam >= state.lam_largest:  # the optimal consensus is known: it is empty
            pooled = np.zeros(cohort.pairs.size)
        else:
            pooled = self._pooled(cohort, state, lam=state.lam)
        parameters = ModelParameters(
            n_silos=cohort.n_silos,
            alpha=state.alpha,
            beta=state.beta,
            zeta=self.zeta,
            rho=state.rho,
            lam=state.lam,
            alike=state.alike,
            pooled=pooled,
            degree=state.degree,
            degree_reached=state.degree_reached,
            cost_unit=self.cost_unit,
            cost_sum=state.cost,
            count=state.count,
        )
        return Decision(outcome=parameters, record=record)

    def _pooled(self, cohort: Cohort, state: SetupState, *, lam: float) -> Vector:
        """The optimum of all silos' data together, each silo counting alike: the start, and the fully fused graph."""
        assert state.cost is not None
        sums = CostSum.of(cohort.pairs, state.cost, float(cohort.n_silos) if state.count is None else state.count)
        return sums.solve(alpha=state.alpha, beta=state.beta, zeta=self.zeta, shift=lam / cohort.n_silos).u


def terms_of(silo: Silo, missing_nodes: bool) -> Parts:
    """The silo's terms of the pooled costs; where nodes may be missing, also that it has the pairs it has."""
    count = {"count": np.ones(silo.pairs.size)} if missing_nodes else {}
    return {"cost": silo.cost, **count}


class SetupMethod(Method, Protocol):
    """An exchange that finds the model's parameters; what it was asked for goes into the record."""

    @property
    def degree(self) -> float | None:
        """The degree asked for; None where α and β were given."""

    @property
    def coupling(self) -> float | None:
        """The coupling asked for."""

    @property
    def sparsity(self) -> float | None:
        """The sparsity asked for."""

    def check_scalars(self, kept: Sequence[Any], scalars: Mapping[str, float], n_silos: int) -> None:
        """Raise ScalarsError unless what an owner's silos were asked, and so kept, can lead to these parameters."""


def build_setup(settings: StudySettings, pairs: Pairs, fixed: FixedModel | None = None) -> SetupMethod:
    """The set-up exchange that the settings call for, or the one that is left to do with the parameters known."""
    own = spec_of(settings.method).setup
    if fixed is not None:
        settings = replace(settings, degree=None, alpha=fixed.alpha, beta=fixed.beta)
    if own is not None:
        return own(settings, pairs)
    usual = _usual_setup(settings, pairs)
    return usual if fixed is None else replace(usual, coupling=None, sparsity=None, rho=fixed.rho, lam=fixed.lam)


def degree_asked(settings: StudySettings, pairs: Pairs) -> float | None:
    """The degree given, or the usual one; None where α and β were given."""
    if settings.alpha is not None:
        return settings.degree
    degree = several_silos_degree(pairs) if settings.degree is None else settings.degree
    check_degree(degree, pairs)
    return degree


def several_silos_degree(pairs: Pairs) -> float:
    """The degree of each silo alone, where none is asked for: 8, and never over half of what is possible."""
    return min(USUAL_DEGREE, max(1.0, pairs.size / pairs.n_nodes))


def _usual_setup(settings: StudySettings, pairs: Pairs) -> Setup:
    coupling = sparsity = None
    asked = settings.coupling
    if isinstance(asked, str):
        raise ParameterError(
            "coupling: 'auto' tries couplings on rows that silos hold out, for which all must be in one process. Give "
            "a number, or use method 'oneshot', whose silos choose at home."
        )
    if settings.is_coupled and settings.nu is None:
        coupling = DEFAULT_COUPLING if asked is None else asked
        sparsity = DEFAULT_SPARSITY if settings.sparsity is None else settings.sparsity
    rho = None if settings.nu is None or settings.lam is None else settings.nu * settings.lam
    return Setup(
        degree=degree_asked(settings, pairs),
        alpha=settings.alpha,
        beta=settings.beta,
        coupling=coupling,
        sparsity=sparsity,
        rho=rho,
        lam=settings.lam,
        zeta=settings.zeta_used,
        cost_unit=settings.cost_unit_used,
        missing_nodes=settings.may_lack_nodes,
    )


def build_silo_method(settings: StudySettings, scalars: Mapping[str, float], pairs: Pairs, n_silos: int) -> Method:
    """The method as a silo makes it, from the numbers of set-up that it is told."""
    parameters = ModelParameters(
        n_silos=n_silos,
        alpha=scalars["alpha"],
        beta=scalars["beta"],
        zeta=settings.zeta_used,
        pooled=np.zeros(pairs.size),
        rho=scalars["rho"],
        lam=scalars["lam"],
        alike=bool(scalars["alike"]),
        cost_unit=settings.cost_unit_used,
    )
    return spec_of(settings.method).build(settings, parameters)
