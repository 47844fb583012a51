"""What FedAvg, FedProx, MRMTL and Ditto share: T rounds, in each of which the coordinator takes a plain mean.

    FedAvg    each silo starts from the mean and makes K steps on its own g_i; the mean is the graph of all
    FedProx   the same, with a pull (μ/2)‖w − mean‖² that keeps the K steps near
    MRMTL     each silo goes on from its own graph, with the pull; its own graph is its answer
    Ditto     FedAvg for the mean, and beside it each silo's own graph, with a pull to that mean

Momentum starts anew where a silo starts from the mean, and is carried on where it goes on from its own graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import distance, dot
from silograph.local.problem import LocalProblem
from silograph.local.solvers.gradient import take_gradient_steps
from silograph.methods.common.steps import FIRST_WEIGHT, is_sound, steps_of
from silograph.protocol.messages import NUMBER, NUMBER_NONNEGATIVE, PAIRS_NONNEGATIVE, Step, Task, Total
from silograph.protocol.method import Answer, Cohort, Decision, of_graph
from silograph.protocol.silo import Memory, Silo

SETTLED = 1e-6  # relative change of the mean in one round at which it counts as converged

STEPS = MappingProxyType(
    {
        "round": Step(down={"mean": PAIRS_NONNEGATIVE}, up={"w": PAIRS_NONNEGATIVE, "diverged": NUMBER_NONNEGATIVE}),
        "close": Step(down={"mean": PAIRS_NONNEGATIVE}, up={"objective": NUMBER, "edges": NUMBER_NONNEGATIVE}),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The settings of such a method."""

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

    def take_gradient_steps(
        self, silo: Silo, problem: LocalProblem, w: Vector, before: Vector, anchor: Vector | None = None
    ) -> tuple[Vector, Vector]:
        """(w, w_before) after the silo's K steps, pulled towards the anchor if there is one."""
        return take_gradient_steps(
            problem,
            w,
            before,
            n_steps=steps_of(silo, self.local_steps),
            step=self.step,
            momentum=self.momentum,
            anchor=anchor,
            pull=self.pull,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Averaging:
    """Such a method: its name and its silo's half make the difference, the coordinator's half is the same for all."""

    name: str
    settings: Rounds
    half: Callable[[Rounds, Silo, Task], Answer]
    steps: ClassVar[Mapping[str, Step]] = STEPS

    def local(self, silo: Silo, task: Task) -> Answer:
        return self.half(self.settings, silo, task)

    def begin(self, cohort: Cohort) -> Decision:
        """The first task: w⁰ to all."""
        mean = np.full(cohort.pairs.size, self.settings.first_weight)
        state = {"mean": mean, "consensus": mean, "diverged": False, "gap": np.nan, "converged": False}
        return Decision(state=state, step="round", parts={"mean": mean})

    def merge(self, cohort: Cohort, state: Memory, total: Total) -> Decision:
        """The mean, T times; then the end."""
        if total.header.step == "close":
            state = state | {"objective": total.number("objective")}
            return Decision(state=state, step=None, record={"objective": state["objective"]})
        if total.number("diverged"):
            return Decision(state=state | {"diverged": True}, step="close", parts={"mean": state["mean"]})
        mean = total.vector("w") / cohort.n_silos
        moved = float(distance(mean, state["mean"]) / max(np.sqrt(dot(mean, mean)), 1e-300))
        state = state | {"mean": mean, "consensus": mean, "converged": bool(moved < SETTLED)}
        step = "round" if total.header.round < self.settings.rounds else "close"
        return Decision(state=state, step=step, parts={"mean": mean}, record={"moved": moved})


def told(w: Vector, fallback: Vector) -> dict[str, Vector | float]:
    """What a silo says of a round; where its step was too long, that, and the mean it was given."""
    sound = is_sound(w)
    return {"w": w if sound else fallback, "diverged": float(not sound)}


def closed(silo: Silo, w: Vector, mean: Vector, objective: float) -> Answer:
    """The silo's graph at the end."""
    parts = {"objective": objective, "edges": float(np.count_nonzero(w))}
    return Answer(parts=parts, reported=of_graph(silo, w, mean))


def closed_own(settings: Rounds, silo: Silo, mean: Vector) -> Answer:
    """The same for a silo's own graph, pulled to the mean."""
    w = silo.memory["w"]
    pull = 0.5 * settings.pull * distance(w, mean) ** 2
    return closed(silo, w, mean, settings.problem(silo).value(w) + pull)


def first_own(memory: Memory, mean: Vector) -> None:
    """At the first round a silo's own graph is w⁰."""
    if "w" not in memory:
        memory.update(w=mean, w_before=mean)


def go_on(settings: Rounds, silo: Silo, problem: LocalProblem, mean: Vector) -> Vector:
    """K more steps of the silo's own graph, pulled to the mean; one too long changes nothing but is returned."""
    memory = silo.memory
    w, before = settings.take_gradient_steps(silo, problem, memory["w"], memory["w_before"], mean)
    if is_sound(w):
        memory.update(w=w, w_before=before)
    return w


def is_closing(task: Task) -> bool:
    """Whether this is the last exchange."""
    return task.header.step == "close"
