"""The settings of a study: what a user may say, and which of it makes sense together."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np

from silograph._util.checks import check_momentum, check_not_negative, check_one_way, check_positive, check_whole
from silograph.errors import ParameterError
from silograph.methods.common.registry import COUPLING_SETTINGS, SPECIAL_SETTINGS, Option, Solver, spec_of
from silograph.privacy.settings import OPEN, Privacy

PAPER_ZETA, PAPER_STEP, PAPER_ROUNDS = 0.5, 0.005, 50
MOST_ROUNDS = 200  # of an exact method
POSITIVE = (
    "degree", "alpha", "beta", "nu", "tol", "cost_unit", "gamma_epsilon", "first_weight", "gamma_cap", "step",
)  # fmt: skip
MOST_SUMS = 3  # of one-shot; further ones hardly change anything
FIRST_WEIGHT = 0.1  # w⁰, everywhere
AUTO = "auto"  # a coupling that is chosen by rows that silos hold out


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """How to learn from several silos."""

    method: str = "exact"
    degree: float | None = None  # or α and β; None: the default degree
    alpha: float | None = None
    beta: float | None = None
    coupling: float | Literal["auto"] | None = None  # and sparsity, or ν and λ; None: the defaults
    sparsity: float | None = None
    nu: float | None = None
    lam: float | None = None
    cost_unit: float | None = None  # of z/N, as the nearest power of two; None: 1, or one that fits
    zeta: float | None = None  # None: 0, or the paper's 0.5 where its gradient steps need it
    tol: float = 1e-6
    rounds: int | None = None  # None: the paper's 50, or at most 200 of an exact method
    solver: Literal["newton", "gradient"] | None = None  # None: newton where the method has an exact optimum
    pull: float | None = None  # μ in units of 4β; None: 1 (FedProx, MRMTL, Ditto), or each silo's own choice (one-shot)
    sums: int = 1  # that one-shot opens
    local_steps: int = 5  # K
    step: float | Literal["lipschitz"] | None = None  # η; None: 0.005/α
    momentum: float = 0.9  # ξ
    weights: Literal["adaptive", "equal"] = "adaptive"  # γ; "equal" is the paper's ablation
    fresh: bool = False
    gamma_cap: float | None = None
    gamma_epsilon: float = 1e-8  # ε_γ
    first_weight: float = FIRST_WEIGHT  # w⁰
    options: Mapping[str, Option] = field(default_factory=dict, hash=False)  # that only this method has, by name
    missing_nodes: Literal["error", "allow"] = "error"  # whether silos may lack nodes that others have
    report: bool = True  # whether silos may tell their own numbers: samples, edges, distance, contribution
    privacy: Privacy = OPEN

    def __post_init__(self) -> None:
        for setting in fields(self):  # NumPy's numbers become Python's: settings are written down and compared
            value = getattr(self, setting.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, setting.name, value.item())
        spec_of(self.method)  # raises for one that there is not
        self._check_numbers()
        if self.missing_nodes not in ("error", "allow"):
            raise ParameterError(f"missing_nodes: expected 'error' or 'allow', got {self.missing_nodes!r}.")
        if self.may_lack_nodes and self.weights == "equal":
            raise ParameterError("missing_nodes: equal weights need every node in every silo. Leave one of them out.")
        if self.weights not in ("adaptive", "equal"):
            raise ParameterError(f"weights: expected 'adaptive' or 'equal', got {self.weights!r}.")
        check_one_way({"degree": self.degree}, {"alpha": self.alpha, "beta": self.beta})
        check_one_way({"coupling": self.coupling, "sparsity": self.sparsity}, {"nu": self.nu, "lam": self.lam})
        if self.lam == 0:
            raise ParameterError("lam: expected a number > 0, as rho = lam * nu. For no sparsity, use sparsity=0.")
        self._check_solver()
        self._check_used()
        self._check_options()
        self._check_privacy()

    def _check_privacy(self) -> None:
        """Raise for combinations that would protect less than they say."""
        if self.privacy.masked and not spec_of(self.method).one_sum:
            raise ParameterError(
                f"method: {self.method!r} opens many sums, which together show single sites, so that masked sums would "
                "hide nothing. Use 'oneshot' or 'pooled', or epsilon with open sums."
            )
        if self.sums > 1 and (self.privacy.masked or self.privacy.noisy):
            raise ParameterError(
                "sums: the difference of two sums can show one silo, so masked or noisy studies have one. Leave it out."
            )
        if self.privacy.noisy and self.may_lack_nodes:
            raise ParameterError(
                "missing_nodes: which nodes a table has would be told without noise, so that epsilon would promise too "
                "much. Leave one of them out."
            )
        if self.privacy.noisy and self.cost_unit is not None and self.cost_unit != nearest_unit(self.privacy):
            raise ParameterError(
                "cost_unit: with epsilon it follows from the longest row. In a larger one, terms would be rounded once "
                "they have their share of the noise, and hidden by that share alone. Leave it out."
            )

    def _check_numbers(self) -> None:
        for name in POSITIVE:
            value = getattr(self, name)
            if value is not None and value != "lipschitz":
                check_positive(name, value)
        for name in ("coupling", "sparsity", "lam", "zeta", "pull"):
            if getattr(self, name) not in (None, AUTO):
                check_not_negative(name, getattr(self, name))
        for name in ("rounds", "local_steps"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least=1)
        if self.coupling == AUTO and (self.method != "exact" or self.weights != "adaptive"):
            raise ParameterError(
                "coupling: 'auto' is for method 'exact' with adaptive weights; 'oneshot' chooses at home. Give one."
            )
        check_momentum(self.momentum)
        check_whole("sums", self.sums, least=1)
        if self.sums > MOST_SUMS:
            raise ParameterError(f"sums: expected 1, 2 or 3, got {self.sums}. For more rounds, use method='exact'.")

    def _check_solver(self) -> None:
        spec = spec_of(self.method)
        if self.solver not in (None, "newton", "gradient"):
            raise ParameterError(f"solver: expected 'newton' or 'gradient', got {self.solver!r}.")
        if self.solver == "newton" and spec.newton is None:
            raise ParameterError(
                f"solver: {self.method!r} is an iteration of gradient steps. For an exact optimum, use 'exact' "
                "(the paper's model) or 'pooled' (what FedAvg and FedProx aim at)."
            )
        if self.solver == "gradient" and spec.gradient is None:
            raise ParameterError(f"solver: {self.method!r} is exact. For gradient steps, use 'algorithm1' or 'fedavg'.")
        if self.step == "lipschitz" and not self.solver_used.lipschitz:
            raise ParameterError("step: 'lipschitz' is an option of Algorithm 1. Give a number, or leave it out.")

    def _check_used(self) -> None:
        """Raise for a setting that was given and would do nothing."""
        used = self.used
        for setting in fields(self):
            name = setting.name
            if name not in used and getattr(self, name) != setting.default:
                how = "by gradient steps" if self.by_gradient else "solved exactly"
                raise ParameterError(f"{name}: the method {self.method!r}, {how}, has no such parameter. Leave it out.")

    def _check_options(self) -> None:
        """Raise for an option that the method does not have, or that is of another kind than its default."""
        known = spec_of(self.method).options
        if not isinstance(self.options, Mapping):
            raise ParameterError(f"options: expected values by name, got {self.options!r}.")
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in self.options.items()}
        object.__setattr__(self, "options", plain)
        for name, value in plain.items():
            if name not in known:
                has = f"It has {', '.join(known)}." if known else "It has none."
                raise ParameterError(f"{name}: the method {self.method!r} has no such option. {has}")
            kind = type(known[name])
            fits = type(value) is kind or (kind is float and type(value) is int)
            if not fits or (kind is float and not np.isfinite(value)):
                raise ParameterError(f"{name}: expected a value like {known[name]!r}, got {value!r}.")

    @property
    def by_gradient(self) -> bool:
        """Whether the method takes the paper's gradient steps."""
        return (self.solver or spec_of(self.method).default_solver) == "gradient"

    @property
    def solver_used(self) -> Solver:
        """What is known of the method as it is run."""
        spec = spec_of(self.method)
        solver = spec.gradient if self.by_gradient else spec.newton
        assert solver is not None
        return solver

    @property
    def used(self) -> frozenset[str]:
        """The names of the settings that the method has."""
        return frozenset(setting.name for setting in fields(self)) - (SPECIAL_SETTINGS - self.solver_used.settings)

    @property
    def parameters(self) -> dict[str, Any]:
        """What the method was given, as plain data, without what it does not have."""
        used, known = self.used, spec_of(self.method).options
        values = {name: value for name, value in asdict(self).items() if name in used}
        return values | {"options": {**known, **self.options}}

    @property
    def is_coupled(self) -> bool:
        """Whether this is the paper's model, which has ν and λ."""
        return self.solver_used.settings >= COUPLING_SETTINGS

    def option(self, name: str) -> Any:
        """An option that only this method has: as given, or its default."""
        return self.options.get(name, spec_of(self.method).options[name])

    @property
    def may_lack_nodes(self) -> bool:
        """Whether silos may lack nodes that others have."""
        return self.missing_nodes == "allow"

    @property
    def pull_used(self) -> float:
        """The pull given, or 1."""
        return 1.0 if self.pull is None else self.pull

    @property
    def holds_out(self) -> bool:
        """Whether silos hold out rows, and so need them in blocks."""
        return spec_of(self.method).blocks and self.pull is None

    @property
    def cost_unit_used(self) -> float:
        """The power of two that is nearest to the unit given, or 1; with ε, to the square of the longest row."""
        if self.privacy.noisy:
            return nearest_unit(self.privacy)
        return 1.0 if self.cost_unit is None else float(2.0 ** round(np.log2(self.cost_unit)))

    @property
    def noise_on_silos(self) -> bool:
        """Whether each silo's own costs carry noise, rather than the one sum that the method opens."""
        return self.privacy.noisy and not spec_of(self.method).one_sum

    @property
    def graphs_inside(self) -> bool:
        """Whether what ε promises holds for the silos' graphs, too: they are made of what carries noise alone."""
        return self.noise_on_silos or (self.privacy.noisy and not spec_of(self.method).own_graphs)

    @property
    def zeta_used(self) -> float:
        """The ζ given, or the method's own."""
        return (PAPER_ZETA if self.by_gradient else 0.0) if self.zeta is None else self.zeta

    @property
    def rounds_used(self) -> int:
        """The rounds given, the paper's for its iterations, or the most that an exact method may take."""
        return self.rounds or (PAPER_ROUNDS if self.by_gradient else MOST_ROUNDS)


def nearest_unit(privacy: Privacy) -> float:
    """The power of two that is nearest to the square of the longest row: what costs are at most, but for a factor."""
    return float(2.0 ** round(2 * np.log2(privacy.longest_row)))
