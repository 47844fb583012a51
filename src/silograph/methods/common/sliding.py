"""When the consensus drifts: a way down that no round finds by itself, and how far to go it.

Between two silos the consensus may lie anywhere almost equally well: on the line from one graph to the other both pulls
are straight and their sum is level, so that λ alone tilts it. The splitting then moves u by λ/Σm a round, for about ν
rounds, and mixing does not help where residuals stay as they are. A detour of two exchanges finds the end of the line:

    look    Σ d_i, Σ t_i d_i, Σ t_i and Σ t_i², where d_i = w_i − u and t_i = 1ᵀd_i: with two silos they tell both d_i
    probe   the objective at u + t·way for some t, every graph left as it is

The way is the d_i along which the objective falls, (λ − Σ v)ᵀd_i < 0. What is probed is an upper bound, so that to go
to its least value never makes the objective worse. At t = 1 the consensus is that silo's graph, which is then fused.
Where neither leads down, as on the way to an empty consensus, the way is the one that u went last, continued.

Only two silos are ever asked to look. From three on 99.7 % of 2000 random problems take at most 25 rounds without; and
their sums would not tell the ways apart, so that each silo would have to choose whether to tell its own: then a
coordinator could pose the question so that one patient of many answers.
"""

from dataclasses import dataclass, replace

import numpy as np

from silograph._util.types import Vector
from silograph._util.vectors import distance, dot

# Behind each, in brackets, what else was tried on 800 random problems with two silos, as benchmarks/joint/fuzz.py draws
# them: the percentage that takes more than 25 rounds, one after the other while WORTH was 0.02 and it was 1.6. As it
# stands it is 1.1, and 4.1 without detours; all were certified
PATIENCE = 2  # rounds that are alike before a detour
MORE = 2  # rounds longer after a detour that was not worth it [1 and 4: 1.6]
FALLEN = 0.8  # part of the last gap, above which it has hardly fallen [0.7: 1.5, 0.9: 1.4]
ALIKE = 0.2  # by how much of itself what the forces miss may change [0.1: 1.4, 0.4: 1.6]
WORTH = 0.1  # part of the gap that a way must gain [0.02: 1.6, 0.3: 1.8]
NO_TILT = 1e-9  # relative difference of two tilts, below which rounding makes the ways
FURTHER = 16.0  # times the way that u went last, where no silo tells one [4: 1.9, 64: 1.6]
# How far to look: all of the way is where a silo fuses, and near it one that nearly does
FRACTIONS = np.concatenate([np.arange(20) / 20, 1 - 2.0 ** -np.arange(5, 12), [1.0, 1.1, 1.25, 1.5, 2.0]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """For how many rounds hardly anything has changed but u."""

    missing: float = np.inf  # ‖λ − Σ v‖ in the last round
    rounds: int = 0
    patience: int = PATIENCE

    def after(self, missing: Vector, *, fallen: float, fused: float) -> "Drift":
        """One round later; `fallen` is the gap as a part of the one before."""
        size = float(np.sqrt(dot(missing, missing)))
        alike = (1 - ALIKE) * self.missing < size < (1 + ALIKE) * self.missing
        rounds = self.rounds + 1 if alike and fallen > FALLEN and not fused else 0
        return replace(self, missing=size, rounds=rounds)

    @property
    def is_long(self) -> bool:
        """Whether a detour may help."""
        return self.rounds >= self.patience

    def ended(self, *, worth: bool) -> "Drift":
        """After a detour."""
        return replace(self, rounds=0, patience=self.patience if worth else self.patience + MORE)


def lean_of(w: Vector, u: Vector, unit: float) -> dict[str, Vector | float]:
    """What a silo tells when it looks; its tilt t is counted in `unit`."""
    apart: Vector = w - u
    tilt = float(apart.sum()) / unit
    return {"apart": apart, "tilted": tilt * apart, "tilt": tilt, "tilt_square": tilt**2}


def find_way(apart: Vector, tilted: Vector, tilt: float, tilt_square: float, missing: Vector) -> Vector | None:
    """Of the ways from u to the graphs of two silos, that along which the objective falls most; nothing if it rises."""
    spread = np.sqrt(max(2 * tilt_square - tilt**2, 0.0))  # |t_1 − t_2|
    if spread <= NO_TILT * np.sqrt(tilt_square):
        return None
    low, high = (tilt - spread) / 2, (tilt + spread) / 2
    ways = [(tilted - high * apart) / -spread, (tilted - low * apart) / spread]
    slopes = [dot(missing, way) for way in ways]
    best = int(np.argmin(slopes))
    return ways[best] if slopes[best] < 0 else None


def along(u: Vector, way: Vector) -> list[Vector]:
    """The points of a way that are looked at; the first is u."""
    return [np.maximum(u + part * way, 0.0) for part in FRACTIONS]


def values_along(w: Vector, u: Vector, way: Vector, *, own: float, rho: float) -> Vector:
    """g(w) + ρ‖w − u'‖ at the points u' of a way; `own` is g(w)."""
    return np.array([own + rho * distance(w, point) for point in along(u, way)])
