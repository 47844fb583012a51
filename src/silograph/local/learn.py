"""From costs to a certified graph: the one path that every façade (estimator, command line) takes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from silograph._util.checks import check_momentum, check_not_negative, check_one_way, check_positive, check_whole
from silograph._util.types import Vector
from silograph.errors import ParameterError
from silograph.graph.graph import Graph, graph_on
from silograph.graph.pairs import Pairs
from silograph.local.degree import check_degree, default_degree, find_theta, mean_degree
from silograph.local.problem import LocalProblem
from silograph.local.solvers import exact, gradient
from silograph.local.solvers.polish import polish
from silograph.local.solvers.solution import Solution

SolverName = Literal["newton", "gradient"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to learn: either a mean degree (or none, for the default one), or α and β."""

    degree: float | None = None
    alpha: float | None = None
    beta: float | None = None
    zeta: float = 0.0
    solver: SolverName = "newton"
    tol: float = 1e-8
    max_iter: int | None = None  # per solve; None: the solver's own
    neighbours: int | None = None  # candidate pairs per node; None: automatic, 0: test all pairs at each step
    step: float | None = None  # the gradient method's η; None: backtracking
    momentum: float = gradient.MOMENTUM  # the gradient method's ξ

    def __post_init__(self) -> None:
        for name in ("degree", "alpha", "beta", "tol", "step"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        check_not_negative("zeta", self.zeta)
        check_momentum(self.momentum)
        for name, least in (("max_iter", 1), ("neighbours", 0)):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least=least)
        if self.solver not in ("newton", "gradient"):
            raise ParameterError(f"solver: expected 'newton' or 'gradient', got {self.solver!r}.")
        if self.step is not None and self.solver != "gradient":
            raise ParameterError("step: it belongs to the gradient method. Leave it out, or set solver='gradient'.")
        check_one_way({"degree": self.degree}, {"alpha": self.alpha, "beta": self.beta})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearnResult:
    """A problem, its solution, and how they came about."""

    problem: LocalProblem
    solution: Solution
    degree: float  # mean number of neighbours
    degree_asked: float | None  # None where alpha and beta were given
    degree_reached: bool
    n_solves: int
    whole: bool = True  # otherwise the problem is that of candidate pairs, no other having an edge

    @property
    def y(self) -> Vector:
        """The multipliers of the solution."""
        return self.solution.y

    @property
    def alpha(self) -> float:
        """α of the problem solved."""
        return self.problem.alpha

    @property
    def beta(self) -> float:
        """β of the problem solved."""
        return float(self.problem.quadratic / 4)


def learn(
    cost: Vector, pairs: Pairs, settings: Settings, *, start: Vector | None = None, theta: float | None = None
) -> LearnResult:
    """Learn one silo's graph from its costs z/N on the allowed pairs.

    `start` are multipliers of a similar problem, and `theta` is where to begin to look for a degree.
    """
    if settings.alpha is not None and settings.beta is not None:
        problem = LocalProblem(
            cost=cost, pairs=pairs, quadratic=4 * settings.beta, alpha=settings.alpha, zeta=settings.zeta
        )
        solution = _polish(problem, _solve(problem, start, settings), settings)
        return LearnResult(
            problem=problem,
            solution=solution,
            degree=mean_degree(problem, solution.w),
            degree_asked=None,
            degree_reached=True,
            n_solves=1,
        )
    degree = default_degree(pairs) if settings.degree is None else settings.degree
    check_degree(degree, pairs)
    # The degree is found by the exact solver: it is the only one whose zeros are zeros
    exact_settings = settings if settings.solver == "newton" else replace(settings, solver="newton", max_iter=None)
    tuned = find_theta(
        cost,
        pairs,
        degree,
        zeta=settings.zeta,
        # Polished at once: edges are counted, and at the tolerance alone some are neither present nor absent
        solver=lambda problem, y: _polish(problem, _solve(problem, y, exact_settings), exact_settings),
        start=start,
        theta=theta,
    )
    solution = tuned.solution if settings.solver == "newton" else _solve(tuned.problem, None, settings)
    return LearnResult(
        problem=tuned.problem,
        solution=solution,
        degree=mean_degree(tuned.problem, solution.w),
        degree_asked=degree,
        degree_reached=tuned.reached,
        n_solves=tuned.n_solves,
    )


def graph_of(learned: LearnResult, names: Sequence[str]) -> Graph:
    """The learned weights as a graph of named nodes."""
    return graph_on(learned.problem.pairs, learned.solution.w, names)


def convergence_warning(learned: LearnResult, settings: Settings) -> str:
    """What to tell a user whose solution misses its tolerance."""
    solution = learned.solution
    cure = "Raise" if settings.solver == "newton" else "Use solver='newton', or raise"
    return (
        f"The {settings.solver} solver stopped after {solution.n_iter} iterations at a relative duality gap of "
        f"{solution.relative_gap:.1e}, above tol = {settings.tol:g}. {cure} max_iter or tol."
    )


def worth_telling(learned: LearnResult, settings: Settings) -> bool:
    """Whether a missed degree matters: one asked for always, the default one when it is far off."""
    if learned.degree_reached or learned.degree_asked is None:
        return False
    return settings.degree is not None or not 2 / 3 <= learned.degree / learned.degree_asked <= 3 / 2


def degree_warning(learned: LearnResult) -> str:
    """What to tell a user whose graph cannot have the degree asked for."""
    return (
        f"A mean degree of {learned.degree_asked:g} was not found; the nearest, {learned.degree:g}, was taken. "
        "Equal distances (duplicated or constant nodes) make edges come and go together, and a very low degree or a "
        "large zeta may be beyond the model. Ask for another degree, or give alpha and beta."
    )


def _solve(problem: LocalProblem, start: Vector | None, settings: Settings) -> Solution:
    if settings.solver == "gradient":
        return gradient.solve(
            problem,
            step=settings.step,
            momentum=settings.momentum,
            tol=settings.tol,
            max_iter=settings.max_iter or 20_000,
        )
    return exact.solve(
        problem, start=start, tol=settings.tol, max_iter=settings.max_iter or 200, neighbours=settings.neighbours
    )


def _polish(problem: LocalProblem, solution: Solution, settings: Settings) -> Solution:
    return polish(problem, solution) if settings.solver == "newton" else solution
