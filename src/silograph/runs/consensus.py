"""consensus.json and consensus.npz: what a newcomer is learned beside, once those who made the consensus are gone.

The consensus is kept whole, with all edges of the optimum, and exact. Where every silo was in one process and it was
asked for, there are also the distances of silos that were left out (analysis/newcomers.py).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from silograph._util.files import sha256_of
from silograph._util.plain import PlainDataError, from_plain
from silograph._util.types import Vector
from silograph.analysis.beside import Beside, pull_of
from silograph.analysis.newcomers import LeftOut, has_consensus_to_join
from silograph.data.costs import Missing, MissingNodes
from silograph.data.ranks import Transform
from silograph.engine.study import StudyResult
from silograph.errors import GraphError
from silograph.graph.files import write_arrays
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from silograph.runs.layout import FIXED_ARRAYS, RunLayout

FIXED_FORMAT = 1
AGAIN = "Bring the run's folder back as it was, or learn again."


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusRecord:
    """consensus.json: all but the weights."""

    format: int = FIXED_FORMAT
    nodes: tuple[str, ...]
    silos: tuple[str, ...]  # that made it; of sites with several, the sites
    method: str
    alpha: float
    beta: float
    zeta: float
    rho: float
    pull: float | None  # of methods that have one, in units of 4β; None: found by ρ, or chosen
    chooses_pull: bool  # by rows that the newcomer holds out
    degree: float | None  # of the strongest edges that graphs keep; None: all are kept
    cost_unit: float
    standardize: bool
    transform: Transform
    missing: Missing
    missing_nodes: MissingNodes
    precomputed: bool
    rows: int | None  # from two halves of which distances are; None: from whole graphs
    left_out: tuple[LeftOut, ...]  # none: not asked for, or not known
    arrays: str = FIXED_ARRAYS
    sha256: str = ""  # of the arrays


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FixedConsensus:
    """The record and the weights."""

    record: ConsensusRecord
    pairs: Pairs
    weights: Vector  # of the whole optimum, by pair
    count: Vector | None = None  # of the silos that have each pair; None: all have all
    sha256: str = ""  # of consensus.json, where it was read

    @property
    def beside(self) -> Beside:
        """What a newcomer's graph is learned beside, but for a pull that it chooses."""
        told = self.record
        return Beside(
            consensus=self.weights,
            alpha=told.alpha,
            beta=told.beta,
            zeta=told.zeta,
            rho=told.rho,
            pull=told.pull,
            degree=told.degree,
        )


def fixed_consensus(
    learned: StudyResult,
    settings: StudySettings,
    pairs: Pairs,
    *,
    nodes: Sequence[str],
    silos: Mapping[str, int],
    options: Mapping[str, Any],
    left_out: Sequence[LeftOut] = (),
    rows: int | None = None,
) -> FixedConsensus | None:
    """What was learned, for newcomers; nothing where none can be learned beside it. `silos`: how many each name is."""
    n_silos = sum(silos.values())
    if not has_consensus_to_join(settings, n_silos):
        return None
    asked = learned.degree_asked
    pull = pull_of(settings, None, rho=learned.rho, beta=learned.beta, n_silos=n_silos)
    record = ConsensusRecord(
        nodes=tuple(nodes),
        silos=tuple(silos),
        method=settings.method,
        alpha=float(learned.alpha),
        beta=float(learned.beta),
        zeta=float(settings.zeta_used),
        rho=float(learned.rho),
        pull=None if settings.holds_out or pull is None else float(pull),
        chooses_pull=settings.holds_out,
        degree=None if learned.optimum is None or asked is None else float(asked),
        cost_unit=learned.cost_unit,
        standardize=options["standardize"],
        transform=options["transform"],
        missing=options.get("missing", "error"),
        missing_nodes=settings.missing_nodes,
        precomputed=options.get("precomputed", False),
        rows=rows,
        left_out=tuple(left_out),
    )
    return FixedConsensus(record=record, pairs=pairs, weights=learned.whole_consensus, count=learned.count)


def write_fixed(layout: RunLayout, fixed: FixedConsensus) -> None:
    """Write both files."""
    edges = np.flatnonzero(fixed.weights)
    arrays: dict[str, np.ndarray] = {"edges": edges, "weights": fixed.weights[edges]}
    if not fixed.pairs.is_all:
        arrays |= {"rows": fixed.pairs.rows, "cols": fixed.pairs.cols}
    if fixed.count is not None:
        arrays |= {"count": fixed.count}
    write_arrays(layout.fixed_arrays, arrays)
    record = replace(fixed.record, sha256=sha256_of(layout.fixed_arrays))
    text = json.dumps(asdict(record), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    layout.fixed.write_text(text, encoding="utf-8")


def read_fixed(layout: RunLayout) -> FixedConsensus:
    """Read both; raises, naming the file, where one is not as it was written."""
    path, arrays_at = layout.fixed, layout.fixed_arrays
    try:
        record = from_plain(ConsensusRecord, json.loads(path.read_text(encoding="utf-8")))
        if record.format != FIXED_FORMAT or record.arrays != FIXED_ARRAYS:
            raise PlainDataError(f"format: expected {FIXED_FORMAT}")
        is_same = sha256_of(arrays_at) == record.sha256
        if not is_same:
            raise PlainDataError(f"{arrays_at.name} is not the file that it was written with")
        with np.load(arrays_at, allow_pickle=False) as data:
            arrays = dict(data)
    except (OSError, ValueError, PlainDataError) as error:
        raise GraphError(f"{path}: cannot be read ({error}). {AGAIN}") from error
    n_nodes = len(record.nodes)
    pairs = Pairs.from_sorted(n_nodes, arrays["rows"], arrays["cols"]) if "rows" in arrays else Pairs.all(n_nodes)
    weights = np.zeros(pairs.size)
    weights[arrays["edges"]] = arrays["weights"]
    return FixedConsensus(
        record=record, pairs=pairs, weights=weights, count=arrays.get("count"), sha256=sha256_of(path)
    )
