"""Algorithm 1 of the paper as a tight NumPy loop over all silos at once: the same numbers, without messages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.joint.objective import JointProblem
from benchmarks.joint.solvers.square import adjoint, answer_of, pair_norms, square_costs
from benchmarks.solver import Answer, Iterative

STEPS = (0.02, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001, 0.00005)  # times 1/α, as the paper's 0.005 is for α = 1
MOMENTUM, LOCAL_STEPS, FIRST_WEIGHT, EPSILON = 0.9, 5, 0.1, 1e-8


class Run:
    """Algorithm 1 under way; an iteration is a round."""

    def __init__(self, problem: JointProblem, step: float) -> None:
        self._problem = problem
        self._step = step / problem.alpha
        self._costs = square_costs(problem)
        n_silos, n_nodes = self._costs.shape[:2]
        self._u = FIRST_WEIGHT * (1 - np.eye(n_nodes))
        self._w = np.repeat(self._u[None], n_silos, axis=0)
        self._before = self._w
        self._gamma = np.full(n_silos, 1 / n_silos)

    def advance(self, n_iter: int) -> None:
        """Do so many rounds."""
        with np.errstate(all="ignore"):  # a step too long shows in the answer
            for _ in range(n_iter):
                self._round()

    def _round(self) -> None:
        problem, step = self._problem, self._step
        pull = (problem.rho * self._gamma)[:, None, None]
        shrink = 1 - step * (4 * problem.beta + pull)
        constant = step * (pull * self._u - self._costs)
        w, before = self._w, self._before
        for _ in range(LOCAL_STEPS):
            ahead = (1 + MOMENTUM) * w - MOMENTUM * before
            resistance = step * problem.alpha / ahead.sum(axis=2)
            before, w = w, np.maximum(shrink * ahead + constant + adjoint(resistance), 0.0)
        self._w, self._before = w, before
        total = self._gamma.sum()
        mean = np.tensordot(self._gamma, w, axes=1) / total
        self._u = np.maximum(mean - problem.lam / (total * problem.rho), 0.0)
        self._gamma = 1 / (pair_norms(w - self._u) + EPSILON)

    def answers(self) -> Iterator[Answer]:
        """The graphs after the last round."""
        yield answer_of(self._w, self._u)


SOLVERS = {"algorithm1-numpy": Iterative(start=Run, steps=STEPS)}
