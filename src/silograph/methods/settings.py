"""The settings of a study: what a user may say, and which of it makes sense together."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np

from silograph._util.checks import check_momentum, check_not_negative, check_one_way, check_positive, check_whole
from silograph.errors import ParameterError

MethodName = Literal["exact", "algorithm1", "independent", "pooled", "fedavg", "fedprox", "mrmtl", "ditto"]
COUPLED = ("exact", "algorithm1")  # the paper's model: these have ν and λ
PULLED = ("fedprox", "mrmtl", "ditto")
GRADIENT_ONLY = ("algorithm1", "fedavg", "fedprox")
EXACT_ONLY = ("exact", "pooled")
PAPER_ZETA = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """How to learn from several silos."""

    method: MethodName = "exact"
    degree: float | None = None  # or α and β; None: the default degree
    alpha: float | None = None
    beta: float | None = None
    coupling: float | None = None  # and sparsity, or ν and λ; None: the defaults
    sparsity: float | None = None
    nu: float | None = None
    lam: float | None = None
    zeta: float | None = None  # None: 0, or the paper's 0.5 where its gradient steps need it
    tol: float = 1e-6
    rounds: int | None = None  # None: the paper's 50, or at most 200 of an exact method
    solver: Literal["newton", "gradient"] | None = None  # None: newton where the method has an exact optimum
    pull: float | None = None  # strength μ of FedProx, MRMTL and Ditto, in units of 4β; None: 1
    local_steps: int = 5  # K
    step: float | Literal["lipschitz"] | None = None  # η; None: 0.005/α
    momentum: float = 0.9  # ξ
    weights: Literal["adaptive", "equal"] = "adaptive"  # γ; "equal" is the paper's ablation
    fresh: bool = False
    gamma_cap: float | None = None
    gamma_epsilon: float = 1e-8  # ε_γ
    first_weight: float = 0.1  # w⁰
    report: bool = True  # whether silos may tell their own numbers: samples, edges, distance, contribution

    def __post_init__(self) -> None:
        for field in fields(self):  # NumPy's numbers become Python's: settings are written down and compared
            value = getattr(self, field.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, field.name, value.item())
        if self.method not in get_args(MethodName):
            raise ParameterError(f"method: expected one of {', '.join(get_args(MethodName))}, got {self.method!r}.")
        self._check_numbers()
        if self.weights not in ("adaptive", "equal"):
            raise ParameterError(f"weights: expected 'adaptive' or 'equal', got {self.weights!r}.")
        check_one_way({"degree": self.degree}, {"alpha": self.alpha, "beta": self.beta})
        check_one_way({"coupling": self.coupling, "sparsity": self.sparsity}, {"nu": self.nu, "lam": self.lam})
        if self.lam == 0:
            raise ParameterError("lam: expected a number > 0, as rho = lam * nu. For no sparsity, use sparsity=0.")
        self._check_solver()
        self._check_used()

    def _check_numbers(self) -> None:
        for name in ("degree", "alpha", "beta", "nu", "tol", "gamma_epsilon", "first_weight", "gamma_cap", "step"):
            value = getattr(self, name)
            if value is not None and value != "lipschitz":
                check_positive(name, value)
        for name in ("coupling", "sparsity", "lam", "zeta", "pull"):
            if getattr(self, name) is not None:
                check_not_negative(name, getattr(self, name))
        for name in ("rounds", "local_steps"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least=1)
        check_momentum(self.momentum)

    def _check_solver(self) -> None:
        if self.solver not in (None, "newton", "gradient"):
            raise ParameterError(f"solver: expected 'newton' or 'gradient', got {self.solver!r}.")
        if self.solver == "newton" and self.method in GRADIENT_ONLY:
            raise ParameterError(
                f"solver: {self.method!r} is an iteration of gradient steps. For an exact optimum, use 'exact' "
                "(the paper's model) or 'pooled' (what FedAvg and FedProx aim at)."
            )
        if self.solver == "gradient" and self.method in EXACT_ONLY:
            raise ParameterError(f"solver: {self.method!r} is exact. For gradient steps, use 'algorithm1' or 'fedavg'.")
        if self.step == "lipschitz" and self.method != "algorithm1":
            raise ParameterError("step: 'lipschitz' is an option of Algorithm 1. Give a number, or leave it out.")

    def _check_used(self) -> None:
        """Raise for a setting that was given and would do nothing."""
        iterates = self.by_gradient or self.method in ("exact", "mrmtl")
        uses = {
            ("coupling", "sparsity", "nu", "lam"): self.method in COUPLED,
            ("pull",): self.method in PULLED,
            ("rounds",): iterates,
            ("local_steps", "step", "momentum", "first_weight"): self.by_gradient,
            ("weights",): self.method in COUPLED,
            ("fresh", "gamma_cap", "gamma_epsilon"): self.method == "algorithm1",
        }
        usual = {field.name: field.default for field in fields(self)}
        for names, used in uses.items():
            for name in names:
                if not used and getattr(self, name) != usual[name]:
                    how = "by gradient steps" if self.by_gradient else "solved exactly"
                    raise ParameterError(
                        f"{name}: the method {self.method!r}, {how}, has no such parameter. Leave it out."
                    )

    @property
    def by_gradient(self) -> bool:
        """Whether the method takes the paper's gradient steps."""
        return self.method in GRADIENT_ONLY or self.solver == "gradient"

    @property
    def pull_used(self) -> float:
        """The pull given, or 1."""
        return 1.0 if self.pull is None else self.pull

    @property
    def zeta_used(self) -> float:
        """The ζ given, or the method's own."""
        return (PAPER_ZETA if self.by_gradient else 0.0) if self.zeta is None else self.zeta
