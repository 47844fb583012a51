"""The record of a run, run.json: one schema for one table, for several silos and for a federation."""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from silograph._util.plain import PlainDataError, from_plain
from silograph.engine.study import TriedCoupling
from silograph.errors import GraphError
from silograph.privacy.statement import Statement

RECORD_FORMAT = 7
AGAIN = "Run `silograph learn` again, or bring the folder back as it was."


@dataclass(frozen=True, slots=True, kw_only=True)
class SiloRecord:
    """One silo, or the only table: what was learned from, and its graph in numbers."""

    name: str
    site: str | None = None  # whose silo it is, where sites have several
    file: str | None = None  # None: a site's, which does not tell
    sha256: str | None = None
    n_samples: int | None  # None: precomputed distances, or not told
    n_nodes: int
    missing_nodes: tuple[str, ...] = ()  # that it lacks and others have
    gaps: int = 0  # empty cells in what was learned from: each pair of nodes has the rows that have both
    rows_dropped: int = 0  # that were not learned from: gaps, or flagged
    n_silos: int | None = None  # of a site that has several and told their sum; None: it is one
    row_counter: str | None = None  # a node whose signal counts the rows: perhaps an index, and no node
    mean_squared_difference: float | None = None
    edges: int | None  # None: not told
    mean_degree: float | None
    contribution: float | None  # γ; None: infinite, as of a silo that is the consensus, or not told
    is_consensus: bool  # whether it fused with the consensus
    pull: float | None = None  # to the consensus, in units of 4β, that it was given or chose; None: not known here
    relative_gap: float | None = None  # of its own graph, where that is a problem of its own; None: not known here
    graph_shared: bool  # whether its graph is in the folder
    stable_edges: int | None = None  # that enough half-samples have; None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRecord:
    """What came out. What one table, or several silos, do not have is None."""

    nodes: int
    edges: int  # of the consensus, or of the only graph
    mean_degree: float | None  # over all silos' graphs; None: one keeps it to itself
    degree_asked: float | None  # None: α and β were given
    degree_alone: float | None = None  # of silos alone at α and β, or of the pooled graph
    degree_of: str | None = None  # which graphs the degree asked for is about
    optimum_degree: float | None = None  # of the whole optimum, where graphs are its strongest edges
    degree_reached: bool
    alpha: float
    beta: float
    coupling: float | None = None
    coupling_curve: tuple[TriedCoupling, ...] = ()  # where the coupling was chosen: those tried
    sparsity: float | None = None
    nu: float | None = None  # also None: infinite
    lam: float | None = None
    rho: float | None = None
    cost_unit: float | None = None  # a power of two, in which mean squared differences were added up
    objective: float | None  # None: not finite
    relative_gap: float | None  # None: infinite, or none
    certified: bool
    converged: bool | None  # None: a method without a certificate
    rounds: int | None = None
    setup_rounds: int | None = None
    iterations: int | None = None
    solves: int | None = None
    seconds: float | None  # None: not known here, as of what a run left at a site


@dataclass(frozen=True, slots=True, kw_only=True)
class TimesRecord:
    """Where the time of a federation's run went, in seconds, over all its attempts."""

    computing: float
    starting: float  # processes started, and read their data
    approval: float  # waiting for sites to approve the study,
    sites: float  # for sites that were missing,
    server: float  # for the server,
    turn: float  # for other runs
    total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationRecord:
    """How sites took part."""

    run: str
    study: str
    study_sha256: str
    policy: Mapping[str, Any]
    left_out: Mapping[str, str]  # site → reason
    attempts: int
    times: TimesRecord
    rejected_answers: int
    bytes_down: int
    bytes_up: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityRecord:
    """How many edges are stable, of the consensus or of the only graph; of silos, their own records tell."""

    half_samples: int
    of: Literal["rows", "silos"]  # what they are halves of
    threshold: float  # the part of half-samples that makes an edge stable
    edges: int
    stable_edges: int | None  # None: not known, as of the consensus at a site
    bound: float | None  # on the expected number of false ones among them; None: it says nothing
    says: str  # the same in words, with its assumption
    graphs: bool = False  # whether stable edges are graphs of their own, in stable/
    quorum: int | None = None  # silos in which an edge must be stable, of the graph in quorum/
    quorum_edges: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedPair:
    """Two nodes and their partial correlation."""

    source: str
    target: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SignsRecord:
    """Whether the smooth model, whose weights are ≥ 0, is the wrong one for these data."""

    gain: float  # of held-out rows where partial correlations may be negative: log likelihood per row
    error: float  # its standard error
    blocks: int  # of rows, over all silos, that were held out
    smooth_is_wrong: bool
    says: str
    negative: tuple[SignedPair, ...]  # where it is wrong: the strongest negative pairs that silos share


@dataclass(frozen=True, slots=True, kw_only=True)
class NewcomerRecord:
    """The only silo beside a consensus that it had no part in."""

    consensus: str  # the folder of the run
    sha256: str  # of its consensus.json
    silos: tuple[str, ...]  # that made it
    distance: float  # to the consensus, below zero where it is nearer than chance
    distances: tuple[float, ...]  # rising, of silos that were left out; none: not known
    farther_than: int  # of these
    p: float | None  # None: too few of them
    usual: bool | None
    own_edges: int  # that the consensus does not have
    alone_edges: int | None  # that no silo has, either; None: not all of their graphs are in the run's folder
    says: str


def now() -> str:
    """The time, UTC, as records have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """What a run is made with."""
    return {"python": platform.python_version()} | {
        name: version(name) for name in ("silograph", "numpy", "scipy", "numba")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """Everything needed to trust a run and to repeat it."""

    format: int = RECORD_FORMAT
    kind: Literal["table", "silos"]
    created: str = field(default_factory=now)
    silos: tuple[SiloRecord, ...]  # one, if the kind is a table
    resumed: bool
    parameters: Mapping[str, Any]  # what was asked for
    about: str = ""  # a sentence on the method's consensus, where it has one
    result: ResultRecord
    warnings: Mapping[str, str]  # what a user should know, by what it is about: "degree", "convergence"
    stability: StabilityRecord | None = None
    signs: SignsRecord | None = None  # None: not judged
    newcomer: NewcomerRecord | None = None
    privacy: Statement | None = None  # the guarantee of a run that carries noise
    federation: FederationRecord | None = None
    versions: Mapping[str, str] = field(default_factory=versions)

    def to_json(self) -> str:
        """The record as text, which no infinity spoils."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, *, source: Path) -> "RunRecord":
        """The record of a file; raises, naming the file and the key, unless it is one."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise GraphError(f"{source}: cannot be read ({error}). {AGAIN}") from error
        if not isinstance(data, dict) or data.get("format") != RECORD_FORMAT:
            got = data.get("format") if isinstance(data, dict) else None
            told = "another" if got is None else f"{got!r}"
            newer = isinstance(got, int) and got > RECORD_FORMAT
            raise GraphError(
                f"{source}: expected the record of a finished run in format {RECORD_FORMAT}, got {told}. "
                f"{'A newer silograph wrote it: install that one.' if newer else AGAIN}"
            )
        try:
            record = from_plain(cls, data)
            for name in ("tol",) if record.kind == "table" else ("tol", "method"):
                if name not in record.parameters:
                    raise PlainDataError(f"parameters.{name}: is missing")
        except PlainDataError as error:
            raise GraphError(f"{source}: expected the record of a run, but {error}. {AGAIN}") from error
        return record


def read_record(path: Path) -> RunRecord:
    """Read run.json."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GraphError(f"{path}: cannot be read ({error}). {AGAIN}") from error
    return RunRecord.from_json(text, source=path)


def finite(value: float | None) -> float | None:
    """The number, or nothing: JSON has no infinity."""
    return value if value is not None and np.isfinite(value) else None
