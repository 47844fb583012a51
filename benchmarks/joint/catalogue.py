"""Who competes on the joint problem, on what, and what else is measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.processes import LONGEST_STEP, attempt, build, work
from benchmarks.suite import OURS, Competitor, Scale, Suite

NAME = "joint"
ONE_WORKER = "silograph, 1 worker"
SPARSITY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One instance."""

    n_silos: int
    n_nodes: int
    coupling: float
    n_samples: int = 176

    def __str__(self) -> str:
        return f"I = {self.n_silos}, d = {self.n_nodes}, coupling {self.coupling:g}"


COMPETITORS = (
    Competitor(name=OURS, module="silograph_exact"),
    Competitor(name=ONE_WORKER, module="silograph_exact"),
    Competitor(name="clarabel", module="cvxpy_cones", needs=("cvxpy", "clarabel")),
    Competitor(name="scs", module="cvxpy_cones", needs=("cvxpy", "scs")),
    Competitor(name="algorithm1", module="silograph_algorithm1"),
    Competitor(name="algorithm1-numpy", module="algorithm1_numpy"),
    Competitor(name="admm", module="admm"),
    Competitor(name="admm-squares", module="admm", same_model=False),
)

# Other models on the same data, called once with their own stopping rules
NEIGHBOURS = (
    Competitor(name="gglasso", module="gglasso_group", same_model=False, needs=("gglasso",)),
    Competitor(name="nilearn", module="nilearn_group", same_model=False, needs=("nilearn",)),
)
EVERYBODY = (*COMPETITORS, *NEIGHBOURS)

NEIGHBOUR_CASE = Case(n_silos=5, n_nodes=34, coupling=0.7)

CASES = (
    *(Case(n_silos=5, n_nodes=34, coupling=coupling) for coupling in (0.3, 0.7, 1.0, 1.5)),
    *(Case(n_silos=5, n_nodes=20, coupling=coupling) for coupling in (0.7, 1.0)),
    *(Case(n_silos=20, n_nodes=34, coupling=coupling) for coupling in (0.7, 1.0)),
    *(Case(n_silos=5, n_nodes=100, coupling=coupling) for coupling in (0.7, 1.0)),
)
QUICK = (Case(n_silos=5, n_nodes=34, coupling=0.7),)

MEMORY_NODES = 100
MEMORY_SILOS = (25, 50, 100, 200)
QUICK_MEMORY_SILOS = (5, 10)
TIMED_SILOS, TIMED_LIMIT = 100, 30.0  # seconds that so many silos of MEMORY_NODES nodes may take

ROUND_TOLERANCES = (1e-6, 1e-8)
ROUND_NODES, QUICK_ROUND_NODES = 200, 10  # the most that an instance whose rounds are counted may have


def measure_neighbours(quick: bool) -> dict[str, Any]:
    """Time the other models on the same signals."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        instance = build(NAME, folder, NEIGHBOUR_CASE)
        found: dict[str, Any] = {"case": asdict(NEIGHBOUR_CASE), "degree": instance["mean_degree"], "models": {}}
        for competitor in NEIGHBOURS:
            print(f"    {competitor.name}", flush=True)
            found["models"][competitor.name] = attempt(NAME, competitor, "other", folder, seconds=LONGEST_STEP)
    return found


def measure_scaling(quick: bool) -> list[dict[str, Any]]:
    """Seconds and memory with the number of silos."""
    return [_work_alone("silos", count, MEMORY_NODES) for count in (QUICK_MEMORY_SILOS if quick else MEMORY_SILOS)]


def count_rounds(quick: bool) -> list[dict[str, Any]]:
    """Rounds until certified, over all regimes."""
    found: list[dict[str, Any]] = _work_alone("rounds", QUICK_ROUND_NODES if quick else ROUND_NODES)
    return found


def _work_alone(step: str, *arguments: int) -> Any:
    print(f"{step} {' '.join(map(str, arguments))}", flush=True)
    with TemporaryDirectory() as name:
        return work(NAME, step, Path(name), *arguments)


SUITE = Suite(
    name=NAME,
    case=Case,
    competitors=COMPETITORS,
    full=Scale(cases=CASES, time_limit=20.0),
    quick=Scale(cases=QUICK, time_limit=4.0),
    parts={"neighbours": measure_neighbours, "scaling": measure_scaling, "rounds": count_rounds},
)
