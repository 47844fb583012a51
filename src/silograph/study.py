"""A study: all silos, one method, from its settings to every silo's graph and the consensus.

This is the one path that the façades (estimator, command line) take when there are several silos.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from silograph._types import Vector
from silograph.errors import ParameterError
from silograph.federation.inprocess import InProcess
from silograph.federation.messages import Reported
from silograph.federation.run import Engine, Finished, Record, run
from silograph.federation.silo import Memory, Silo
from silograph.federation.store import Checkpoint
from silograph.methods.algorithm1 import Algorithm1
from silograph.methods.averaging import Rounds
from silograph.methods.consensus import Consensus
from silograph.methods.ditto import ExactDitto, ditto
from silograph.methods.fedavg import fedavg
from silograph.methods.fedprox import fedprox
from silograph.methods.independent import Independent
from silograph.methods.method import Method
from silograph.methods.mrmtl import ExactMrmtl, mrmtl
from silograph.methods.pooled import Pooled
from silograph.methods.setup import Setup
from silograph.tuning import check_degree, default_degree

MethodName = Literal["exact", "algorithm1", "independent", "pooled", "fedavg", "fedprox", "mrmtl", "ditto"]
COUPLED = ("exact", "algorithm1")  # the paper's model: these have ν and λ
PULLED = ("fedprox", "mrmtl", "ditto")
GRADIENT_ONLY = ("algorithm1", "fedavg", "fedprox")
EXACT_ONLY = ("exact", "pooled")

DEFAULT_COUPLING, DEFAULT_SPARSITY = 0.5, 0.1
PAPER_ZETA, PAPER_STEP, PAPER_ROUNDS = 0.5, 0.005, 50
MOST_ROUNDS = 200  # of an exact method
LOOSE = 1e-2  # relative gap of Algorithm 1 beyond which its user is told

OnRound = Callable[[str, Record], None]  # stage, record


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """How to learn from several silos."""

    method: MethodName = "exact"
    degree: float | None = None  # or α and β; None: the default degree
    alpha: float | None = None
    beta: float | None = None
    coupling: float | None = None  # and sparsity, or ν and λ; None: the defaults
    sparsity: float | None = None
    nu: float | None = None
    lam: float | None = None
    zeta: float | None = None  # None: 0, or the paper's 0.5 where its gradient steps need it
    tol: float = 1e-6
    rounds: int | None = None  # None: the paper's 50, or at most 200 of an exact method
    solver: Literal["newton", "gradient"] | None = None  # None: newton where the method has an exact optimum
    pull: float | None = None  # strength μ of FedProx, MRMTL and Ditto, in units of 4β; None: 1
    local_steps: int = 5  # K
    step: float | Literal["lipschitz"] | None = None  # η; None: 0.005/α
    momentum: float = 0.9  # ξ
    weights: Literal["adaptive", "equal"] = "adaptive"  # Algorithm 1's γ
    fresh: bool = False
    gamma_cap: float | None = None
    epsilon: float = 1e-8  # ε_γ
    first_weight: float = 0.1  # w⁰
    report: bool = True  # whether silos may tell their own numbers: samples, edges, distance, contribution

    def __post_init__(self) -> None:
        for field in fields(self):  # NumPy's numbers become Python's: settings are written down and compared
            value = getattr(self, field.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, field.name, value.item())
        if self.method not in get_args(MethodName):
            raise ParameterError(f"method: expected one of {', '.join(get_args(MethodName))}, got {self.method!r}.")
        for name in ("degree", "alpha", "beta", "nu", "tol", "epsilon", "first_weight", "gamma_cap"):
            _check_number(self, name, least=0.0, open_end=True)
        for name in ("coupling", "sparsity", "lam", "zeta", "pull"):
            _check_number(self, name, least=0.0, open_end=False)
        for name in ("rounds", "local_steps"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
                raise ParameterError(f"{name}: expected a whole number ≥ 1, got {value!r}.")
        if not (isinstance(self.momentum, int | float) and 0 <= self.momentum < 1):
            raise ParameterError(f"momentum: expected a number in [0, 1), got {self.momentum!r}.")
        if self.step != "lipschitz":
            _check_number(self, "step", least=0.0, open_end=True)
        if self.weights not in ("adaptive", "equal"):
            raise ParameterError(f"weights: expected 'adaptive' or 'equal', got {self.weights!r}.")
        self._check_model()
        self._check_solver()

    def _check_model(self) -> None:
        given = [name for name in ("alpha", "beta") if getattr(self, name) is not None]
        if self.degree is not None and given:
            raise ParameterError(f"degree and {' and '.join(given)} contradict each other: give one or the other.")
        if len(given) == 1:
            raise ParameterError(f"{given[0]} was given alone: give both alpha and beta, or a degree.")
        free = [name for name in ("coupling", "sparsity") if getattr(self, name) is not None]
        own = [name for name in ("nu", "lam") if getattr(self, name) is not None]
        if free and own:
            raise ParameterError(
                f"{' and '.join(free)} and {' and '.join(own)} contradict each other: give one or the other."
            )
        if len(own) == 1:
            raise ParameterError(f"{own[0]} was given alone: give both nu and lam, or coupling and sparsity.")
        if self.lam == 0:
            raise ParameterError("lam: expected a number > 0, as rho = lam * nu. For no sparsity, use sparsity=0.")
        if self.pull is not None and self.method not in PULLED:
            raise ParameterError(f"pull: the method {self.method!r} has no such parameter. Leave it out.")
        if self.method not in COUPLED and free + own:
            raise ParameterError(f"{(free + own)[0]}: the method {self.method!r} has no such parameter. Leave it out.")

    def _check_solver(self) -> None:
        if self.solver not in (None, "newton", "gradient"):
            raise ParameterError(f"solver: expected 'newton' or 'gradient', got {self.solver!r}.")
        if self.solver == "newton" and self.method in GRADIENT_ONLY:
            raise ParameterError(
                f"solver: {self.method!r} is an iteration of gradient steps. For an exact optimum, use 'exact' "
                "(the paper's model) or 'pooled' (what FedAvg and FedProx aim at)."
            )
        if self.solver == "gradient" and self.method in EXACT_ONLY:
            raise ParameterError(f"solver: {self.method!r} is exact. For gradient steps, use 'algorithm1' or 'fedavg'.")
        if self.step == "lipschitz" and self.method != "algorithm1":
            raise ParameterError("step: 'lipschitz' is an option of Algorithm 1. Give a number, or leave it out.")

    @property
    def by_gradient(self) -> bool:
        """Whether the method takes the paper's gradient steps."""
        return self.method in GRADIENT_ONLY or self.solver == "gradient"

    @property
    def pull_used(self) -> float:
        """The pull given, or 1."""
        return 1.0 if self.pull is None else self.pull

    @property
    def zeta_used(self) -> float:
        """The ζ given, or the method's own."""
        return (PAPER_ZETA if self.by_gradient else 0.0) if self.zeta is None else self.zeta


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
    method = method_of(settings, parameters, start)
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


def method_of(settings: StudySettings, parameters: Memory, start: Vector | None = None) -> Method:
    """The method with the model's parameters, as the set-up exchange found them."""
    alpha, beta, pooled = parameters["alpha"], parameters["beta"], parameters["start"]
    zeta, tol = settings.zeta_used, settings.tol
    most = settings.rounds or MOST_ROUNDS
    if settings.method == "exact":
        if (
            parameters["rho"] == 0
        ):  # nothing to couple: silos that are alike share the pooled graph, others share nothing
            if parameters.get("alike"):
                return Pooled(alpha=alpha, beta=beta, pooled=pooled, zeta=zeta, tol=tol)
            return Independent(alpha=alpha, beta=beta, zeta=zeta, tol=tol)
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
            return ExactMrmtl(alpha=alpha, beta=beta, pull=strength, pooled=pooled, zeta=zeta, tol=tol, max_rounds=most)
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


def _check_number(settings: StudySettings, name: str, *, least: float, open_end: bool) -> None:
    value = getattr(settings, name)
    if value is None:
        return
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value < least or (open_end and value == least):
        raise ParameterError(f"{name}: expected a finite number {'>' if open_end else '≥'} {least:g}, got {value!r}.")
