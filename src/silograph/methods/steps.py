"""The paper's local steps: K iterations of (2-0) to (2-2), and what the methods made of them share."""

from __future__ import annotations

import numpy as np

from silograph._types import Vector
from silograph.federation.silo import Silo
from silograph.problem import LocalProblem
from silograph.solvers.gradient import iterate

FIRST_WEIGHT = 0.1  # w⁰, everywhere
TOO_LARGE = 1e100  # a weight beyond which the step was too long


def advanced(
    problem: LocalProblem,
    w: Vector,
    before: Vector,
    *,
    n_steps: int,
    step: float,
    momentum: float,
    anchor: Vector | None = None,
    pull: float = 0.0,
) -> tuple[Vector, Vector]:
    """(w, w_before) after `n_steps` more iterations, pulled towards the anchor if there is one."""
    for _ in range(n_steps):
        w, before = iterate(problem, w, before, step=step, momentum=momentum, anchor=anchor, pull=pull), w
    return w, before


def steps_of(silo: Silo, usual: int) -> int:
    """K_i: the silo's own number of local steps, or the run's."""
    return usual if silo.local_steps is None else silo.local_steps


def is_sound(w: Vector) -> bool:
    """Whether an iterate is still a graph: a step too long ends in weights beyond all bounds."""
    return bool(np.isfinite(w).all() and w.max(initial=0.0) < TOO_LARGE)
