"""How stable each edge is: how often half of the rows, or half of the silos, bring it forth again.

Half-samples come in complementary pairs (Shah and Samworth 2013): of each silo's sixteen blocks of rows, eight, and the
other eight. Where there are many silos, the consensus is learned from half of the silos and from the other half
instead, and each silo's own graph from half of its rows beside the consensus as it is. All at the parameters that were
found on all rows, and with the same number of strongest edges.

What is told of a pair is the part of half-samples in which it is an edge, and the mean and a 90 % interval of its
weight over half-samples. The interval is that of half-samples: an answer from all rows varies less.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from silograph._util.checks import check_whole
from silograph._util.files import write_bytes
from silograph._util.types import IntVector, Matrix, Vector
from silograph.analysis.beside import Beside, graph_beside, pull_of
from silograph.analysis.choosing import with_strongest
from silograph.analysis.false_edges import FalseEdges, bound_false_edges
from silograph.analysis.scores import lowered, scores_of
from silograph.engine.batch import is_large, map_in_order
from silograph.engine.study import StudyResult, learn_silos
from silograph.errors import ParameterError, SignalError
from silograph.graph.pairs import Pairs
from silograph.graph.strongest import keep_strongest
from silograph.local.problem import LocalProblem
from silograph.local.scores import pair_scores
from silograph.methods.common.registry import spec_of
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import FixedModel
from silograph.protocol.silo import Silo

MANY_SILOS = 20  # from there on, halves of silos tell what other silos would have changed
INTERVAL = (5.0, 95.0)  # percentiles
HALF_TOL = 1e-5  # relative gap of a half-sample's study: far below what sampling changes
SEED = 0

NO_ROWS = "stability: half-samples are of rows, and here are none: distances were precomputed, or nodes are too many."
Of = Literal["rows", "silos"]
OnProgress = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphStability:
    """One graph over all half-samples: per pair of the study, NaN where the graph lacks it, and per node."""

    frequency: Vector  # part of half-samples in which the pair is an edge
    mean: Vector  # of its weight, zero where it is no edge
    low: Vector  # and its interval
    high: Vector
    score: Vector  # mean score: a ranking of its own
    strength_low: Vector  # per node: the sum of its weights
    strength_high: Vector
    false_edges: FalseEdges

    @property
    def by_pair(self) -> dict[str, Vector]:
        """What is told of pairs, by the names of columns."""
        return {"stability": self.frequency, "mean_weight": self.mean, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudyStability:
    """All graphs of a study."""

    n_halves: int
    of: Of  # of what the consensus' half-samples are; silos' own are always of rows
    consensus: GraphStability | None  # None: not known, as at a site, which has its own rows only
    silos: Mapping[str, GraphStability]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Half:
    """The graphs of one half-sample: weights and scores."""

    consensus: Matrix  # (2, pairs)
    silos: Mapping[str, Matrix]


def check_halves(n_halves: int, settings: StudySettings) -> None:
    """Raise unless the method's graphs can be learned from so many half-samples."""
    if n_halves % 2:
        raise ParameterError(f"stability: half-samples come in pairs. Expected an even number, got {n_halves}.")
    if settings.by_gradient:
        raise ParameterError(
            f"stability: {settings.method!r} leaves small weights on every pair, so that every pair would be stable. "
            "Use an exact method."
        )


def check_stability(n_halves: int, settings: StudySettings, *, has_rows: bool) -> None:
    """Raise unless so many half-samples make sense."""
    check_whole("stability", n_halves, least=0)
    if n_halves == 0:
        return
    check_halves(n_halves, settings)
    if settings.privacy.noisy:
        raise ParameterError(
            "stability: half-samples are of exact rows, so that epsilon would promise too much. Drop one."
        )
    if not has_rows:
        raise ParameterError(NO_ROWS)


def study_stability(
    silos: Sequence[Silo],
    settings: StudySettings,
    study: StudyResult,
    n_halves: int,
    *,
    of: Of | None = None,
    kept: Path | None = None,
    workers: int | None = None,
    on_progress: OnProgress = lambda what, part: None,
) -> StudyStability:
    """The stability of a study whose silos are all in this process.

    `kept` is a folder in which finished half-samples are kept, so that a run that was stopped does not repeat them.
    """
    check_stability(n_halves, settings, has_rows=all(silo.blocks is not None for silo in silos))
    for silo in silos:
        check_rows(silo)
    of = of or _halves_of(silos, n_halves)
    learner = _Learner(silos=tuple(silos), settings=settings, study=study, of=of, kept=kept)
    halves = []
    for half in map_in_order(learner.half, range(n_halves), workers=workers, large=lambda _: is_large(silos)):
        halves.append(half)
        on_progress(f"Learning {n_halves} half-samples", len(halves) / n_halves)
    pairs = silos[0].study_pairs
    return StudyStability(
        n_halves=n_halves,
        of=of,
        consensus=summarise(pairs, np.array([half.consensus for half in halves])),
        silos={
            silo.name: summarise(
                pairs,
                np.array([half.silos[silo.name] for half in halves]),
                silo,
                one_consensus=of == "silos" and learner.beside(silo.name).is_drawing,
            )
            for silo in silos
        },
    )


def table_stability(
    silo: Silo, problem: LocalProblem, n_halves: int, *, on_progress: OnProgress = lambda what, part: None
) -> StudyStability:
    """The stability of one table's graph: the silo's, of which `problem` was solved."""
    nothing = np.zeros(silo.pairs.size)
    beside = Beside(
        consensus=nothing, alpha=problem.alpha, beta=float(np.mean(problem.quadratic)) / 4, zeta=problem.zeta
    )
    told = silo_stability(silo, beside, n_halves, on_progress=on_progress)
    return StudyStability(n_halves=n_halves, of="rows", consensus=told, silos={})


def check_rows(silo: Silo) -> None:
    """Raise for a silo of which no half can be taken."""
    assert silo.blocks is not None
    if len(silo.blocks.counts) < 4:
        raise SignalError(
            f"{silo.name}: has {len(silo.blocks.counts)} rows, too few to halve. Leave the silo out, or stability."
        )


def summarise(
    pairs: Pairs, halves: np.ndarray, silo: Silo | None = None, *, one_consensus: bool = False
) -> GraphStability:
    """From weights and scores (halves, 2, pairs) to what is told; of the pairs and nodes that the silo has."""
    weights, scores = halves[:, 0], halves[:, 1]
    low, high = np.percentile(weights, INTERVAL, axis=0)
    strengths = np.percentile(np.array([pairs.degrees(w) for w in weights]), INTERVAL, axis=0)
    own_pairs = slice(None) if silo is None or silo.place is None else silo.place
    own_nodes = slice(None) if silo is None or silo.nodes is None else silo.nodes
    on_pairs, on_nodes = np.full(pairs.size, np.nan), np.full(pairs.n_nodes, np.nan)
    on_pairs[own_pairs], on_nodes[own_nodes] = 0.0, 0.0
    frequency = (weights > 0).mean(axis=0)
    return GraphStability(
        frequency=frequency + on_pairs,
        mean=weights.mean(axis=0) + on_pairs,
        low=low + on_pairs,
        high=high + on_pairs,
        score=scores.mean(axis=0) + on_pairs,
        strength_low=strengths[0] + on_nodes,
        strength_high=strengths[1] + on_nodes,
        false_edges=bound_false_edges(frequency[own_pairs], n_halves=len(weights), one_consensus=one_consensus),
    )


# --- one half-sample --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Learner:
    """Learns half-samples, each by its number alone: so they are the same in any order and number of threads."""

    silos: tuple[Silo, ...]
    settings: StudySettings
    study: StudyResult
    of: Of
    kept: Path | None

    def half(self, number: int) -> Half:
        names = [silo.name for silo in self.silos]
        found = None if self.kept is None else _read_half(self.kept, number, names)
        if found is None:
            found = self._of_rows(number) if self.of == "rows" else self._of_silos(number)
            if self.kept is not None:
                _write_half(self.kept, number, found)
        return found

    def _of_rows(self, number: int) -> Half:
        return self._learn([_half_of(silo, number, place) for place, silo in enumerate(self.silos)])

    def _of_silos(self, number: int) -> Half:
        """The consensus of half of the silos; every silo's own graph of half of its rows."""
        consensus = self._learn(_half_of_silos(self.silos, number)).consensus
        own = {
            silo.name: half_graph(silo, self.beside(silo.name), number, place) for place, silo in enumerate(self.silos)
        }
        return Half(consensus=consensus, silos=own)

    def beside(self, name: str, consensus: Vector | None = None) -> Beside:
        """What a silo's own graph is learned beside."""
        study, settings = self.study, self.settings
        chosen = study.evidence.get(name, {}).get("pull")
        pull = pull_of(settings, chosen, rho=study.rho, beta=study.beta, n_silos=len(self.silos))
        return Beside(
            consensus=study.whole_consensus if consensus is None else consensus,
            alpha=study.alpha,
            beta=study.beta,
            zeta=settings.zeta_used,
            rho=study.rho,
            pull=pull,
            degree=None if study.optimum is None else study.degree_asked,
        )

    def _learn(self, silos: Sequence[Silo]) -> Half:
        some = [replace(silo) for silo in silos]  # a silo keeps its problem, and threads share no silo
        study, settings = self.study, replace(self.settings, tol=max(HALF_TOL, self.settings.tol))
        if settings.coupling == "auto":
            settings = replace(settings, coupling=None)
        if spec_of(settings.method).one_sum:
            half = self._of_one_sum(some, settings)
        else:
            lam = study.lam * len(silos) / len(self.silos)  # a penalty of each silo
            fixed = FixedModel(alpha=study.alpha, beta=study.beta, rho=study.rho, lam=lam)
            start = study.whole_consensus if study.rho > 0 else None
            half = learn_silos(some, settings, start=start, fixed=fixed, workers=1)
        if study.optimum is not None:
            half = with_strongest(half, some, self.settings)
        scores = scores_of(some, settings, half)
        return Half(
            consensus=np.array([half.consensus, scores.consensus]),
            silos={name: np.array([w, scores.silos[name]]) for name, w in half.graphs.items()},
        )

    def _of_one_sum(self, some: Sequence[Silo], settings: StudySettings) -> StudyResult:
        """A silo checks parameters against the sum, so α and β are given; λ follows from the half's own."""
        study = self.study
        given = replace(settings, degree=None, alpha=study.alpha, beta=study.beta)
        if not given.holds_out:
            return learn_silos(some, given, workers=1)
        # A half has no rows to hold out: each silo takes the pull that it chose on all rows
        half = learn_silos(some, replace(given, pull=1.0), workers=1)
        own = {silo.name: graph_beside(silo, self.beside(silo.name, half.consensus)).w for silo in some}
        return replace(half, graphs={silo.name: silo.spread(own[silo.name]) for silo in some}, evidence=study.evidence)


def silo_stability(
    silo: Silo, beside: Beside, n_halves: int, *, on_progress: OnProgress = lambda what, part: None
) -> GraphStability:
    """The stability of a silo's own graph, as its site can know it: own rows, the consensus as it is."""
    if silo.blocks is None:
        raise ParameterError(NO_ROWS)
    check_rows(silo)
    halves = []
    for half in map_in_order(
        lambda number: half_graph(silo, beside, number), range(n_halves), workers=None, large=lambda _: is_large([silo])
    ):
        halves.append(half)
        on_progress(f"{silo.name}: learning {n_halves} half-samples", len(halves) / n_halves)
    return summarise(silo.study_pairs, np.array(halves), silo, one_consensus=beside.is_drawing)


def half_graph(silo: Silo, beside: Beside, number: int, place: int = 0) -> Matrix:
    """Weights and scores of a silo's own graph from half of its rows, the consensus staying as it is."""
    some = _half_of(silo, number, place)
    problem = some.problem(alpha=beside.alpha, beta=beside.beta, zeta=beside.zeta)
    own, u = graph_beside(some, beside), silo.take(beside.consensus)
    w = own.w
    scores = pair_scores(problem, w, problem.multipliers(w), pull=own.strength, towards=u)
    if beside.degree is not None:
        w = keep_strongest(silo.pairs, w, beside.degree)
        scores = lowered(scores, w)
    return np.array([silo.spread(w), silo.spread(scores)])


def _halves_of(silos: Sequence[Silo], n_halves: int) -> Of:
    """Of silos where they are many, unless some half of them had none that has one of the nodes."""
    if len(silos) < MANY_SILOS:
        return "rows"
    return "silos" if all(_have_all_nodes(_half_of_silos(silos, number)) for number in range(n_halves)) else "rows"


def _have_all_nodes(silos: Sequence[Silo]) -> bool:
    nodes = [silo.nodes for silo in silos if silo.nodes is not None]
    return len(nodes) < len(silos) or np.unique(np.concatenate(nodes)).size == silos[0].study_pairs.n_nodes


def _half_of_silos(silos: Sequence[Silo], number: int) -> list[Silo]:
    """Half of the silos; of the numbers 2k and 2k + 1, one has what the other has not."""
    shuffled = _rng(number, 0).permutation(len(silos))
    return [silos[k] for k in np.sort(np.array_split(shuffled, 2)[number % 2])]


def _half_of(silo: Silo, number: int, place: int) -> Silo:
    """The silo with half of its blocks: of the numbers 2k and 2k + 1, one has what the other has not."""
    assert silo.blocks is not None
    shuffled = _rng(number, 1 + place).permutation(len(silo.blocks.counts))
    chosen: IntVector = np.sort(np.array_split(shuffled, 2)[number % 2])
    return replace(silo, cost=silo.blocks.cost(chosen.tolist()), blocks=None)


def _rng(number: int, stream: int) -> np.random.Generator:
    return np.random.default_rng([SEED, number // 2, stream])


# --- half-samples on disk ---------------------------------------------------------------------------------------------


def _write_half(folder: Path, number: int, half: Half) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    whole = np.concatenate([half.consensus[np.newaxis], np.array(list(half.silos.values()))])
    write_bytes(folder / f"{number}.f64", whole.astype("<f8").tobytes())


def _read_half(folder: Path, number: int, names: Sequence[str]) -> Half | None:
    path = folder / f"{number}.f64"
    if not path.is_file():
        return None
    whole = np.frombuffer(path.read_bytes(), dtype="<f8").reshape(len(names) + 1, 2, -1)
    return Half(consensus=whole[0], silos=dict(zip(names, whole[1:], strict=True)))
