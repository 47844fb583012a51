"""The exact optimum of the paper's model, in every regime, with a certificate from sums alone.

    minimise   Σ_i [g_i(w_i) + ρ‖w_i − u‖] + λ 1ᵀu      over w_i, u ≥ 0

With φ_i(u) = min over w of g_i(w) + ρ‖w − u‖ this is min Σ φ_i(u) + λ1ᵀu. Douglas-Rachford splitting solves it with one
sum per round. Silo i keeps a point s_i and a metric m_i (one number per pair):

    coordinator   u = (Σ m_i s_i − λ)₊ / Σ m_i
    silo          u_i = argmin φ_i(u') + ½‖u' − (2u − s_i)‖²_{m_i}    (local/prox.py)   force v_i = m_i (u_i − 2u + s_i)
                  s_i ← s_i + r (u_i − u)

Three things make it take few rounds. *The metric is each silo's own curvature, pair by pair* (common/splitting.py): an
edge that the silo does not have resists with the strength of its pull, one that it has with its own curvature; with the
exact Hessian one round would do. It is learned in the first rounds, then kept. *Anderson's acceleration* (mixing.py)
takes over from there; its Gram matrix is a sum too. *The start* is the pooled optimum, at which the fully fused problem
is solved already. Where u drifts, as between two silos, a detour finds how far it will go (common/sliding.py).

Where silos lack nodes, u above is its part on a silo's own pairs, sums at a pair are over those who have it, and so is
its penalty, λ_e = λ n_e/I for n_e of I silos.

What the coordinator sees: Σ m_i, Σ m_i s_i, Σ v_i, and sums of numbers; where silos lack nodes also how many of those
that have a pair are fused; of two silos, on a detour, both graphs. Otherwise who is fused, γ_i and all graphs stay in
the silos.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Matrix, Vector
from silograph.methods.common.bounds import DUAL_FIELDS, dual_bound, missing_share
from silograph.methods.common.mixing import coefficients, extend_gram
from silograph.methods.common.quadratic import QuadraticCoupling
from silograph.methods.common.registry import COUPLING_SETTINGS, MethodSpec, Solver
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.methods.common.sliding import FRACTIONS, FURTHER, WORTH, Drift, along, find_way
from silograph.methods.common.splitting import SiloHalf, SplittingSilo
from silograph.methods.independent import Independent
from silograph.methods.pooled import Pooled
from silograph.protocol.fixed import Rounding
from silograph.protocol.messages import (
    FLAG,
    FORCE,
    HAS,
    LIST,
    NUMBER,
    NUMBER_NONNEGATIVE,
    OBJECTIVE,
    PAIRS,
    PAIRS_NONNEGATIVE,
    Field,
    Step,
    Task,
    Total,
)
from silograph.protocol.method import Answer, Cohort, Decision, Method, Outcome, States
from silograph.protocol.silo import Silo, SiloState
from silograph.protocol.units import Units

# Behind each, in brackets, the mean number of rounds to 1e-6 with other values, on the 116 instances of
# testing/silo_problems.py with at most 40 nodes; as it stands it is 8.8, at most 21. All were certified.
FEWEST = 4  # rounds in which the metric is learned [5: 9.0]
LEARNED = 3e-3  # gap at which it is [1e-2: 8.8, but with 1000 nodes 36 rounds instead of 29; 1e-3: 9.0]
ADAPTING = 12  # the most rounds of that
ANEW = 4  # rounds in which it is learned anew; with 2, some data whose amplitudes span decades were not certified
HISTORY = 20  # points that are mixed
HISTORY_NUMBERS = 5_000_000  # numbers that a silo keeps, and a site writes, for mixing; if need be fewer points are
SHORTEST = 5  # but not fewer than these [with 5 silos of 3000 nodes 36 rounds; 2: 41]
AGAIN = 15  # rounds after which the metric is learned anew, unless the gap has fallen tenfold
NEAR = 3.0  # times the tolerance: a round expected to end there is treated as the last
RESTART = 2.0  # growth of the residual at which mixing starts anew
ACCURACY = 1e-2  # times the last gap: of forces. Nothing changes down to 1e-4 but for time
ROUGHEST = 1e-4  # accuracy, where the gap is larger or not known

PRODUCTS = Field("list", "energy", one_longer_than="mixing")
METRIC = Field("pairs", "curvature", nonnegative=True)
DOWN = {
    "u": PAIRS_NONNEGATIVE,
    "share": PAIRS,  # of what the forces miss
    "fused": NUMBER_NONNEGATIVE,  # how many silos are, who then take the shares
    "accuracy": NUMBER_NONNEGATIVE,  # of the forces
    "slide": NUMBER,  # how far to go the way that was probed
    "adopt": NUMBER,  # whether to adopt the metric last proposed
    "last": NUMBER,  # whether this round may be the last
}
STEPPED = {"primal": OBJECTIVE, "fused": FLAG, "target": Field("pairs", "slope"), "force": FORCE}
STEPS = MappingProxyType(
    {
        "start": Step(down={"u": PAIRS_NONNEGATIVE}, up=STEPPED | {"metric": METRIC}),
        "adapt": Step(down=DOWN, up=DUAL_FIELDS | STEPPED | {"metric": METRIC}),
        "mix": Step(down=DOWN | {"mixing": LIST}, up=DUAL_FIELDS | STEPPED | {"products": PRODUCTS}),
        "close": Step(down={"u": PAIRS_NONNEGATIVE}, up={"primal": OBJECTIVE, "fused": FLAG}),
    }
)
DETOUR = {
    "look": Step(
        down={"u": PAIRS_NONNEGATIVE},
        up={
            "apart": Field("pairs", "weight"),
            "tilted": Field("pairs", "weight"),
            "tilt": NUMBER,
            "tilt_square": NUMBER_NONNEGATIVE,
        },
    ),
    "probe": Step(
        down={"u": PAIRS_NONNEGATIVE, "way": PAIRS}, up={"ahead": Field("list", "energy", rounding=Rounding.UP)}
    ),
}
# Where silos may lack nodes, the fused ones are counted pair by pair
STEPS_OF_SOME = {
    name: Step(
        down={**step.down, **({"fused": PAIRS_NONNEGATIVE} if "fused" in step.down else {})},
        up={**step.up, **({"fused_at": HAS} if "target" in step.up else {})},
    )
    for name, step in STEPS.items()
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplittingState:
    """What the coordinator keeps."""

    u: Vector
    best_u: Vector
    best_primal: float = np.inf
    round: int = 0
    dual: float = -np.inf
    gap: float = np.inf
    last: bool = False  # whether the round asked for may be the last
    metric: Vector | None = None  # Σ m_i
    gram: Matrix | None = None  # of the residuals that are mixed
    targets: tuple[Vector, ...] = ()
    residual: float = np.inf
    adapting: int = ADAPTING  # the last round of the metric's learning
    check: int = ADAPTING + AGAIN  # when to look whether that was enough
    gap_then: float = np.inf
    u_before: Vector | None = None  # of the round before
    drift: Drift = field(default_factory=Drift)
    detour: "Detour | None" = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Detour:
    """What is asked after a detour, and what the last round was."""

    state: SplittingState
    step: str
    parts: Mapping[str, Vector | float]
    record: Mapping[str, float]
    u: Vector
    target: Vector
    metric: Vector
    missing: Vector  # λ − Σ v
    way: Vector | None = None


@dataclass(frozen=True, slots=True)
class ExactSplitting:
    """The exact method."""

    name: ClassVar[str] = "exact"
    states: ClassVar[States] = States(silo=SplittingSilo, coordinator=SplittingState)

    settings: StudySettings
    model: ModelParameters  # with ρ > 0

    @property
    def steps(self) -> Mapping[str, Step]:
        """Every kind of exchange."""
        steps = STEPS_OF_SOME if self.settings.may_lack_nodes else STEPS
        return {**steps, **DETOUR} if self.model.n_silos == 2 else steps

    def units(self, task: Task) -> Units:
        return self.model.units

    def local(self, silo: Silo, state: SiloState[SplittingSilo], task: Task) -> Answer[SplittingSilo]:
        half = SiloHalf(model=self.model, problem=self.model.problem(silo), counted=self.settings.may_lack_nodes)
        u = task.vector("u")
        match task.header.step:
            case "start":
                return half.start(u, state.start)
            case "close":
                return half.close(u, silo, state.kept)
            case "look":
                return half.look(u, state.kept)
            case "probe":
                return half.probe(u, task.vector("way"), state.kept)
            case _:
                return half.step(u, silo, state.kept, task)

    def begin(self, cohort: Cohort) -> Decision[SplittingState]:
        start = self.model.pooled if self.model.start is None else self.model.start
        return Decision(state=SplittingState(u=start, best_u=start), step="start", parts={"u": start})

    def merge(self, cohort: Cohort, state: SplittingState, total: Total) -> Decision[SplittingState]:
        before, step = state.gap, total.header.step
        if step == "look":
            return self._probe(state, total)
        if step == "probe":
            return self._slide(cohort, state, total)
        dual = max(state.dual, dual_bound(total)) if step in ("adapt", "mix") else state.dual
        primal = total.number("primal") + self._penalty(state.u)
        gap = self.model.gap(primal, dual, cohort)
        state = replace(state, round=state.round + 1, dual=dual, gap=gap)
        record = {"objective": primal, "bound": dual, "gap": gap, "fused": total.number("fused")}
        if primal < state.best_primal:
            state = replace(state, best_primal=primal, best_u=state.u)
        converged = bool(gap <= self.settings.tol)
        if step == "close" or (converged and state.last):
            outcome = Outcome(consensus=state.u, objective=primal, gap=gap, converged=converged)
            return Decision(outcome=outcome, record=record)
        best_will_do = self.model.gap(state.best_primal, dual, cohort) <= self.settings.tol
        if best_will_do or state.round >= self.settings.rounds_used - 1:
            state = replace(state, u=state.best_u)
            return Decision(state=state, step="close", parts={"u": state.u}, record=record)
        # The gap falls by about as much as it just did: if that would do, this is to be the last round
        last = bool(gap * min(gap / before, 1.0) <= NEAR * self.settings.tol) if np.isfinite(before) else False
        usual = self._next(cohort, replace(state, last=last), total, record)
        if step == "start" or self.model.n_silos != 2:
            return usual
        return self._consider_detour(state, usual, total, fallen=gap / before)

    def _penalty(self, u: Vector) -> float:
        share = 1.0 if self.model.count is None else self.model.count / self.model.n_silos
        return self.model.lam * float((share * u).sum())

    def _next(
        self, cohort: Cohort, state: SplittingState, total: Total, record: dict[str, float]
    ) -> Decision[SplittingState]:
        target, step = total.vector("target"), total.header.step
        state = self._look_back(state)
        adapting = state.round <= state.adapting
        mixing = np.zeros(0)
        if step == "mix" and not adapting:
            state, target, mixing = self._mix(state, target, total.vector("products"))
        metric = total.vector("metric") if step == "start" or state.metric is None else state.metric
        u = self._consensus_of(target, metric)
        state = replace(state, u=u, u_before=state.u, metric=total.vector("metric") if step == "adapt" else metric)
        fused, n_sharing = self._sharing(cohort, total)
        share = missing_share(total.vector("force"), u, lam=self.model.penalty, n_sharing=n_sharing)
        parts: dict[str, Vector | float] = {
            "u": u,
            "share": share,
            "fused": fused,
            "accuracy": ROUGHEST if np.isinf(state.gap) else min(ACCURACY * state.gap, ROUGHEST),
            "slide": 0.0,
            "adopt": float(step == "adapt"),
            "last": float(state.last),
        }
        if adapting:
            return Decision(state=state, step="adapt", parts=parts, record=record)
        return Decision(state=state, step="mix", parts=parts | {"mixing": mixing}, record=record)

    def _consider_detour(
        self, state: SplittingState, usual: Decision[SplittingState], total: Total, *, fallen: float
    ) -> Decision[SplittingState]:
        """Look for a way if u drifts; otherwise ask as usual."""
        assert usual.state is not None
        assert usual.step is not None
        assert state.metric is not None
        missing = missing_share(total.vector("force"), state.u, lam=self.model.penalty, n_sharing=1.0)
        drift = state.drift.after(missing, fallen=fallen, fused=total.number("fused"))
        after = replace(usual.state, drift=drift)
        if not drift.is_long or state.round + 3 >= self.settings.rounds_used:  # a detour, and a round that ends
            return replace(usual, state=after)
        detour = Detour(
            state=after,
            step=usual.step,
            parts=usual.parts,
            record=usual.record,
            u=state.u,
            target=total.vector("target"),
            metric=state.metric,
            missing=missing,
        )
        return Decision(state=replace(state, detour=detour), step="look", parts={"u": state.u}, record=usual.record)

    def _probe(self, state: SplittingState, total: Total) -> Decision[SplittingState]:
        detour = state.detour
        assert detour is not None
        apart, tilted = total.vector("apart"), total.vector("tilted")
        way = find_way(apart, tilted, total.number("tilt"), total.number("tilt_square"), detour.missing)
        if way is None:
            assert state.u_before is not None
            way = FURTHER * (detour.u - state.u_before)
        state = replace(state, round=state.round + 1, detour=replace(detour, way=way))
        return Decision(state=state, step="probe", parts={"u": detour.u, "way": way}, record=detour.record)

    def _slide(self, cohort: Cohort, state: SplittingState, total: Total) -> Decision[SplittingState]:
        """Go on as before the detour, from the best point of its way."""
        detour = state.detour
        assert detour is not None
        assert detour.way is not None
        penalties = [self._penalty(point) for point in along(detour.u, detour.way)]
        values = total.vector("ahead") + np.array(penalties)
        best = int(values.argmin())
        gain = (values[0] - values[best]) / self.model.scale(values[0], cohort)
        worth = bool(gain > WORTH * state.gap)
        asked = detour.state
        asked = replace(
            asked,
            round=state.round + 1,
            adapting=asked.adapting + 2,
            check=asked.check + 2,
            drift=asked.drift.ended(worth=worth),
        )
        parts: dict[str, Vector | float] = dict(detour.parts)
        if worth:
            slide = float(FRACTIONS[best])
            u = self._consensus_of(detour.target + slide * detour.metric * detour.way, detour.metric)
            asked = replace(asked, u=u, gram=None, targets=(), residual=np.inf)
            parts |= {"u": u, "slide": slide}
            if "mixing" in parts:  # what was mixed lies elsewhere
                parts["mixing"] = np.zeros(0)
        return Decision(state=asked, step=detour.step, parts=parts, record=detour.record)

    def _consensus_of(self, target: Vector, metric: Vector) -> Vector:
        wanted = np.maximum(target - self.model.penalty, 0.0)
        return np.divide(wanted, metric, out=np.zeros_like(wanted), where=metric > 0)  # nobody has the others

    def _sharing(self, cohort: Cohort, total: Total) -> tuple[float | Vector, float | Vector]:
        """How many silos are fused, and how many share what the forces miss; pair by pair where some lack nodes."""
        if self.model.count is None:
            fused = total.number("fused")
            return fused, fused or cohort.n_silos
        at = total.vector("fused_at")
        return at, np.maximum(np.where(at > 0, at, self.model.count), 1.0)

    def _look_back(self, state: SplittingState) -> SplittingState:
        """Is the metric learned? And every so often: has the gap fallen? If it hardly has, it is learned anew."""
        if FEWEST <= state.round < state.adapting and np.isinf(state.gap_then) and state.gap <= LEARNED:
            return replace(state, adapting=state.round - 1, check=state.round + AGAIN, gap_then=state.gap)
        if state.round != state.check:
            return state
        stalled = state.gap > 0.1 * state.gap_then
        state = replace(state, gap_then=state.gap, check=state.round + AGAIN)
        if not stalled:
            return state
        return replace(state, adapting=state.round + ANEW, gram=None, targets=(), residual=np.inf)

    def _mix(self, state: SplittingState, target: Vector, products: Vector) -> tuple[SplittingState, Vector, Vector]:
        """Anderson's mixture of targets and its coefficients."""
        gram = extend_gram(state.gram, products)
        targets = (*state.targets, target)
        residual = float(gram[-1, -1])
        longest = max(SHORTEST, min(HISTORY + 1, HISTORY_NUMBERS // (2 * target.size)))
        keep = 1 if residual > RESTART**2 * state.residual else min(len(targets), longest)
        gram, targets = gram[-keep:, -keep:], targets[-keep:]
        mixing = coefficients(gram)
        mixed = sum((a * other for a, other in zip(mixing, targets, strict=True)), np.zeros_like(target))
        return replace(state, gram=gram, targets=targets, residual=residual), mixed, mixing


def build(settings: StudySettings, model: ModelParameters) -> Method:
    """The method for a study. Where nothing couples the silos, each is alone, or all share the pooled graph."""
    if model.rho == 0:
        return Pooled(settings, model, from_one_sum=False) if model.alike else Independent(settings, model)
    if settings.weights == "equal":
        start = model.pooled if model.start is None else model.start
        n = model.n_silos
        return QuadraticCoupling("exact", settings, model, pull=model.rho / n, start=start, weight=1 / n)
    return ExactSplitting(settings, model)


METHOD = MethodSpec(build=build, newton=Solver(settings=COUPLING_SETTINGS | {"rounds", "missing_nodes"}))
