"""Spreads of repeated measurements, and how a cost grows: the exponent of a power law, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Several values of the same thing."""

    median: float
    least: float
    most: float


def spread(values: Sequence[float]) -> Spread:
    """The median of the values, the least and the most."""
    return Spread(median=median(values), least=min(values), most=max(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """value = factor · size^exponent, and the 95 % interval of the exponent."""

    factor: float
    exponent: float
    low: float
    high: float
    sizes: tuple[float, ...]  # those it was fitted to

    def at(self, size: float) -> float:
        """The value that the law gives at a size."""
        return float(self.factor * size**self.exponent)


def power_law(sizes: Sequence[float], values: Sequence[float]) -> PowerLaw:
    """The line of least squares through the logarithms, with Student's interval of its slope.

    The interval is that of the medians around the line, so it tells both noise and whether a power law fits at all.
    """
    if len(sizes) < 3:
        raise ValueError(f"A power law: expected at least 3 sizes, got {len(sizes)}. Measure more of them.")
    x, y = np.log(sizes), np.log(values)
    apart = x - x.mean()
    slope = float(apart @ y / (apart @ apart))
    left = y - y.mean() - slope * apart
    freedom = len(sizes) - 2
    error = np.sqrt(left @ left / freedom / (apart @ apart))
    reach = float(stdtrit(freedom, (1 + CONFIDENCE) / 2) * error)
    factor = float(np.exp(y.mean() - slope * x.mean()))
    return PowerLaw(factor=factor, exponent=slope, low=slope - reach, high=slope + reach, sizes=tuple(sizes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What was measured at each size, and the law from some size on, if enough sizes were measured."""

    sizes: tuple[float, ...]
    spreads: tuple[Spread, ...]
    law: PowerLaw | None


def curve(points: Sequence[tuple[float, Sequence[float]]], fitted_from: float) -> Curve:
    """The curve through points, each a size and the values measured there."""
    ordered = sorted(points, key=lambda point: point[0])
    sizes, spreads = tuple(size for size, _ in ordered), tuple(spread(values) for _, values in ordered)
    used = [(size, one.median) for size, one in zip(sizes, spreads, strict=True) if size >= fitted_from]
    law = power_law([size for size, _ in used], [value for _, value in used]) if len(used) >= 3 else None
    return Curve(sizes=sizes, spreads=spreads, law=law)
