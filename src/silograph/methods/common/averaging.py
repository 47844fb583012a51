"""What FedAvg, FedProx, MRMTL and Ditto share: T rounds, in each of which the coordinator takes a plain mean.

    FedAvg    each silo starts from the mean and makes K steps on its own g_i; the mean is the graph of all
    FedProx   the same, with a pull (μ/2)‖w − mean‖² that keeps the K steps near
    MRMTL     each silo goes on from its own graph, with the pull; its own graph is its answer
    Ditto     FedAvg for the mean, and beside it each silo's own graph, with a pull to that mean

Momentum starts anew where a silo starts from the mean, and is carried on where it goes on from its own graph.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import distance, dot
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.methods.common.steps import LocalSteps
from silograph.protocol.messages import COUNT, FLAG, OBJECTIVE, PAIRS_NONNEGATIVE, WEIGHTS, Parts, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, Outcome, States, report_on
from silograph.protocol.silo import Silo, SiloState
from silograph.protocol.units import Units

STILL = 1e-6  # relative change of the mean in one round at which it counts as converged

STEPS = MappingProxyType(
    {
        "round": Step(down={"mean": PAIRS_NONNEGATIVE}, up={"w": WEIGHTS, "diverged": FLAG}),
        "close": Step(down={"mean": PAIRS_NONNEGATIVE}, up={"objective": OBJECTIVE, "edges": COUNT}),
    }
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


@dataclass(frozen=True, slots=True)
class Averaging:
    """Such a method: its name and its silo's half make the difference, the coordinator's half is the same for all."""

    name: str
    local_half: LocalHalf
    settings: StudySettings
    model: ModelParameters
    steps: ClassVar[Mapping[str, Step]] = STEPS
    states: ClassVar[States] = States(silo=OwnGraph, coordinator=AveragingState)

    def units(self, task: Task) -> Units:
        return self.model.units

    def local(self, silo: Silo, state: SiloState[OwnGraph], task: Task) -> Answer[OwnGraph]:
        return self.local_half(LocalSteps(self.settings, self.model), silo, state, task)

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
        step = "round" if total.header.round < self.settings.rounds_used else "close"
        return Decision(state=state, step=step, parts={"mean": mean}, record={"moved": moved})


def round_parts(steps: LocalSteps, w: Vector, fallback: Vector) -> Parts:
    """What a silo says of a round; where its step was too long, that, and the mean it was given."""
    sound = steps.model.is_sound(w)
    return {"w": w if sound else fallback, "diverged": float(not sound)}


def close_at(silo: Silo, w: Vector, mean: Vector, objective: float) -> Answer[OwnGraph]:
    """The last answer: the silo's graph is w."""
    parts = {"objective": objective, "edges": float(np.count_nonzero(w))}
    return Answer(parts=parts, graph=w, reported=report_on(silo, w, mean))


def close_at_own(steps: LocalSteps, silo: Silo, own: OwnGraph, mean: Vector) -> Answer[OwnGraph]:
    """The last answer of a silo whose own graph was pulled to the mean."""
    pull = 0.5 * steps.pull * distance(own.w, mean) ** 2
    return close_at(silo, own.w, mean, steps.model.problem(silo).value(own.w) + pull)


def own_graph(state: SiloState[OwnGraph], mean: Vector) -> OwnGraph:
    """The silo's own graph; before the first round it is w⁰."""
    return OwnGraph(w=mean, w_before=mean) if state.own is None else state.own


def advance_own(steps: LocalSteps, silo: Silo, own: OwnGraph, mean: Vector) -> tuple[OwnGraph, Vector]:
    """K more steps of the silo's own graph, pulled to the mean; a step too long is returned, but changes nothing."""
    w, before = steps.advance(silo, own.w, own.w_before, mean)
    return OwnGraph(w=w, w_before=before) if steps.model.is_sound(w) else own, w


def is_closing(task: Task) -> bool:
    """Whether this is the last exchange."""
    return task.header.step == "close"
