"""A study: all silos, one method, from its settings to every silo's graph and the consensus.

This is the one path that the façades (estimator, command line) take when there are several silos.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from silograph._util.types import IntVector, Vector
from silograph.engine.checkpoint import Checkpoint
from silograph.engine.inprocess import InProcess
from silograph.engine.loop import Engine, LoopResult, run_loop
from silograph.engine.noise import noisy_silos, plan_for, with_min_samples
from silograph.graph.pairs import Pairs
from silograph.methods.common.presence import check_silo, lonely_pairs
from silograph.methods.common.registry import spec_of
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import FixedModel, ModelParameters, build_setup
from silograph.protocol.messages import Reported
from silograph.protocol.method import Method, Outcome, RoundRecord
from silograph.protocol.silo import Silo
from silograph.protocol.units import check_costs, unit_for

FINAL_GRAPHS = "the silos' graphs"  # the strongest edges of what was learned
OnRound = Callable[[str, RoundRecord], None]  # stage, record


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedCoupling:
    """A coupling, and the silos' mean loss on rows that were held out."""

    coupling: float
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Optimum:
    """What the method ended with, and its certificate is about."""

    consensus: Vector
    graphs: Mapping[str, Vector]
    degree: float  # mean, over the silos' graphs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudyResult:
    """What was learned, and the evidence for it."""

    consensus: Vector  # one weight per pair
    graphs: Mapping[str, Vector]  # by silo; only of those that give theirs away. Zero on pairs that a silo lacks
    nodes: Mapping[str, IntVector | None]  # by silo: the nodes that it has, None for all; only of those that tell
    count: Vector | None  # of the silos that have each pair; None: all have all
    contributions: Mapping[str, float]  # γ by silo; empty unless it may be reported
    reported: Reported
    evidence: Mapping[str, Mapping[str, float]]  # what silos of this process know of their own graphs, such as a gap
    objective: float
    gap: float  # relative; NaN where the method has no certificate
    converged: bool
    diverged: bool
    n_rounds: int
    n_setup_rounds: int
    history: tuple[RoundRecord, ...]
    alpha: float
    beta: float
    rho: float
    lam: float
    cost_unit: float  # what z/N was counted in
    coupling: float | None  # what was asked for; None where ν and λ were given, or the method has neither
    sparsity: float | None
    degree: float  # mean number of neighbours over all silos' graphs; NaN where one keeps it to itself
    degree_asked: float | None  # None where α and β were given
    degree_alone: float | None  # of silos alone at α and β, or of the pooled graph; None where α and β were given
    degree_reached: bool
    degree_of: str  # which graphs the degree asked for is about
    optimum: "Optimum | None" = None  # of which the graphs are the strongest edges; None: they are all of it
    coupling_curve: tuple["TriedCoupling", ...] = ()  # where the coupling was chosen, by rising coupling

    @property
    def whole_consensus(self) -> Vector:
        """With all edges of the optimum: what a similar study starts from, and a silo is drawn to."""
        return self.consensus if self.optimum is None else self.optimum.consensus

    @property
    def nu(self) -> float:
        """ν = ρ/λ; infinite without sparsity."""
        if self.lam > 0:
            return self.rho / self.lam
        return np.inf if self.rho > 0 else 0.0


def learn_silos(
    silos: Sequence[Silo],
    settings: StudySettings,
    *,
    nodes: Sequence[str] = (),
    checkpoint: Path | None = None,
    start: Vector | None = None,
    fixed: FixedModel | None = None,
    workers: int | None = None,
    on_round: OnRound = lambda stage, record: None,
) -> StudyResult:
    """Learn every silo's graph and the consensus, all silos in this process.

    `nodes` are names by which an error calls nodes. `checkpoint` is a folder to write each round to, and to go on from
    if it has some. `start` is the consensus of a similar study, such as the last one on a path of couplings. `fixed`
    are parameters found before, instead of those that set-up would find. With ε, silos must be of bounded rows
    (data/bounded.py).
    """
    settings = with_unit(with_min_samples(settings, silos), silos)
    for silo in silos:
        check_silo(settings, silo)
    run_id = run_identity(silos, settings, start, fixed)
    noise = plan_for(settings, silos[0].study_pairs, len(silos)) if silos else None
    if noise is not None and settings.noise_on_silos:
        silos = noisy_silos(silos, noise, folder=None if checkpoint is None else checkpoint / "noise", run_id=run_id)
    engine = InProcess(silos, nodes=nodes, report=settings.report, workers=workers, noise=noise)
    try:
        return learn_on(
            engine, settings, run_id=run_id, checkpoint=checkpoint, start=start, fixed=fixed, on_round=on_round
        )
    finally:
        engine.close()


def with_unit(settings: StudySettings, silos: Sequence[Silo]) -> StudySettings:
    """The settings with the unit of costs: the one given, which must fit every silo, or one that does."""
    if settings.privacy.noisy:  # it must tell nothing of the data: bounds say how large costs can be
        return replace(settings, cost_unit=replace(settings, cost_unit=None).cost_unit_used)
    unit = unit_for([silo.cost for silo in silos]) if settings.cost_unit is None else settings.cost_unit_used
    for silo in silos:
        check_costs(silo.cost, unit, silo.name)
    return settings if settings.cost_unit == unit else replace(settings, cost_unit=unit)


def set_up_silos(
    silos: Sequence[Silo], settings: StudySettings, *, nodes: Sequence[str] = (), workers: int | None = None
) -> ModelParameters:
    """The parameters that learning would begin with, all silos in this process."""
    settings = with_unit(settings, silos)
    engine = InProcess(silos, nodes=nodes, report=False, workers=workers)
    try:
        parameters: ModelParameters = run_loop(
            build_setup(settings, engine.cohort.pairs), engine, run_id=run_identity(silos, settings)
        ).outcome
    finally:
        engine.close()
    return parameters


def run_identity(
    silos: Sequence[Silo], settings: StudySettings, start: Vector | None = None, fixed: FixedModel | None = None
) -> str:
    """A name for just this study: it changes with any setting and any datum, so that no run resumes another."""
    digest = hashlib.sha256(json.dumps(asdict(settings), sort_keys=True).encode())
    if fixed is not None:
        digest.update(json.dumps(asdict(fixed)).encode())
    for silo in silos:
        digest.update(json.dumps([silo.name, silo.n_samples, silo.local_steps]).encode())
        digest.update(silo.pairs.rows.tobytes() + silo.pairs.cols.tobytes() if not silo.pairs.is_all else b"all")
        digest.update(b"" if silo.nodes is None else silo.nodes.tobytes())
        digest.update(silo.cost.tobytes())
        digest.update(b"" if silo.blocks is None else silo.blocks.sums.tobytes())
    if start is not None:
        digest.update(start.tobytes())
    return digest.hexdigest()[:32]


def learn_on(
    engine: Engine,
    settings: StudySettings,
    *,
    run_id: str,
    checkpoint: Path | None = None,
    start: Vector | None = None,
    fixed: FixedModel | None = None,
    on_round: OnRound = lambda stage, record: None,
) -> StudyResult:
    """Learn on any engine: set-up, the method, and the graphs as far as silos give them."""

    def stage(name: str, method: Method) -> LoopResult:
        kept = None if checkpoint is None else Checkpoint(checkpoint / name, run_id=run_id)
        return run_loop(method, engine, run_id=run_id, checkpoint=kept, on_round=lambda record: on_round(name, record))

    setup = build_setup(settings, engine.cohort.pairs, fixed)
    prepared = stage("setup", setup)
    parameters: ModelParameters = prepared.outcome
    engine.prepare(parameters.scalars)
    method = spec_of(settings.method).build(settings, replace(parameters, start=start))
    finished = stage("learn", method)
    outcome: Outcome = finished.outcome
    graphs = engine.finish(outcome)
    return StudyResult(
        consensus=outcome.consensus,
        graphs=graphs,
        nodes=engine.nodes,
        count=parameters.count,
        contributions={
            name: numbers["contribution"]
            for told in (finished.reported, engine.evidence)
            for name, numbers in told.items()
            if "contribution" in numbers
        },
        reported=finished.reported,
        evidence=engine.evidence,
        objective=outcome.objective,
        gap=outcome.gap,
        converged=outcome.converged,
        diverged=outcome.diverged,
        n_rounds=len(finished.history),
        n_setup_rounds=len(prepared.history),
        history=finished.history,
        alpha=parameters.alpha,
        beta=parameters.beta,
        rho=parameters.rho,
        lam=parameters.lam,
        cost_unit=settings.cost_unit_used,
        coupling=setup.coupling,
        sparsity=setup.sparsity,
        degree=_mean_degree(graphs, finished.reported, engine),
        degree_asked=setup.degree,
        degree_alone=parameters.degree,
        degree_reached=parameters.degree_reached,
        degree_of=settings.solver_used.degree_of,
    )


def _mean_degree(graphs: Mapping[str, Vector], reported: Reported, engine: Engine) -> float:
    """Over all silos' graphs, or what silos tell of them; NaN where one does neither."""
    cohort = engine.cohort
    known = {name: numbers["edges"] for name, numbers in reported.items() if "edges" in numbers}
    edges = known | {name: float(np.count_nonzero(w)) for name, w in graphs.items()}
    sizes = [cohort.pairs.n_nodes if own is None else len(own) for own in engine.nodes.values()]
    if len(edges) < cohort.n_silos or len(sizes) < cohort.n_silos:
        return np.nan
    return 2 * sum(edges.values()) / sum(sizes)


def convergence_warning(study: StudyResult, settings: StudySettings) -> str | None:
    """What to tell a user whose study ended away from where it should; nothing if all is well."""
    solver = settings.solver_used
    if study.diverged:
        return (
            f"The steps of {settings.method} were too long and it diverged in round {study.n_rounds}; the graphs are "
            "those of the last sound round. Give a smaller step, a larger zeta or less momentum"
            + (", step='lipschitz'" if solver.lipschitz else "")
            + ", or use method='exact', which has no step."
        )
    if solver.trouble is not None:
        return solver.trouble(study.gap, study.history)
    if study.converged or not solver.certified:  # an iteration of a given length, without a certificate
        return None
    return (
        f"The method {settings.method!r} stopped after {study.n_rounds} rounds at a relative duality gap of "
        f"{study.gap:.1e}, above tol = {settings.tol:g}. Raise rounds or tol."
    )


def degree_warning(study: StudyResult, settings: StudySettings) -> str | None:
    """What to tell a user whose silos cannot have the degree asked for; nothing if they have."""
    if study.degree_reached or settings.degree is None:
        return None
    got = study.degree if study.degree_of == FINAL_GRAPHS else study.degree_alone
    return (
        f"A mean degree of {study.degree_asked:g} was not found for {study.degree_of}; the nearest, {got:.4g}, was "
        "taken. Equal distances (duplicated or constant nodes) make edges come and go together. Ask for another "
        "degree, or give alpha and beta."
    )


def nodes_warning(study: StudyResult, pairs: Pairs) -> str | None:
    """What to tell a user whose silos lack nodes: of pairs that one silo alone has, or none."""
    return lonely_pairs(pairs, study.count, study.nodes)
