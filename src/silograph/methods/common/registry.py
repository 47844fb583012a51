"""The methods by name: what each needs of a study's settings, what it certifies, how it is made for a study.

A method is one file of the package above, with its two halves and a `MethodSpec` called METHOD. Its name is the file's.
All else is derived from it: choices and checks of settings, warnings, what a record and a report show. Methods of other
packages are registered by `register`, or by an entry point in the group "silograph.methods".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal

import silograph.methods
from silograph.errors import ParameterError

if TYPE_CHECKING:
    from silograph.graph.pairs import Pairs
    from silograph.methods.common.settings import StudySettings
    from silograph.methods.common.setup import ModelParameters, SetupMethod
    from silograph.protocol.method import Method
    from silograph.protocol.silo import Silo

GROUP = "silograph.methods"  # of entry points
GRADIENT_SETTINGS = frozenset({"rounds", "local_steps", "step", "momentum", "first_weight"})
COUPLING_SETTINGS = frozenset({"coupling", "sparsity", "nu", "lam", "weights"})
# What some methods have and others have not; all other settings are for every method
SPECIAL_SETTINGS = GRADIENT_SETTINGS | COUPLING_SETTINGS | {
    "pull", "sums", "fresh", "gamma_cap", "gamma_epsilon", "missing_nodes",
}  # fmt: skip
Option = float | int | str | bool
Trouble = Callable[[float, Sequence[Mapping[str, Any]]], str | None]


class UnknownMethodError(ParameterError):
    """There is no such method here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """One way to run a method: exactly (Newton's), or by the paper's gradient steps."""

    settings: frozenset[str] = frozenset()  # that it has beyond those of every method
    certified: bool = True  # whether it ends with a duality gap
    degree_of: str = "the silos' graphs, each learned alone"  # what a degree is about that set-up finds
    consensus: Literal["joint", "pooled"] = "joint"  # what it is the optimum of: the silos' graphs, or their mean costs
    lipschitz: bool = False  # whether it knows the step "lipschitz"
    trouble: Trouble | None = None  # what to tell of a run that ended badly, by its gap and its history

    def __post_init__(self) -> None:
        unknown, some = self.settings - SPECIAL_SETTINGS, self.settings & COUPLING_SETTINGS
        if unknown or some not in (frozenset(), {"sparsity"}, COUPLING_SETTINGS):
            raise ParameterError(
                f"Solver: expected settings among {', '.join(sorted(SPECIAL_SETTINGS))}, those of a coupled model "
                f"({', '.join(sorted(COUPLING_SETTINGS))}) all, none or sparsity alone, got "
                f"{', '.join(sorted(self.settings))}."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSpec:
    """All that the rest of silograph knows of a method."""

    build: "Callable[[StudySettings, ModelParameters], Method]"
    about: str = ""  # a sentence on its consensus, for the record and the report
    newton: Solver | None = None
    gradient: Solver | None = None
    options: Mapping[str, Option] = field(default_factory=dict)  # settings of its own, with their defaults
    setup: "Callable[[StudySettings, Pairs], SetupMethod] | None" = None  # its own set-up; None: the usual exchange
    blocks: bool = False  # whether silos need blocks of their rows
    # Whether its set-up opens one sum of costs, and nothing that silos tell after it depends on them
    one_sum: bool = False
    own_graphs: bool = True  # whether silos have graphs of their own; else theirs is the consensus
    check_silo: "Callable[[StudySettings, Silo], None]" = lambda settings, silo: None  # raises for data it cannot use

    def __post_init__(self) -> None:
        if self.newton is None and self.gradient is None:
            raise ParameterError("MethodSpec: expected newton or gradient, a way to run the method, got neither.")

    @property
    def default_solver(self) -> str:
        """Newton's where there is a choice."""
        return "gradient" if self.newton is None else "newton"


_registered: dict[str, MethodSpec] = {}


@cache
def built_in() -> tuple[str, ...]:
    """The methods of this package, the default one first. No method is imported for that."""
    names = [module.name for module in iter_modules(silograph.methods.__path__) if not module.ispkg]
    return tuple(sorted(names, key=lambda name: (name != "exact", name)))


@cache
def _plugged_in() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def method_names() -> tuple[str, ...]:
    """Every method that a study may name."""
    return tuple(dict.fromkeys((*built_in(), *_registered, *_plugged_in())))


def register(name: str, spec: MethodSpec) -> None:
    """Add a method for as long as this process lives; one that was registered under this name before is replaced."""
    if name in (*built_in(), "setup"):
        raise ParameterError(f"method: {name!r} is one of silograph's own. Choose another name.")
    _registered[name] = spec


def check_method(name: str, where: str = "method") -> None:
    """Raise unless there is such a method."""
    known = method_names()
    if name not in known:
        near = get_close_matches(str(name)[:100], known, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise UnknownMethodError(f"{where}: expected one of {', '.join(known)}, got {name!r}.{meant}")


def spec_of(name: str) -> MethodSpec:
    """What is known of a method."""
    if name in _registered:
        return _registered[name]
    if name in built_in():
        spec = import_module(f"silograph.methods.{name}").METHOD
    else:
        check_method(name)
        spec = _plugged_in()[name].load()
    if not isinstance(spec, MethodSpec):
        raise ParameterError(f"method: {name!r} has no MethodSpec. See how a method is written in the documentation.")
    return spec
