"""How the synthetic experiments are run: every setting the paper states, and a choice for each that it leaves open.

The choices are those of an earlier independent attempt that came closest to the printed numbers, kept for all tables
(docs/paper/index.md has the list). The grids of ν and λ span the ranges the paper gives; the others are ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from silograph.methods.common.settings import StudySettings

Point = Mapping[str, float]  # one point of a method's grid: names of StudySettings to values


@dataclass(frozen=True, slots=True, kw_only=True)
class Grids:
    """What each method may choose from."""

    betas: tuple[float, ...] = (0.2, 0.35, 0.5, 0.7, 0.9)  # FedAvg and FedProx
    own_betas: tuple[float, ...] = (0.2, 0.35, 0.5, 0.7, 0.9, 1.3, 2, 3, 5, 8)  # IGL with a β of its own
    nus: tuple[float, ...] = (1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 20, 50, 100)
    lams: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)
    # With equal weights 1/I instead of 1/‖w_i − w_con‖, the same pull takes a ν that is about ten times as large
    equal_nus: tuple[float, ...] = (5, 10, 20, 50, 100, 200, 500, 1000)
    strengths: tuple[float, ...] = (0.03, 0.1, 0.3, 1, 3, 10, 30, 100)  # μ of FedProx, MRMTL, Ditto and one sum
    sparsities: tuple[float, ...] = (0, 0.05, 0.1, 0.2, 0.3, 0.5)  # λ/I of one sum, in median pooled costs


FULL = Grids()
# For COIL-20, whose graphs are sparser: β around what IGL does best with, the others as wide as above, a little coarser
IMAGES = Grids(
    betas=(0.02, 0.05, 0.1, 0.2, 0.5, 1),
    own_betas=(0.02, 0.05, 0.1, 0.2, 0.5, 1),
    nus=(1, 3, 10, 30, 100),
    lams=(0.01, 0.03, 0.1, 0.3, 1),
)
COARSE_IMAGES = Grids(betas=(0.1, 0.5), own_betas=(0.1, 0.5), nus=(3, 10, 30), lams=(0.03, 0.3), strengths=(0.3, 3))
COARSE = Grids(
    betas=(0.35, 0.7),
    own_betas=(0.7, 2),
    nus=(2, 5, 20, 100),
    lams=(0.05, 0.2, 1),
    equal_nus=(20, 100, 500),
    strengths=(0.3, 3, 30),
    sparsities=(0, 0.2),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Model and algorithm."""

    alpha: float = 1.0
    beta: float = 0.7  # for all but FedAvg and FedProx; not IGL's best, which is larger (table_beta.py)
    zeta: float = 0.5
    rounds: int = 50  # T
    local_steps: int = 5  # K
    step: float = 0.005  # η
    momentum: float = 0.9  # ξ
    first_weight: float = 0.1  # w⁰
    gamma_epsilon: float = 1e-8  # ε_γ
    threshold: float = 0.01  # a pair counts as an edge above this weight
    grids: Grids = FULL


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A method as the tables run it."""

    method: str
    options: Mapping[str, Any]  # of StudySettings
    searches: Mapping[str, str]  # what its grid is over, of β, μ, ν, λ and sparsity, and which values of Grids it takes
    has_consensus: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether the optimum is sought rather than the paper's iterations made."""
        return self.method in ("exact", "oneshot") or self.options.get("solver") == "newton"


COUPLED = {"nu": "nus", "lam": "lams"}
COUPLED_EQUALLY = {"nu": "equal_nus", "lam": "lams"}
BY_GRADIENT = {"solver": "gradient"}
SPARSE = {"sparsity": "sparsities"}
AT_ONCE = {"pull": 1.0}  # the consensus does not depend on it, and choosing one takes time
CONTENDERS: Mapping[str, Contender] = {
    "igl": Contender(method="independent", options=BY_GRADIENT, searches={}),
    "igl-own": Contender(method="independent", options=BY_GRADIENT, searches={"beta": "own_betas"}),
    "igl-exact": Contender(method="independent", options={"solver": "newton"}, searches={"beta": "own_betas"}),
    "fedavg": Contender(method="fedavg", options={}, searches={"beta": "betas"}),
    "fedprox": Contender(method="fedprox", options={}, searches={"beta": "betas", "strength": "strengths"}),
    "mrmtl": Contender(method="mrmtl", options=BY_GRADIENT, searches={"strength": "strengths"}),
    "ditto": Contender(method="ditto", options=BY_GRADIENT, searches={"strength": "strengths"}),
    "ppgl": Contender(method="algorithm1", options={}, searches=COUPLED, has_consensus=True),
    "ppgl-equal": Contender(
        method="algorithm1", options={"weights": "equal"}, searches=COUPLED_EQUALLY, has_consensus=True
    ),
    "exact": Contender(method="exact", options={}, searches=COUPLED, has_consensus=True),
    "exact-equal": Contender(
        method="exact", options={"weights": "equal"}, searches=COUPLED_EQUALLY, has_consensus=True
    ),
    "sum": Contender(method="oneshot", options={}, searches={"strength": "strengths"} | SPARSE, has_consensus=True),
    "sum-home": Contender(method="oneshot", options={}, searches={}, has_consensus=True),  # each silo's own pull
    "sum-1": Contender(method="oneshot", options=AT_ONCE, searches=SPARSE, has_consensus=True),
    "sum-2": Contender(method="oneshot", options={"sums": 2} | AT_ONCE, searches=SPARSE, has_consensus=True),
    "sum-3": Contender(method="oneshot", options={"sums": 3} | AT_ONCE, searches=SPARSE, has_consensus=True),
}


def grid_of(contender: Contender, recipe: Recipe) -> tuple[Point, ...]:
    """All points of a method's grid, the last parameter running fastest; one empty point where it has none."""
    points = product(*(getattr(recipe.grids, values) for values in contender.searches.values()))
    return tuple(dict(zip(contender.searches, point, strict=True)) for point in points)


def settings_of(contender: Contender, recipe: Recipe, point: Point) -> StudySettings:
    """The study that a point of the grid calls for."""
    beta = point.get("beta", recipe.beta)
    chosen: dict[str, Any] = {name: point[name] for name in ("nu", "lam", "sparsity") if name in point}
    if "strength" in point:
        chosen["pull"] = point["strength"] / (4 * beta)  # StudySettings counts it in units of 4β
    if not contender.is_exact:
        chosen |= {
            "rounds": recipe.rounds,
            "local_steps": recipe.local_steps,
            "step": recipe.step,
            "momentum": recipe.momentum,
            "first_weight": recipe.first_weight,
        }
    if contender.method == "algorithm1":
        chosen["gamma_epsilon"] = recipe.gamma_epsilon
    return StudySettings(
        method=contender.method, alpha=recipe.alpha, beta=beta, zeta=recipe.zeta, **contender.options, **chosen
    )
