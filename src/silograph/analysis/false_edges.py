"""How many edges may be false among those that are stable: a bound on their expected number.

With q edges in a half-sample on average, p pairs, and a pair called stable if it is an edge in at least a part τ of B
complementary pairs of half-samples, the expected number of stable pairs that a half-sample has no better than by chance
(with a probability of at most q/p) is at most

    q²/p / (2τ − 1)                      Meinshausen and Bühlmann (2010); Shah and Samworth (2013), Theorem 1
    q²/p · 4(1 − τ + 1/2B)/(1 + 1/B)     for τ > 3/4, and 1/2(2τ − 1 − 1/2B) below: Shah and Samworth, Theorem 2, if the
                                         number of pairs of halves that agree on an edge has one mode

Graphs that are drawn to one consensus in all half-samples have no bound: all rows made it, so that chance alone brings
its edges back. Of 22 silos of noise with 30 nodes, 11 edges were stable at a coupling of .8, and 33 at 1.2; 2.5 is what
the formula says.

A pair that is no edge of the truth and yet is found more often than by chance, as neighbours of neighbours are, is not
among those that are counted.
"""

from dataclasses import dataclass

import numpy as np

from silograph._util.types import Vector
from silograph.errors import ParameterError

ASSUMES = (
    "It counts as false the pairs that half of the data would bring forth no more often than pairs at random, and "
    "assumes that how often the two halves agree on such a pair has one mode. A pair without a true edge that the data "
    "favour all the same, such as two neighbours of one node, is not counted."
)
SHARED = (
    "How many of them are false cannot be bounded: each half-sample was drawn to the consensus as it is, which all "
    "rows made, so that chance alone may bring its edges back."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseEdges:
    """What a bound rests on."""

    n_pairs: int  # p
    n_edges: float  # q, of a half-sample on average
    n_halves: int  # 2B
    one_consensus: bool = False  # whether all half-samples were drawn to the same

    def bound(self, threshold: float) -> float:
        """The most that the expected number can be; no more than the number of pairs."""
        if self.one_consensus:
            return float(self.n_pairs)
        return min(self.worst_case(threshold), self.one_mode(threshold), float(self.n_pairs))

    def worst_case(self, threshold: float) -> float:
        """Without an assumption on how often halves agree."""
        check_threshold(threshold)
        return self.n_edges**2 / self.n_pairs / (2 * threshold - 1) if threshold > 0.5 else np.inf

    def one_mode(self, threshold: float) -> float:
        """If that number has one mode."""
        check_threshold(threshold)
        chance, b = self.n_edges / self.n_pairs, self.n_halves // 2
        if b < 1 or chance > 1 / np.sqrt(3):
            return np.inf
        if threshold > 0.75:
            factor = 4 * (1 - threshold + 1 / (2 * b)) / (1 + 1 / b)
        elif threshold > min(0.5 + chance**2, 0.5 + 1 / (2 * b) + 0.75 * chance**2) and 2 * threshold > 1 + 1 / (2 * b):
            factor = 1 / (2 * (2 * threshold - 1 - 1 / (2 * b)))
        else:
            return np.inf
        return factor * chance * self.n_edges

    def says(self, threshold: float, kept: int) -> str:
        """The bound in words, or that it says nothing."""
        bound = self.bound(threshold)
        if kept == 0:
            return "No edge is that stable, so that there is nothing to bound."
        if self.one_consensus:
            return SHARED
        if bound >= kept:
            return (
                f"How many of them are false cannot be bounded: a half-sample has {self.n_edges:.0f} edges on "
                f"{self.n_pairs} pairs, too many for chance to be told from stability. Ask for a lower degree."
            )
        return f"At most {bound:.2g} of these {kept} are expected to be false. {ASSUMES}"


def bound_false_edges(frequency: Vector, *, n_halves: int, one_consensus: bool = False) -> FalseEdges:
    """From the part of half-samples in which each pair is an edge."""
    n_edges = float(frequency.sum())
    return FalseEdges(n_pairs=frequency.size, n_edges=n_edges, n_halves=n_halves, one_consensus=one_consensus)


def check_threshold(threshold: float) -> None:
    """Raise unless it is a part."""
    if not 0 < threshold <= 1:
        raise ParameterError(f"stable: expected a part of half-samples, above 0 and up to 1, got {threshold:g}.")
