"""One sum is enough: the consensus from the sum of all silos' costs, every silo's own graph at home.

    consensus   u   = argmin over u ≥ 0 of Σ_i g_i(u) + λ 1ᵀu                  from z̄ = Σ_i z_i/N_i alone
    personal    w_i = argmin over w ≥ 0 of g_i(w) + (μ_i/2)‖w − u‖²            at home; nothing is sent

One sum goes up, and down again; everybody solves for u. It is the exact form of Ditto (Li et al. 2021), with a pull of
each silo's own, which it chooses by held-out rows (common/personal.py). α and β are such that the pooled graph has the
degree asked for; λ/I = sparsity · (the median of the pooled costs).

With two or three sums, silos near the consensus count more, by weights γ_i computed at home: Σ γ_i z_i/N_i and Σ γ_i.
That is for open studies only: the difference of two sums may show one silo (docs/explanation/threat-model.md).

Where silos lack nodes, both sums are pair by pair, over those who have the pair (common/pooling.py). Everybody receives
them whole and solves for u on all nodes; a silo's own graph is on its own ones.

With ε the sum carries noise, and everything that others learn is made of it. Rows are of bounded length, at home too.

The certificate is the pooled problem's, which everybody can check; a personal graph's own stays with its silo.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import distance
from silograph.data.blocks import MOST_NUMBERS, N_BLOCKS
from silograph.errors import ProtocolError, SignalError
from silograph.graph.pairs import Pairs
from silograph.local.degree import DEGREE_TOL, find_theta, mean_degree, problem_at
from silograph.local.problem import LocalProblem
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.personal import Others, held_out_losses, personal_graph
from silograph.methods.common.pooling import CostSum, count_of
from silograph.methods.common.registry import MethodSpec, Solver
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import COSTS_AND_COUNT, ModelParameters, degree_asked, terms_of
from silograph.methods.common.setup_checks import ScalarsError
from silograph.protocol.messages import COSTS, FLAG, NOISY_COSTS, NUMBER, Field, Parts, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, Outcome, States, report_on
from silograph.protocol.silo import Silo, SiloState
from silograph.protocol.units import Units

# γ = 1/(distance² + ε), as means weigh by 1/variance; the paper's 1/distance turns fewer away. In brackets the mean
# F-score of the consensus from two / three sums, tuned, over 30 seeds: in the eight scenarios of Tables I to III; and
# in four where one or two of five silos are unrelated to the rest. As it stands .711/.709; .728/.746.
# One sum has .710; .675. On 30 seeds that had no part in the choice: .708/.704; .725/.741, and one sum .706; .680.
WEIGHING_POWER = 2  # [1: .713/.713; .704/.715]
# Of all silos alike, in units of 4β: [0: .712/.711; .709/.718, 1: .712/.710; .719/.735, 10: .710/.706; .736/.755,
# 1000, where the distance is the force on the silo: .706/.696; .739/.747]
WEIGHING_PULL = 3.0
ONE_EDGE = 2  # of the degrees' sum

SUM_STEPS = MappingProxyType({"costs": Step(down={}, up={"cost": COSTS})})
NOISY_SUM_STEPS = MappingProxyType({"costs": Step(down={}, up={"cost": NOISY_COSTS})})
SUM_STEPS_OF_SOME = MappingProxyType({"costs": COSTS_AND_COUNT})
WHOLE = Field("pairs", nonnegative=True, whole=True)


def steps_of(missing_nodes: bool) -> Mapping[str, Step]:
    """The exchanges; where silos may lack nodes, weights are pair by pair."""
    down = {"cost": WHOLE, "weight": WHOLE if missing_nodes else NUMBER}  # Σ γ_i c_i and Σ γ_i
    kind: Literal["pairs", "number"] = "pairs" if missing_nodes else "number"
    up = {"cost": Field("pairs", "cost", nonnegative=True), "weight": Field(kind, nonnegative=True)}  # γ has no unit
    return MappingProxyType({"weigh": Step(down=down, up=up), "personal": Step(down=down, up={"silos": FLAG})})


STEPS, STEPS_OF_SOME = steps_of(missing_nodes=False), steps_of(missing_nodes=True)


# --- the sum ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SumSent:
    """What a silo keeps of the set-up: that its term has left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSum:
    """The set-up: one sum, from which all parameters follow."""

    name: ClassVar[str] = "setup"
    states: ClassVar[States] = States(silo=SumSent, outcome=ModelParameters)
    coupling: ClassVar[None] = None

    settings: StudySettings
    degree: float | None

    @property
    def steps(self) -> Mapping[str, Step]:
        """Every kind of exchange."""
        if self.settings.privacy.noisy:
            return NOISY_SUM_STEPS
        return SUM_STEPS_OF_SOME if self.settings.may_lack_nodes else SUM_STEPS

    @property
    def sparsity(self) -> float:
        """The sparsity given, or none."""
        return self.settings.sparsity or 0.0

    def units(self, task: Task) -> Units:
        return Units(cost=self.settings.cost_unit_used)

    def local(self, silo: Silo, state: SiloState[SumSent], task: Task) -> Answer[SumSent]:
        if state.own is not None:
            raise ProtocolError("expected to be asked for one sum, got a second request.")
        return Answer(parts=terms_of(silo, self.settings.may_lack_nodes), state=SumSent())

    def check_scalars(self, kept: Sequence[SumSent], scalars: Mapping[str, float], n_silos: int) -> None:
        """What comes from the sum is checked with the sum (`OneShot`); nothing couples the silos."""
        if not kept:
            raise ProtocolError("expected to be asked for the sum first.")
        if scalars["rho"] or scalars["alike"]:
            raise ScalarsError(f"rho, alike: expected 0 of one-shot, got {scalars['rho']:g}, {scalars['alike']:g}.")

    def begin(self, cohort: Cohort) -> Decision[None]:
        return Decision(step="costs")

    def merge(self, cohort: Cohort, state: None, total: Total) -> Decision[None]:
        count, cost = count_of(cohort, total), total.vector("cost")
        if self.settings.privacy.noisy:
            cost = np.maximum(cost, 0.0)  # noise may bring sums of squares below zero; nothing exact is used to mend it
        model = pooled_model(self.settings, cost, cohort.pairs, cohort.n_silos, count)
        return Decision(outcome=model, record={"alpha": model.alpha, "beta": model.beta, "lam": model.lam})


def pooled_model(
    settings: StudySettings, cost_sum: Vector, pairs: Pairs, n_silos: int, count: Vector | None = None
) -> ModelParameters:
    """The parameters that the sum calls for, and the consensus; `count` is how many silos have a pair, if not all."""
    sums, zeta = CostSum.of(pairs, cost_sum, float(n_silos) if count is None else count), settings.zeta_used
    mean = sums.mean
    degree, reached, alpha, beta = degree_asked(settings, pairs), True, settings.alpha, settings.beta
    got = None
    if alpha is None or beta is None:
        assert degree is not None
        found = find_theta(mean, sums.pairs, degree, zeta=zeta, solver=solve_to_rounding, start=None)
        alpha, beta = found.problem.alpha, float(found.problem.quadratic / 4)
        got, reached = found.degree, found.reached
    lam = n_silos * (settings.sparsity or 0.0) * float(np.median(mean))
    return ModelParameters(
        n_silos=n_silos,
        alpha=alpha,
        beta=beta,
        zeta=zeta,
        pooled=sums.solve(alpha=alpha, beta=beta, zeta=zeta, shift=lam / n_silos).u,
        lam=lam,
        degree=got,
        degree_reached=reached,
        cost_unit=settings.cost_unit_used,
        cost_sum=cost_sum,
        count=count,
    )


def check_sum(
    settings: StudySettings, model: ModelParameters, cost: Vector, weight: float | Vector, pairs: Pairs
) -> None:
    """Raise in a silo unless the parameters are those that the sum calls for: nothing else was agreed on."""
    n_silos, count = model.n_silos, weight if isinstance(weight, np.ndarray) else None
    alike = weight == n_silos if count is None else ((count == np.round(count)) & (count <= n_silos)).all()
    if not alike:
        raise ProtocolError(f"expected a sum in which {n_silos} silos count alike, got {np.max(weight):g}.")
    due = pooled_model(settings, cost, pairs, n_silos, count)
    if abs(model.lam - due.lam) > 1e-9 * due.lam:
        raise ScalarsError(f"lam: expected {due.lam:g}, which the sum calls for, got {model.lam:g}.")
    near = (model.alpha, model.beta) == (due.alpha, due.beta)
    if not near and not _is_as_near(settings, model, due, CostSum.of(pairs, cost, weight), pairs):
        expected, got = f"{due.alpha:g}, {due.beta:g}", f"{model.alpha:g}, {model.beta:g}"
        raise ScalarsError(f"alpha, beta: expected {expected}, which the sum calls for, got {got}.")


def _is_as_near(
    settings: StudySettings, model: ModelParameters, due: ModelParameters, sums: CostSum, pairs: Pairs
) -> bool:
    """Whether α and β serve the degree as well as those found here: machines round differently, and ties jump."""
    asked = degree_asked(settings, pairs)
    if asked is None or due.degree is None or abs(model.beta - model.alpha / 2) > 1e-9 * model.beta:
        return False
    problem = problem_at(1 / model.alpha, sums.mean, sums.pairs, model.zeta)
    got = mean_degree(problem, solve_to_rounding(problem, None).w)
    return abs(got - asked) <= abs(due.degree - asked) + ONE_EDGE / pairs.n_nodes + DEGREE_TOL * asked


def conclude(settings: StudySettings, model: ModelParameters, sums: CostSum) -> Decision[Any]:
    """The end of a study: the pooled graph of the sums, with its certificate."""
    found = model.pooled_optimum(sums)
    objective, converged = model.n_silos * found.value, bool(found.gap <= settings.tol)
    outcome = Outcome(consensus=found.u, objective=objective, gap=found.gap, converged=converged)
    return Decision(outcome=outcome, record={"objective": objective, "gap": found.gap})


# --- the method -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShotSilo:
    """What a silo keeps."""

    weight: float  # γ by which its costs are in the sum


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneShotState:
    """What the coordinator keeps."""

    cost: Vector  # Σ γ_i c_i
    weight: float | Vector  # Σ γ_i: one number, or one per pair where silos may lack some


@dataclass(frozen=True, slots=True)
class OneShot:
    """The method."""

    name: ClassVar[str] = "oneshot"
    states: ClassVar[States] = States(silo=OneShotSilo, coordinator=OneShotState)

    settings: StudySettings
    model: ModelParameters

    @property
    def steps(self) -> Mapping[str, Step]:
        """With one sum, nothing is asked after it but whether it came back."""
        steps = STEPS_OF_SOME if self.settings.may_lack_nodes else STEPS
        return steps if self.settings.sums > 1 else {"personal": steps["personal"]}

    def units(self, task: Task) -> Units:
        return self.model.units

    # --- the silo's half ----------------------------------------------------------------------------------------------

    def local(self, silo: Silo, state: SiloState[OneShotSilo], task: Task) -> Answer[OneShotSilo]:
        cost, total, last = task.vector("cost"), task.parts["weight"], task.header.round == self.settings.sums
        if (task.header.step == "personal") != last or task.header.round > self.settings.sums:
            raise ProtocolError(
                f"expected {self.settings.sums} sums, as the study says, got a {task.header.step!r} step."
            )
        if state.own is None:
            check_sum(self.settings, self.model, cost, total, silo.study_pairs)
        own = OneShotSilo(weight=1.0) if state.own is None else state.own
        least = float(np.min(silo.take(total) if isinstance(total, np.ndarray) else total))
        if not least >= own.weight:
            raise ScalarsError(f"weight: expected at least this silo's own {own.weight:g} in the sum, got {least:g}.")
        sums = CostSum.of(silo.study_pairs, cost, total)
        u = silo.take(self.model.pooled_optimum(sums).u)
        problem = self.model.problem(silo)
        if task.header.step == "weigh":
            return self._weigh(silo, problem, u, state.start)
        given = self.settings.pull
        pull, losses = self._choose(silo, problem, own, sums) if given is None else (given, {})
        solution = personal_graph(problem, u, pull * 4 * self.model.beta, state.start)
        evidence = {"pull": pull, "weight": own.weight, "gap": solution.gap / problem.scale(solution.primal), **losses}
        evidence |= report_on(silo, solution.w, u)  # for its own people: beside the sum, nothing is told
        return Answer(parts={"silos": 1.0}, state=own, graph=solution.w, evidence=evidence)

    def _weigh(self, silo: Silo, problem: LocalProblem, u: Vector, start: Vector | None) -> Answer[OneShotSilo]:
        """γ from the silo's graph under a pull common to all, free of units, and the term by which it then counts."""
        w = personal_graph(problem, u, WEIGHING_PULL * 4 * self.model.beta, start).w
        far = distance(w, u) / np.sqrt(self.model.alpha / (4 * self.model.beta))
        far *= float(np.sqrt(silo.study_pairs.n_nodes / silo.pairs.n_nodes))  # squares add up node by node
        gamma = float(1 / (far**WEIGHING_POWER + self.settings.gamma_epsilon))
        weight = np.full(silo.pairs.size, gamma) if self.settings.may_lack_nodes else gamma
        return Answer(parts={"cost": gamma * silo.cost, "weight": weight}, state=OneShotSilo(weight=gamma))

    def _choose(
        self, silo: Silo, problem: LocalProblem, own: OneShotSilo, sums: CostSum
    ) -> tuple[float, dict[str, float]]:
        """The pull with the least loss on held-out rows, and the losses."""
        assert silo.blocks is not None
        shift = self.model.lam / self.model.n_silos
        others = Others.of(sums, silo.cost, silo.place, weight=own.weight, shift=shift)
        losses = held_out_losses(problem, silo.blocks, others)
        return min(losses, key=lambda pull: losses[pull]), {f"loss at {pull:g}": loss for pull, loss in losses.items()}

    # --- the coordinator's half ---------------------------------------------------------------------------------------

    def begin(self, cohort: Cohort) -> Decision[OneShotState]:
        assert self.model.cost_sum is not None
        return self._ask(OneShotState(cost=self.model.cost_sum, weight=self.model.weight), 1)

    def merge(self, cohort: Cohort, state: OneShotState, total: Total) -> Decision[OneShotState]:
        if total.header.step == "weigh":
            state = OneShotState(cost=total.vector("cost"), weight=total.parts["weight"])
            return self._ask(state, total.header.round + 1)
        return conclude(self.settings, self.model, CostSum.of(cohort.pairs, state.cost, state.weight))

    def _ask(self, state: OneShotState, number: int) -> Decision[OneShotState]:
        """Down goes the sum: for further weights, or for the silos' own graphs."""
        parts: Parts = {"cost": state.cost, "weight": state.weight}
        step = "weigh" if number < self.settings.sums else "personal"
        return Decision(state=state, step=step, parts=parts)


def check_silo(settings: StudySettings, silo: Silo) -> None:
    """Raise, before anything is sent, for a silo that cannot choose its pull."""
    if settings.pull is None and silo.blocks is None:
        raise SignalError(
            f"{silo.name}: a silo chooses its pull by rows that it holds out, and here are none: distances were "
            f"precomputed, or there are more than {MOST_NUMBERS // N_BLOCKS} pairs. Give pull, such as pull=1."
        )


METHOD = MethodSpec(
    about="The consensus is the pooled graph, learned from one sum; each silo drew its own graph towards it at home.",
    build=OneShot,
    newton=Solver(
        settings=frozenset({"pull", "sparsity", "sums", "gamma_epsilon", "missing_nodes"}),
        degree_of="the graph of all silos together",
        consensus="pooled",
    ),
    setup=lambda settings, pairs: OneSum(settings=settings, degree=degree_asked(settings, pairs)),
    blocks=True,
    one_sum=True,
    check_silo=check_silo,
)
