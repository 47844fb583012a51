"""What the methods share that are made of the paper's local steps, K iterations of (2-0) to (2-2) (gradient.py)."""

from __future__ import annotations

from silograph._util.kernel import kernel
from silograph._util.types import Vector
from silograph.methods.common.settings import PAPER_STEP, StudySettings
from silograph.protocol.silo import Silo

FIRST_WEIGHT = 0.1  # w⁰, everywhere
TOO_LARGE = 1e100  # a weight beyond which the step was too long


def steps_of(silo: Silo, usual: int) -> int:
    """K_i: the silo's own number of local steps, or the run's."""
    return usual if silo.local_steps is None else silo.local_steps


def step_of(settings: StudySettings, alpha: float) -> float:
    """η: the step given, or the paper's, free of units."""
    return PAPER_STEP / alpha if settings.step is None or settings.step == "lipschitz" else settings.step


@kernel
def is_sound(w: Vector) -> bool:
    """Whether an iterate is still a graph: a step too long ends in weights beyond all bounds."""
    sound = True
    for e in range(w.size):
        sound &= abs(w[e]) < TOO_LARGE  # which NaN is not
    return sound
