"""What the methods share that are made of the paper's local steps, K iterations of (2-0) to (2-2) (gradient.py)."""

from dataclasses import dataclass

from silograph._util.types import Vector
from silograph.local.solvers.gradient import take_gradient_steps
from silograph.methods.common.settings import PAPER_STEP, StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.protocol.silo import Silo


@dataclass(frozen=True, slots=True)
class LocalSteps:
    """How a silo steps down its own problem."""

    settings: StudySettings
    model: ModelParameters

    @property
    def pull(self) -> float:
        """μ, the strength of FedProx, MRMTL and Ditto."""
        return self.settings.pull_used * 4 * self.model.beta

    @property
    def step(self) -> float:
        """η: the step given, or the paper's, free of units."""
        step = self.settings.step
        return PAPER_STEP / self.model.alpha if step is None or step == "lipschitz" else step

    def advance(
        self, silo: Silo, w: Vector, before: Vector, anchor: Vector | None = None, *, times: int = 1
    ) -> tuple[Vector, Vector]:
        """(w, w_before) after the silo's K steps, pulled towards the anchor if there is one."""
        return take_gradient_steps(
            self.model.problem(silo),
            w,
            before,
            n_steps=times * steps_of(silo, self.settings.local_steps),
            step=self.step,
            momentum=self.settings.momentum,
            anchor=anchor,
            pull=self.pull,
        )


def steps_of(silo: Silo, usual: int) -> int:
    """K_i: the silo's own number of local steps, or the run's."""
    return usual if silo.local_steps is None else silo.local_steps
