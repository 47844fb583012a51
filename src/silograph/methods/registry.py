"""From a study's settings to its methods: the set-up exchange, and the method proper with what set-up found.

Silos and coordinator make the same method from the same settings, each for itself. A silo's half needs numbers only, so
these are all that has to be told to it (`SCALARS`); vectors that the coordinator's half starts from stay there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from silograph._util.types import Vector
from silograph.errors import ParameterError
from silograph.graph.pairs import Pairs
from silograph.local.degree import check_degree, default_degree
from silograph.methods.algorithm1 import Algorithm1
from silograph.methods.common.averaging import Rounds
from silograph.methods.common.quadratic import QuadraticCoupling
from silograph.methods.ditto import ExactDitto, ditto
from silograph.methods.exact import ExactSplitting
from silograph.methods.fedavg import fedavg
from silograph.methods.fedprox import fedprox
from silograph.methods.independent import Independent
from silograph.methods.mrmtl import mrmtl
from silograph.methods.pooled import Pooled
from silograph.methods.settings import COUPLED, StudySettings
from silograph.methods.setup import Setup
from silograph.protocol.method import Method
from silograph.protocol.silo import Memory

DEFAULT_COUPLING, DEFAULT_SPARSITY = 0.5, 0.1
PAPER_STEP, PAPER_ROUNDS = 0.005, 50
MOST_ROUNDS = 200  # of an exact method
SCALARS = ("alpha", "beta", "rho", "lam", "alike")  # of what set-up found, all that a silo's half needs


def setup_of(settings: StudySettings, pairs: Pairs) -> Setup:
    """The set-up exchange that the settings call for."""
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
            return QuadraticCoupling(
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
        return ExactSplitting(
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
            return QuadraticCoupling(
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
            gamma_epsilon=settings.gamma_epsilon,
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


def scalars_of(parameters: Memory) -> dict[str, float]:
    """What a silo must know of what set-up found."""
    return {name: float(parameters[name]) for name in SCALARS if parameters.get(name) is not None}


def silo_method(settings: StudySettings, scalars: Mapping[str, float], pairs: Pairs, n_silos: int) -> Method:
    """The method as a silo makes it: its half is that of the coordinator's own."""
    parameters: Memory = {"rho": None, "lam": None, **scalars, "start": np.zeros(pairs.size)}
    return method_of(settings, parameters, n_silos)
