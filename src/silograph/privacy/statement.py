"""What may be said of a run that carries noise: the guarantee in numbers, for whom it holds, and what is outside."""

from dataclasses import dataclass
from typing import Literal

from silograph.privacy.accounting import multiplier_for, rho_of
from silograph.privacy.settings import Privacy


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The guarantee of one run."""

    epsilon: float
    delta: float
    unit: Literal["row", "table"]  # what may be replaced without showing
    rows: Literal["unit"] | float  # rows were brought to length 1, or cut to this length
    min_samples: int | None  # rows that every table has at least, which counts as known
    masked: bool  # whether each site added a share of the noise, and masks hide whose
    collusion: int | None  # sites that may tell their shares; None: each site added all of the noise
    multiplier: float  # σ₁: noise in units of the sensitivity
    rho: float  # what it costs, as zero-concentrated differential privacy
    graphs_inside: bool  # whether silos' graphs are inside the guarantee
    says: str


def statement_of(privacy: Privacy, *, graphs_inside: bool) -> Statement | None:
    """What may be said; nothing without ε. `graphs_inside`: silos' own costs carried noise, and so their graphs do."""
    if privacy.epsilon is None or privacy.delta is None:
        return None
    multiplier = multiplier_for(privacy.epsilon, privacy.delta)
    return Statement(
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        unit=privacy.unit,
        rows=privacy.rows,
        min_samples=privacy.min_samples,
        masked=privacy.masked,
        collusion=privacy.collusion if privacy.masked else None,
        multiplier=multiplier,
        rho=rho_of(multiplier),
        graphs_inside=graphs_inside,
        says=_words(privacy, graphs_inside=graphs_inside),
    )


def _words(privacy: Privacy, *, graphs_inside: bool) -> str:
    inside = "The consensus and the silos' graphs are" if graphs_inside else "The consensus is"
    what = "row of a table" if privacy.unit == "row" else "whole table"
    said = (
        f"{inside} ({privacy.epsilon:g}, {privacy.delta:g})-differentially private: another {what} in the place of one "
        f"changes how likely any result is by the factor e^{privacy.epsilon:g} at most, but for a chance of "
        f"{privacy.delta:g}. Numbers of rows and of tables count as known."
    )
    if graphs_inside:
        return said
    return f"{said} The silos' own graphs are made of exact data; publishing them is outside the guarantee."
