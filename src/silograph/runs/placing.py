"""A silo placed beside a fixed consensus: its own graph, its certificate, and how unusual it is in words."""

from dataclasses import dataclass, replace

import numpy as np

from silograph._util.naming import setting
from silograph._util.types import Vector
from silograph.analysis.beside import Beside, OwnGraph, choose_pull, graph_beside
from silograph.analysis.newcomers import FEWEST_ROWS, LEAST_FOR_LEVEL, Comparison, compare, distance_of
from silograph.errors import SignalError
from silograph.graph.graph import Graph
from silograph.graph.strongest import keep_strongest
from silograph.local.prox import add_pull
from silograph.local.solvers.polish import solve_to_rounding
from silograph.protocol.silo import Silo
from silograph.protocol.units import check_costs
from silograph.runs.consensus import ConsensusRecord, FixedConsensus


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """A newcomer's graph, and where it lies."""

    own: OwnGraph
    shown: Vector  # its strongest edges, on its own pairs
    pull: float | None  # in units of 4β; None: infinite
    gap: float
    distance: float
    comparison: Comparison


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Newcomer:
    """A silo beside a consensus that it had no part in: what `ConsensusGraph.place` returns."""

    graph: Graph  # its own, drawn to the consensus
    pull: float | None  # in units of 4β; None: its graph is the consensus
    gap: float  # certified, of its graph
    distance: float  # to the consensus; below zero where it is nearer than chance
    farther_than: int  # of so many silos that were left out:
    n: int
    p: float | None  # that a silo drawn like these is as far; None: fewer than 19 of them
    usual: bool | None  # whether p is above .05
    says: str

    @classmethod
    def of(cls, placed: Placed, graph: Graph, told: ConsensusRecord) -> "Newcomer":
        """With names."""
        found = placed.comparison
        return cls(
            graph=graph,
            pull=placed.pull,
            gap=placed.gap,
            distance=placed.distance,
            farther_than=found.farther_than,
            n=found.n,
            p=found.p,
            usual=found.usual,
            says=says_of(told, placed),
        )


def place(silo: Silo, fixed: FixedConsensus) -> Placed:
    """The newcomer's own graph under the pull of the consensus, and its distance among those of silos left out."""
    told, beside = fixed.record, fixed.beside
    check_costs(silo.cost, told.cost_unit, silo.name)
    n_blocks = 0 if silo.blocks is None else len(silo.blocks.counts)
    if (told.rows is not None or told.chooses_pull) and n_blocks < FEWEST_ROWS:
        raise SignalError(f"{silo.name}: expected at least {FEWEST_ROWS} rows to halve, got {n_blocks}. Add rows.")
    if told.chooses_pull:
        beside = replace(beside, pull=choose_pull(silo, beside))
    own = graph_beside(silo, beside)
    distance = distance_of(silo, beside, fixed.count, rows=told.rows)
    return Placed(
        own=own,
        shown=own.w if told.degree is None else keep_strongest(silo.pairs, own.w, told.degree),
        pull=None if np.isinf(own.strength) else own.strength / (4 * told.beta),
        gap=_gap(silo, beside, own),
        distance=distance,
        comparison=compare(distance, [one.distance for one in told.left_out]),
    )


def says_of(told: ConsensusRecord, placed: Placed) -> str:
    """How unusual the newcomer is, in words."""
    found = placed.comparison
    if not found.n:
        return (
            "How unusual that is cannot be told: of the silos that made the consensus, none was left out. Learn them "
            f"with {setting('newcomers', True)}."
        )
    rank = f"It is farther from the consensus than {found.farther_than} of {found.n} silos that were left out"
    if found.p is None:
        return f"{rank}. Whether that is usual can be told from {LEAST_FOR_LEVEL} silos on."
    if found.usual:
        return f"Usual: {rank[0].lower()}{rank[1:]}, p = {found.p:.2g}."
    return (
        f"Unusual: {rank[0].lower()}{rank[1:]}, p = {found.p:.2g}. Of silos drawn like those, at most one in twenty "
        "lies as far."
    )


def _gap(silo: Silo, beside: Beside, own: OwnGraph) -> float:
    """The certified gap of the graph at its pull; one that is the consensus is held by no more force than ρ allows."""
    if np.isinf(own.strength):
        return 0.0
    problem = silo.problem(alpha=beside.alpha, beta=beside.beta, zeta=beside.zeta)
    pulled = add_pull(problem, silo.take(beside.consensus), own.strength)
    bound = solve_to_rounding(pulled, None)
    left = pulled.value(own.w) - (bound.primal - bound.gap)
    return max(0.0, float(left / pulled.scale(bound.primal)))
