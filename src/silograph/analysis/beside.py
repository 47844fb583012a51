"""A silo's own graph beside a consensus that stays as it is: of half of its rows, or of one that had no part in it."""

from dataclasses import dataclass, replace

import numpy as np

from silograph._util.types import Vector
from silograph.local.prox import add_pull, prox_step
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.personal import FOLDS, PULLS
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beside:
    """What a silo's own graph is learned beside: the consensus, its pull, and the model's parameters."""

    consensus: Vector  # on the study's pairs
    alpha: float
    beta: float
    zeta: float
    rho: float = 0.0
    pull: float | None = None  # of methods that have one, in units of 4β
    degree: float | None = None  # of the strongest edges that are kept; None: all are

    @property
    def is_drawing(self) -> bool:
        """Whether the consensus has a pull at all."""
        return self.rho > 0 if self.pull is None else self.pull > 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnGraph:
    """The whole optimum, on the silo's own pairs."""

    w: Vector
    strength: float  # of the pull; infinite where the silo is the consensus


def pull_of(settings: StudySettings, chosen: float | None, *, rho: float, beta: float, n_silos: int) -> float | None:
    """The pull of a silo in units of 4β: the one that it has chosen, the study's; None where its strength is found."""
    if "pull" in settings.used:
        return settings.pull_used if chosen is None else chosen
    if settings.is_coupled and settings.weights == "equal":
        return rho / n_silos / (4 * beta)
    return None


def graph_beside(silo: Silo, beside: Beside) -> OwnGraph:
    """The silo's own graph under the pull of the consensus."""
    problem = silo.problem(alpha=beside.alpha, beta=beside.beta, zeta=beside.zeta)
    u = silo.take(beside.consensus)
    if beside.pull is not None:
        strength = beside.pull * 4 * beside.beta
        return OwnGraph(w=solve_to_rounding(add_pull(problem, u, strength), None).w, strength=strength)
    if beside.rho == 0:
        return OwnGraph(w=solve_to_rounding(problem, None).w, strength=0.0)
    found = prox_step(problem, u, metric=None, rho=beside.rho, strength=4 * beside.beta, start=None)
    return OwnGraph(w=found.w, strength=found.strength)


def choose_pull(silo: Silo, beside: Beside) -> float:
    """The pull with the least loss on rows that are held out, in units of 4β."""
    assert silo.blocks is not None
    losses, u = np.zeros(len(PULLS)), silo.take(beside.consensus)
    for held in silo.blocks.folds(FOLDS):
        seen = [block for block in range(len(silo.blocks.counts)) if block not in held] or held
        own, unseen = (
            replace(silo, cost=silo.blocks.cost(part)).problem(alpha=beside.alpha, beta=beside.beta, zeta=beside.zeta)
            for part in (seen, held)
        )
        for k, pull in enumerate(PULLS):
            w = solve_to_rounding(add_pull(own, u, pull * 4 * beside.beta), None).w
            losses[k] += float(silo.blocks.counts[held].sum()) * unseen.value(w)
    return PULLS[int(losses.argmin())]
