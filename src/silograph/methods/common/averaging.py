"""What FedAvg, FedProx, MRMTL and Ditto share: T rounds, in each of which the coordinator takes a plain mean.

    FedAvg    each silo starts from the mean and makes K steps on its own g_i; the mean is the graph of all
    FedProx   the same, with a pull (μ/2)‖w − mean‖² that keeps the K steps near
    MRMTL     each silo goes on from its own graph, with the pull; its own graph is its answer
    Ditto     FedAvg for the mean, and beside it each silo's own graph, with a pull to that mean

Momentum starts anew where a silo starts from the mean, and is carried on where it goes on from its own graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import distance, dot
from silograph.local.problem import LocalProblem
from silograph.local.solvers.gradient import take_gradient_steps
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.methods.common.steps import FIRST_WEIGHT, is_sound, step_of, steps_of
from silograph.protocol.messages import NUMBER, NUMBER_NONNEGATIVE, PAIRS_NONNEGATIVE, Parts, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, Outcome, States, report_on
from silograph.protocol.silo import Silo, SiloState

STILL = 1e-6  # relative change of the mean in one round at which it counts as converged

STEPS = MappingProxyType(
    {
        "round": Step(down={"mean": PAIRS_NONNEGATIVE}, up={"w": PAIRS_NONNEGATIVE, "diverged": NUMBER_NONNEGATIVE}),
        "close": Step(down={"mean": PAIRS_NONNEGATIVE}, up={"objective": NUMBER, "edges": NUMBER_NONNEGATIVE}),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSteps:
    """The model, and how a silo steps down its own problem."""

    alpha: float
    beta: float
    zeta: float = 0.5
    pull: float = 0.0  # μ; FedAvg has none
    local_steps: int = 5  # K
    rounds: int = 50  # T
    step: float = 0.005  # η
    momentum: float = 0.9  # ξ
    first_weight: float = FIRST_WEIGHT  # w⁰

    def problem(self, silo: Silo) -> LocalProblem:
        """The silo's own problem."""
        return silo.problem(alpha=self.alpha, beta=self.beta, zeta=self.zeta)

    def advance(self, silo: Silo, w: Vector, before: Vector, anchor: Vector | None = None) -> tuple[Vector, Vector]:
        """(w, w_before) after the silo's K steps, pulled towards the anchor if there is one."""
        return take_gradient_steps(
            self.problem(silo),
            w,
            before,
            n_steps=steps_of(silo, self.local_steps),
            step=self.step,
            momentum=self.momentum,
            anchor=anchor,
            pull=self.pull,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnGraph:
    """What a silo keeps that goes on from its own graph."""

    w: Vector
    w_before: Vector


LocalHalf = Callable[[LocalSteps, Silo, SiloState[OwnGraph], Task], Answer[OwnGraph]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AveragingState:
    """What the coordinator keeps."""

    mean: Vector
    converged: bool = False
    diverged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Averaging:
    """Such a method: its name and its silo's half make the difference, the coordinator's half is the same for all."""

    name: str
    settings: LocalSteps
    local_half: LocalHalf
    steps: ClassVar[Mapping[str, Step]] = STEPS
    states: ClassVar[States] = States(silo=OwnGraph, coordinator=AveragingState)

    def local(self, silo: Silo, state: SiloState[OwnGraph], task: Task) -> Answer[OwnGraph]:
        return self.local_half(self.settings, silo, state, task)

    def begin(self, cohort: Cohort) -> Decision[AveragingState]:
        """The first task: w⁰ to all."""
        mean = np.full(cohort.pairs.size, self.settings.first_weight)
        return Decision(state=AveragingState(mean=mean), step="round", parts={"mean": mean})

    def merge(self, cohort: Cohort, state: AveragingState, total: Total) -> Decision[AveragingState]:
        """The mean, T times; then the end."""
        if total.header.step == "close":
            objective = total.number("objective")
            outcome = Outcome(
                consensus=state.mean, objective=objective, converged=state.converged, diverged=state.diverged
            )
            return Decision(outcome=outcome, record={"objective": objective})
        if total.number("diverged"):
            return Decision(state=replace(state, diverged=True), step="close", parts={"mean": state.mean})
        mean = total.vector("w") / cohort.n_silos
        moved = float(distance(mean, state.mean) / max(np.sqrt(dot(mean, mean)), 1e-300))
        state = AveragingState(mean=mean, converged=bool(moved < STILL))
        step = "round" if total.header.round < self.settings.rounds else "close"
        return Decision(state=state, step=step, parts={"mean": mean}, record={"moved": moved})


def build_averaging(
    name: str, local_half: LocalHalf, settings: StudySettings, parameters: ModelParameters
) -> Averaging:
    """Such a method for a study."""
    steps = LocalSteps(
        alpha=parameters.alpha,
        beta=parameters.beta,
        zeta=settings.zeta_used,
        pull=settings.pull_used * 4 * parameters.beta,
        local_steps=settings.local_steps,
        rounds=settings.rounds_used,
        step=step_of(settings, parameters.alpha),
        momentum=settings.momentum,
        first_weight=settings.first_weight,
    )
    return Averaging(name=name, settings=steps, local_half=local_half)


def round_parts(w: Vector, fallback: Vector) -> Parts:
    """What a silo says of a round; where its step was too long, that, and the mean it was given."""
    sound = is_sound(w)
    return {"w": w if sound else fallback, "diverged": float(not sound)}


def close_at(silo: Silo, w: Vector, mean: Vector, objective: float) -> Answer[OwnGraph]:
    """The last answer: the silo's graph is w."""
    parts = {"objective": objective, "edges": float(np.count_nonzero(w))}
    return Answer(parts=parts, graph=w, reported=report_on(silo, w, mean))


def close_at_own(settings: LocalSteps, silo: Silo, own: OwnGraph, mean: Vector) -> Answer[OwnGraph]:
    """The last answer of a silo whose own graph was pulled to the mean."""
    pull = 0.5 * settings.pull * distance(own.w, mean) ** 2
    return close_at(silo, own.w, mean, settings.problem(silo).value(own.w) + pull)


def own_graph(state: SiloState[OwnGraph], mean: Vector) -> OwnGraph:
    """The silo's own graph; before the first round it is w⁰."""
    return OwnGraph(w=mean, w_before=mean) if state.own is None else state.own


def advance_own(settings: LocalSteps, silo: Silo, own: OwnGraph, mean: Vector) -> tuple[OwnGraph, Vector]:
    """K more steps of the silo's own graph, pulled to the mean; a step too long is returned, but changes nothing."""
    w, before = settings.advance(silo, own.w, own.w_before, mean)
    return OwnGraph(w=w, w_before=before) if is_sound(w) else own, w


def is_closing(task: Task) -> bool:
    """Whether this is the last exchange."""
    return task.header.step == "close"
