"""Who competes and on what, as plain facts: the runner reads them without loading NumPy or any solver."""

from __future__ import annotations

from dataclasses import dataclass

OURS = "silograph"
ONE_WORKER = "silograph, 1 worker"
SPARSITY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Competitor:
    """A column of the table, or a row of the neighbours' table."""

    name: str
    module: str  # in benchmarks.joint.solvers
    same_model: bool = True
    needs: tuple[str, ...] = ()  # packages that may be missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of the table: one instance."""

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

NEIGHBOUR_CASE = Case(n_silos=5, n_nodes=34, coupling=0.7)

FULL = (
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
LARGEST, QUICK_LARGEST = 200, 10  # nodes of the instances whose rounds are counted
