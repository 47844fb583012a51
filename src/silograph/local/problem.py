"""The one local problem of this library, its dual, and the certificate that ties them.

    primal   min over w ≥ 0   cᵀw + (q/2)‖w‖² − α Σ_v log((Sw)_v + ζ)
    dual     max over y > 0   −(1/2q) Σ_e (y_i + y_j − c_e)₊² + α Σ_v log y_v − ζ Σ_v y_v + α d (1 − log α)

Independent learning is c = z/N and q = 4β. A pull of strength s towards an anchor a is the same problem with
c = z/N − s·a and q = 4β + s, so every method of the library solves this and nothing else.

The duality gap is a sum of non-negative terms, one per node and one per pair, and is computed as that sum. Primal minus
dual would lose it in rounding: with r_v = ((Sw)_v + ζ)·y_v/α the terms of the nodes are α(r − 1 − log r), and the
terms of the pairs vanish at w(y)_e = (y_i + y_j − c_e)₊/q.
"""

from dataclasses import dataclass, replace

import numpy as np

from silograph._util.checks import check_not_negative, check_positive
from silograph._util.kernel import kernel
from silograph._util.types import IntVector, Vector
from silograph._util.vectors import dot, scratch
from silograph.errors import PairsError, ParameterError
from silograph.graph.pairs import Pairs, fill_degrees

SERIES = 1e-3  # how near to 1 a ratio takes the series of its logarithm; what that leaves out is 3e-16 of the sum


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalProblem:
    """cᵀw + (q/2)‖w‖² − α Σ log(Sw + ζ) over w ≥ 0, one weight per pair."""

    cost: Vector  # c, one number per pair; may be negative
    pairs: Pairs
    quadratic: float | Vector  # q > 0; one number, or one per pair
    alpha: float  # > 0
    zeta: float = 0.0  # ≥ 0

    def __post_init__(self) -> None:
        _check_quadratic(self.quadratic, self.pairs.size)
        check_positive("alpha", self.alpha)
        check_not_negative("zeta", self.zeta)
        if self.cost.shape != (self.pairs.size,):
            raise ParameterError(
                f"cost: expected {self.pairs.size} numbers, one per pair, got shape {self.cost.shape}."
            )
        if self.zeta == 0 and self.pairs.isolated().size:
            raise PairsError("pairs: every node needs a pair when zeta is 0. Allow it one, or set zeta > 0.")
        for name in ("quadratic", "alpha", "zeta"):  # a whole number would have every loop compiled once more
            if not isinstance(getattr(self, name), np.ndarray):
                object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def n_nodes(self) -> int:
        """d, the number of nodes."""
        return self.pairs.n_nodes

    @property
    def inverse(self) -> Vector:
        """1/q as compiled loops take it: an array of one number, or of one per pair."""
        return 1 / self.quadratic if isinstance(self.quadratic, np.ndarray) else np.array([1 / self.quadratic])

    def value(self, w: Vector) -> float:
        """The primal objective; infinite where a degree plus ζ is not positive."""
        linear, square, logs = _terms(*self.pairs.index, self.cost, w, self.zeta, self.n_nodes)
        weighted = dot(self.quadratic * w, w) if isinstance(self.quadratic, np.ndarray) else self.quadratic * square
        return linear + 0.5 * weighted - self.alpha * logs

    def gradient(self, w: Vector, degrees: Vector | None = None) -> Vector:
        """The gradient of the primal objective in w; as if nodes had other degrees, if these are given."""
        pull = self.pairs.sums(self.alpha / ((self.pairs.degrees(w) if degrees is None else degrees) + self.zeta))
        return self.cost + self.quadratic * w - pull

    def weights(self, y: Vector) -> Vector:
        """w(y), the weights that the multipliers y call for; exactly zero where no edge is called for."""
        out = np.maximum(self.pairs.sums(y) - self.cost, 0.0)
        out /= self.quadratic
        return out

    def multipliers(self, w: Vector) -> Vector:
        """The multipliers y = α/(Sw + ζ) that the weights w call for."""
        return self.alpha / (self.pairs.degrees(w) + self.zeta)

    def reduced_cost(self, y: Vector) -> Vector:
        """c_e − y_i − y_j: how far a pair is from being worth an edge (negative: it is one)."""
        return self.cost - self.pairs.sums(y)

    def gap(self, w: Vector, y: Vector) -> float:
        """Primal at w ≥ 0 minus dual at y > 0, free of cancellation; infinite where w is not feasible."""
        slack, error = self._slack(y)
        edges = np.where(
            slack + error > 0,
            (self.quadratic * w - slack - error) ** 2 / (2 * self.quadratic),
            0.5 * self.quadratic * w**2 - (slack + error) * w,
        )
        return float(edges.sum()) + self.node_gap(self.pairs.degrees(w), y)

    def _slack(self, y: Vector) -> tuple[Vector, Vector]:
        """y_i + y_j − c_e as a rounded number and what the rounding lost (Knuth's two-sum, twice).

        Where costs are 1e13 times √(αq), what is lost is larger than the weight itself.
        """
        left, right = y[self.pairs.rows], y[self.pairs.cols]
        total, lost = _two_sum(left, right)
        slack, lost_again = _two_sum(total, -self.cost)
        return slack, lost + lost_again

    def node_gap(self, degrees: Vector, y: Vector) -> float:
        """The gap at w(y), given its degrees S w(y) and apart from the rounding of w(y)."""
        excess = (degrees + self.zeta) * y / self.alpha - 1.0
        if excess.min() <= -1.0:
            return np.inf
        # r − 1 − log r loses all digits near r = 1, where it is (r − 1)²/2 − (r − 1)³/3 + …
        small = np.clip(excess, -SERIES, SERIES)
        series = small**2 * (0.5 - small * (1 / 3 - small * (0.25 - small * (0.2 - small / 6))))
        return float(self.alpha * np.where(np.abs(excess) < SERIES, series, excess - np.log1p(excess)).sum())

    def rounding(self, y: Vector, *, n_pairs: int | None = None) -> float:
        """A bound on what the rounding of w(y) adds to the gap there: each slack is off by at most 4ε·max y.

        `n_pairs` are those of the whole problem, where this is one on fewer.
        """
        slack = 4 * np.finfo(np.float64).eps * float(y.max())
        if isinstance(self.quadratic, np.ndarray):
            return float((1 / self.quadratic).sum()) * slack**2 / 2
        return (self.pairs.size if n_pairs is None else n_pairs) * slack**2 / (2 * self.quadratic)

    def scale(self, primal: float) -> float:
        """What a gap is measured against: |primal|, but never less than a millionth of αd.

        αd is the problem's own unit (cᵀw + q‖w‖² = αd at the optimum when ζ = 0), and guards the case where the primal
        happens to be near zero.
        """
        return max(abs(primal), 1e-6 * self.alpha * self.n_nodes)

    def restricted(self, pairs: Pairs, cost: Vector) -> "LocalProblem":
        """The same problem on fewer pairs."""
        return replace(self, pairs=pairs, cost=cost)


def _two_sum(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """The rounded sum, and the error of it, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _check_quadratic(quadratic: float | Vector, n_pairs: int) -> None:
    if not isinstance(quadratic, np.ndarray):
        check_positive("quadratic", quadratic)
    elif quadratic.shape != (n_pairs,) or not (np.isfinite(quadratic).all() and quadratic.min() > 0):
        raise ParameterError(f"quadratic: expected one finite number > 0, or one for each of the {n_pairs} pairs.")


# Products are loops: BLAS would call its threads, and wait for a busy core longer than these take.


@kernel
def _terms(
    all_pairs: bool, rows: IntVector, cols: IntVector, cost: Vector, w: Vector, zeta: float, n_nodes: int
) -> tuple[float, float, float]:
    """cᵀw, wᵀw and Σ log(Sw + ζ), which is −∞ where one of these is not positive."""
    linear = square = logs = 0.0
    for e in range(w.size):
        linear += cost[e] * w[e]
        square += w[e] * w[e]
    degrees = scratch(n_nodes)
    fill_degrees(all_pairs, rows, cols, w, degrees)
    for v in range(n_nodes):
        if degrees[v] + zeta <= 0.0:
            return linear, square, -np.inf
        logs += np.log(degrees[v] + zeta)
    return linear, square, logs
