"""The consensus by quorum: edges that are stable in at least so many silos, beside the model's own consensus."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from silograph._util.checks import check_whole
from silograph._util.types import BoolVector, Vector
from silograph.analysis.false_edges import check_threshold
from silograph.analysis.stability import GraphStability
from silograph.errors import ParameterError

ROUNDING = 1e-12  # of a part of half-samples


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quorum:
    """One number per pair."""

    weights: Vector  # the mean over the silos in which the pair is a stable edge; zero below the quorum
    counts: np.ndarray  # how many these are


def quorum(
    graphs: Mapping[str, Vector], stabilities: Mapping[str, GraphStability], least: int, threshold: float
) -> Quorum:
    """The edges that at least `least` silos have in at least a part `threshold` of their half-samples."""
    check_quorum(least, len(graphs))
    check_threshold(threshold)
    stable = np.array([is_stable(w, stabilities[name], threshold) for name, w in graphs.items()])
    total, counts = (stable * np.array(list(graphs.values()))).sum(axis=0), stable.sum(axis=0)
    weights = np.divide(total, counts, out=np.zeros_like(total), where=counts >= least)
    return Quorum(weights=weights, counts=counts)


def check_quorum(least: int, n_silos: int) -> None:
    """Raise unless so many of the silos can have an edge."""
    check_whole("quorum", least, least=1)
    if least > n_silos:
        raise ParameterError(f"quorum: expected at most {n_silos}, the number of silos, got {least}.")


def is_stable(w: Vector, stability: GraphStability, threshold: float) -> BoolVector:
    """Which edges of a graph are stable."""
    check_threshold(threshold)
    return np.asarray((w > 0) & (stability.frequency >= threshold - ROUNDING))
