"""A study: all silos, one method, from its settings to every silo's graph and the consensus.

This is the one path that the façades (estimator, command line) take when there are several silos.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from silograph._types import Vector
from silograph.errors import ParameterError
from silograph.federation.inprocess import InProcess
from silograph.federation.messages import Reported
from silograph.federation.run import Engine, Finished, Record, run
from silograph.federation.silo import Memory, Silo
from silograph.federation.store import Checkpoint
from silograph.methods.algorithm1 import Algorithm1
from silograph.methods.attracted import Attracted
from silograph.methods.averaging import Rounds
from silograph.methods.consensus import Consensus
from silograph.methods.ditto import ExactDitto, ditto
from silograph.methods.fedavg import fedavg
from silograph.methods.fedprox import fedprox
from silograph.methods.independent import Independent
from silograph.methods.method import Method
from silograph.methods.mrmtl import mrmtl
from silograph.methods.pooled import Pooled
from silograph.methods.setup import Setup
from silograph.study_settings import COUPLED, StudySettings
from silograph.tuning import check_degree, default_degree

DEFAULT_COUPLING, DEFAULT_SPARSITY = 0.5, 0.1
PAPER_STEP, PAPER_ROUNDS = 0.005, 50
MOST_ROUNDS = 200  # of an exact method
LOOSE = 1e-2  # relative gap of Algorithm 1 beyond which its user is told

OnRound = Callable[[str, Record], None]  # stage, record


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Study:
    """What was learned, and the evidence for it."""

    consensus: Vector  # one weight per pair
    graphs: Mapping[str, Vector]  # by silo
    contributions: Mapping[str, float]  # γ by silo; empty unless it may be reported
    reported: Reported
    objective: float
    gap: float  # relative; NaN where the method has no certificate
    converged: bool
    diverged: bool
    n_rounds: int
    n_setup_rounds: int
    history: tuple[Record, ...]
    alpha: float
    beta: float
    rho: float
    lam: float
    coupling: float | None  # what was asked for; None where ν and λ were given, or the method has neither
    sparsity: float | None
    degree: float  # mean number of neighbours over all silos' graphs
    degree_asked: float | None  # None where α and β were given
    degree_alone: float | None  # what the silos' own graphs have, which the degree asked for is about
    degree_reached: bool

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
    checkpoint: Path | None = None,
    start: Vector | None = None,
    workers: int | None = None,
    on_round: OnRound = lambda stage, record: None,
) -> Study:
    """Learn every silo's graph and the consensus, all silos in this process.

    `checkpoint` is a folder to write each round to, and to go on from if it has some. `start` is the consensus of a
    similar study, such as the last one on a path of couplings.
    """
    for silo in silos:
        silo.memory = {}  # of an earlier study, from which this one must not start
    engine = InProcess(silos, report=settings.report, workers=workers)
    run_id = run_identity(silos, settings, start)
    try:
        return _learn(engine, silos, settings, run_id=run_id, checkpoint=checkpoint, start=start, on_round=on_round)
    finally:
        engine.close()


def run_identity(silos: Sequence[Silo], settings: StudySettings, start: Vector | None = None) -> str:
    """A name for just this study: it changes with any setting and any datum, so that no run resumes another."""
    digest = hashlib.sha256(json.dumps(asdict(settings), sort_keys=True).encode())
    for silo in silos:
        digest.update(json.dumps([silo.name, silo.n_samples, silo.local_steps]).encode())
        digest.update(silo.pairs.rows.tobytes() + silo.pairs.cols.tobytes() if not silo.pairs.is_all else b"all")
        digest.update(silo.cost.tobytes())
    if start is not None:
        digest.update(start.tobytes())
    return digest.hexdigest()[:32]


def _learn(
    engine: Engine,
    silos: Sequence[Silo],
    settings: StudySettings,
    *,
    run_id: str,
    checkpoint: Path | None,
    start: Vector | None,
    on_round: OnRound,
) -> Study:
    def stage(name: str, method: Method) -> Finished:
        kept = None if checkpoint is None else Checkpoint(checkpoint / name, run_id=run_id)
        return run(method, engine, run_id=run_id, checkpoint=kept, on_round=lambda record: on_round(name, record))

    setup = setup_of(settings, engine)
    prepared = stage("setup", setup)
    parameters = prepared.state
    method = method_of(settings, parameters, engine.federation.n_silos, start)
    finished = stage("learn", method)
    state, n_nodes = finished.state, engine.federation.pairs.n_nodes
    graphs = {silo.name: silo.memory["graph"] for silo in silos}
    edges = sum(int(np.count_nonzero(w)) for w in graphs.values())
    return Study(
        consensus=state["consensus"],
        graphs=graphs,
        contributions={name: told["contribution"] for name, told in finished.reported.items()},
        reported=finished.reported,
        objective=state["objective"],
        gap=state["gap"],
        converged=state["converged"],
        diverged=state.get("diverged", False),
        n_rounds=len(finished.history),
        n_setup_rounds=len(prepared.history),
        history=finished.history,
        alpha=parameters["alpha"],
        beta=parameters["beta"],
        rho=parameters["rho"] or 0.0,
        lam=parameters["lam"] or 0.0,
        coupling=setup.coupling,
        sparsity=setup.sparsity,
        degree=2 * edges / (n_nodes * len(graphs)),
        degree_asked=setup.degree,
        degree_alone=parameters.get("degree"),
        degree_reached=parameters.get("degree_reached", True),
    )


def setup_of(settings: StudySettings, engine: Engine) -> Setup:
    """The set-up exchange that the settings call for."""
    pairs = engine.federation.pairs
    degree = settings.degree
    if settings.alpha is None:
        degree = default_degree(pairs) if degree is None else degree
        check_degree(degree, pairs)
    coupling = sparsity = None
    if settings.method in COUPLED and settings.nu is None:
        coupling = DEFAULT_COUPLING if settings.coupling is None else settings.coupling
        sparsity = DEFAULT_SPARSITY if settings.sparsity is None else settings.sparsity
    rho = None if settings.nu is None or settings.lam is None else settings.nu * settings.lam
    return Setup(
        degree=degree,
        alpha=settings.alpha,
        beta=settings.beta,
        coupling=coupling,
        sparsity=sparsity,
        rho=rho,
        lam=settings.lam,
        zeta=settings.zeta_used,
    )


def method_of(settings: StudySettings, parameters: Memory, n_silos: int, start: Vector | None = None) -> Method:
    """The method with the model's parameters, as the set-up exchange found them."""
    alpha, beta, pooled = parameters["alpha"], parameters["beta"], parameters["start"]
    zeta, tol = settings.zeta_used, settings.tol
    most = settings.rounds or MOST_ROUNDS
    if settings.method == "exact":
        if parameters["rho"] == 0:  # nothing to couple
            if parameters.get("alike"):  # silos that are alike share the pooled graph
                return Pooled(alpha=alpha, beta=beta, pooled=pooled, zeta=zeta, tol=tol)
            return Independent(alpha=alpha, beta=beta, zeta=zeta, tol=tol)
        if settings.weights == "equal":
            return Attracted(
                name="exact",
                alpha=alpha,
                beta=beta,
                pull=parameters["rho"] / n_silos,
                lam=parameters["lam"],
                weight=1 / n_silos,
                pooled=pooled if start is None else start,
                zeta=zeta,
                tol=tol,
                max_rounds=most,
            )
        return Consensus(
            alpha=alpha,
            beta=beta,
            rho=parameters["rho"],
            lam=parameters["lam"],
            pooled=pooled if start is None else start,
            zeta=zeta,
            tol=tol,
            max_rounds=most,
        )
    if settings.method == "pooled":
        return Pooled(alpha=alpha, beta=beta, pooled=pooled, zeta=zeta, tol=tol)
    if not settings.by_gradient:
        strength = settings.pull_used * 4 * beta
        if settings.method == "mrmtl" and strength > 0:
            return Attracted(
                name="mrmtl",
                alpha=alpha,
                beta=beta,
                pull=strength,
                pooled=pooled,
                zeta=zeta,
                tol=tol,
                max_rounds=most,
            )
        if settings.method == "ditto":
            return ExactDitto(alpha=alpha, beta=beta, pull=strength, pooled=pooled, zeta=zeta, tol=tol)
        return Independent(alpha=alpha, beta=beta, zeta=zeta, tol=tol)
    return _gradient_method(settings, parameters)


def _gradient_method(settings: StudySettings, parameters: Memory) -> Method:
    alpha, beta, zeta = parameters["alpha"], parameters["beta"], settings.zeta_used
    rounds = settings.rounds or PAPER_ROUNDS
    step = PAPER_STEP / alpha if settings.step is None or settings.step == "lipschitz" else settings.step
    if settings.method == "algorithm1":
        if parameters["rho"] == 0:
            raise ParameterError(
                "Algorithm 1 divides by rho, which is 0: the coupling is, or the silos are alike. "
                "Use method='exact', or give nu and lam."
            )
        return Algorithm1(
            alpha=alpha,
            beta=beta,
            rho=parameters["rho"],
            lam=parameters["lam"],
            zeta=zeta,
            local_steps=settings.local_steps,
            rounds=rounds,
            step=None if settings.step == "lipschitz" else step,
            momentum=settings.momentum,
            epsilon=settings.epsilon,
            first_weight=settings.first_weight,
            equal=settings.weights == "equal",
            fresh=settings.fresh,
            cap=settings.gamma_cap,
            tol=settings.tol,
        )
    if settings.method == "independent":
        return Independent(
            alpha=alpha,
            beta=beta,
            zeta=zeta,
            exact=False,
            rounds=rounds,
            local_steps=settings.local_steps,
            step=step,
            momentum=settings.momentum,
            first_weight=settings.first_weight,
            tol=settings.tol,
        )
    averaging = Rounds(
        alpha=alpha,
        beta=beta,
        zeta=zeta,
        pull=settings.pull_used * 4 * beta,
        local_steps=settings.local_steps,
        rounds=rounds,
        step=step,
        momentum=settings.momentum,
        first_weight=settings.first_weight,
    )
    methods: dict[str, Callable[[Rounds], Method]] = {
        "fedavg": fedavg,
        "fedprox": fedprox,
        "mrmtl": mrmtl,
        "ditto": ditto,
    }
    return methods[settings.method](averaging)


def not_converged(study: Study, settings: StudySettings) -> str | None:
    """What to tell a user whose study ended away from where it should; nothing if all is well."""
    if study.diverged:
        return (
            f"The steps of {settings.method} were too long and it diverged in round {study.n_rounds}; the graphs are "
            "those of the last sound round. Give a smaller step, a larger zeta or less momentum"
            + (", step='lipschitz'" if settings.method == "algorithm1" else "")
            + ", or use method='exact', which has no step."
        )
    if settings.method == "algorithm1":
        return _loose(study)
    if settings.method in ("fedavg", "fedprox") or (settings.by_gradient and settings.method in ("mrmtl", "ditto")):
        return None  # an iteration of a given length, without a certificate
    if study.converged:
        return None
    return (
        f"The method {settings.method!r} stopped after {study.n_rounds} rounds at a relative duality gap of "
        f"{study.gap:.1e}, above tol = {settings.tol:g}. Raise rounds or tol."
    )


def _loose(study: Study) -> str | None:
    if study.gap <= LOOSE:
        return None
    objectives = [record["objective"] for record in study.history]
    last = objectives[-6:]
    stalled = max(last) - min(last) <= 1e-4 * abs(objectives[-1])
    how = "stalled" if stalled else "is still moving"
    cure = "" if stalled else "More rounds may help. "
    return (
        f"Algorithm 1 {how}: after {study.n_rounds} rounds the certified relative gap is {study.gap:.1e}. When silos "
        f"fuse, its weights grow without bound and it stops short of the optimum. {cure}method='exact' solves the same "
        "model to the end; fresh=True, gamma_cap=5 and step='lipschitz' make Algorithm 1 safer."
    )


def degree_missed(study: Study, settings: StudySettings) -> str | None:
    """What to tell a user whose silos cannot have the degree asked for; nothing if they have."""
    if study.degree_reached or settings.degree is None:
        return None
    return (
        f"A mean degree of {study.degree_asked:g} was not found for the silos' own graphs; the nearest, "
        f"{study.degree_alone:g}, was taken. Equal distances (duplicated or constant nodes) make edges come and go "
        "together. Ask for another degree, or give alpha and beta."
    )
