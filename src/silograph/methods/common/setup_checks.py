"""What a silo checks in set-up: that it is asked no more than the study needs, and led to no other model.

A study's method says little without its parameters: with ρ = 0 the exact method is each silo's own graph, sent whole.
So a silo remembers what it was asked, and holds against it what the coordinator says that set-up found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from silograph.errors import ProtocolError
from silograph.local.degree import MAX_DEGREE_SOLVES

if TYPE_CHECKING:
    from silograph.methods.common.setup import Setup

ALIKE = 1e-9  # forces, relative to q‖u‖, that are rounding
SLACK = 1 + 1e-6  # where a silo's own term is compared with a sum, which is rounded
ORDER = ("rule", "degree", "costs", "forces", "empty")  # of steps; the second may be asked again


class ScalarsError(ProtocolError):
    """Parameters to which neither the study nor what a silo was asked in set-up can lead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupSilo:
    """What a silo was asked in set-up."""

    step: str  # the last one
    thetas: tuple[float, ...] = ()  # whose degree was asked
    alpha: float | None = None  # with which forces were asked
    force_square: float = 0.0  # its own ‖v‖² there,
    u_square: float = 0.0  # and ‖u‖²
    rho: float | None = None  # with which the force at u = 0 was asked


def take_turn(setup: "Setup", kept: SetupSilo | None, step: str) -> SetupSilo:
    """Each step in its turn, and none that the study does not need."""
    due = 2 * (setup.degree is None) if kept is None else ORDER.index(kept.step) + 1
    needless = {"forces": setup.coupling is None, "empty": not _is_sparse(setup)}.get(step, False)
    again = kept is not None and kept.step == step == "degree"
    if needless or not (again or ORDER.index(step) == due):
        raise ProtocolError(f"expected another step of this study's set-up, got {step!r}.")
    if step == "degree" and kept is not None and len(kept.thetas) >= MAX_DEGREE_SOLVES:
        raise ProtocolError(f"expected at most {MAX_DEGREE_SOLVES} trials of θ, got one more.")
    return SetupSilo(step=step) if kept is None else replace(kept, step=step)


def _is_sparse(setup: "Setup") -> bool:
    """Whether λ has to be found."""
    return bool(setup.coupling and setup.sparsity)


def check_model(setup: "Setup", kept: SetupSilo, alpha: float, beta: float) -> None:
    """α and β are the study's, or of a θ whose degree was asked; and the same wherever they are said."""
    if setup.degree is None:
        known = [(setup.alpha, setup.beta)]
    else:
        known = [(1 / theta, 1 / (2 * theta)) for theta in kept.thetas]
    if (alpha, beta) not in known or kept.alpha not in (None, alpha):
        raise ScalarsError(f"alpha, beta: expected those of the study and its set-up, got {alpha:g}, {beta:g}.")


def check_scalars(setup: "Setup", every: Sequence[SetupSilo], scalars: Mapping[str, float], n_silos: int) -> None:
    """Raise ScalarsError unless the study, and what an owner's silos were asked and answered, can lead to these."""
    kept = _together(every) if every else None
    coupled = setup.coupling is not None
    last = ("empty" if _is_sparse(setup) and scalars["rho"] > 0 else "forces") if coupled else "costs"
    if kept is None or ORDER.index(kept.step) < ORDER.index(last):
        raise ProtocolError(f"expected set-up to end with the step {last!r}, got learning before.")
    check_model(setup, kept, scalars["alpha"], scalars["beta"])
    if scalars["alike"] not in (0, 1):
        raise ScalarsError(f"alike: expected 0 or 1, got {scalars['alike']:g}.")
    expected = {"rho": (setup.rho or 0.0,) * 2, "lam": (setup.lam or 0.0,) * 2, "alike": (0.0, 0.0)}
    if coupled:
        expected = _coupled_bounds(setup, kept, scalars, n_silos)
    for name, (least, most) in expected.items():
        if not least <= scalars[name] <= most:
            span = f"{least:g}" if least == most else f"{least:g} to {most:g}"
            raise ScalarsError(f"{name}: expected {span}, got {scalars[name]:g}.")
    if kept.step != last:
        raise ScalarsError(f"rho: expected the one that {kept.step!r} was asked with, got {scalars['rho']:g}.")


def _together(every: Sequence[SetupSilo]) -> SetupSilo:
    """What silos that were asked the same know together: their terms of ρ_ref² add."""
    forces, largest = sum(kept.force_square for kept in every), max(kept.u_square for kept in every)
    return replace(every[0], force_square=forces, u_square=largest)


def _coupled_bounds(
    setup: "Setup", kept: SetupSilo, scalars: Mapping[str, float], n_silos: int
) -> dict[str, tuple[float, float]]:
    """Between which numbers ρ, λ and `alike` lie that come from sums, as far as the silo's own terms tell."""
    coupling, sparsity = setup.coupling or 0.0, setup.sparsity or 0.0
    own = float(np.sqrt(kept.force_square / n_silos))  # ρ_ref is no less: the others' terms only add
    rounding = ALIKE * 4 * scalars["beta"] * float(np.sqrt(kept.u_square))
    bounds = {"alike": (0.0, 1.0 if own <= SLACK * rounding else 0.0)}
    if scalars["alike"] or coupling == 0:
        return bounds | {"rho": (0.0, 0.0), "lam": (0.0, 0.0)}
    # Silos whose ρ_ref is rounding are alike, and told so; all others have a pull
    least = max(coupling * max(own, rounding) / SLACK, np.finfo(float).tiny)
    if sparsity == 0:
        return bounds | {"rho": (least, np.inf), "lam": (0.0, 0.0)}
    asked = kept.rho or np.inf  # if it is below the least, no ρ will do
    # No silo's force at u = 0 is above ρ, so that no entry of their sum is above n ρ
    return bounds | {"rho": (max(least, asked), asked), "lam": (0.0, SLACK * sparsity * n_silos * asked)}
