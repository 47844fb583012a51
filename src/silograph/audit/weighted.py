"""Weighted sums and published graphs: what two sums show of one silo, and what a graph gives back."""

import numpy as np

from silograph._util.types import Vector
from silograph.audit.findings import Finding, recovered
from silograph.audit.scene import N_NODES, PAIRS, Scene, answers_of, silo_of, sum_of
from silograph.audit.statistics import relative_error
from silograph.errors import ParameterError
from silograph.local.problem import LocalProblem
from silograph.methods.common.settings import StudySettings
from silograph.methods.oneshot import OneShot, pooled_model
from silograph.privacy.settings import Privacy
from silograph.protocol.exchange import answer_task
from silograph.protocol.messages import Header, Task, parts_of
from silograph.protocol.silo import Silo, SiloState

TWO = StudySettings(method="oneshot", alpha=1.0, beta=1.0, pull=1.0, sums=2)
N_SILOS = 5


def outlier(scene: Scene) -> list[Finding]:
    """Four silos agree and one does not: the difference of two sums is what sets it apart."""
    rng = np.random.default_rng(scene.seed)
    shared, odd = rng.normal(size=(2, N_NODES, N_NODES))
    silos = [silo_of(f"{k}", rng.normal(size=(400, N_NODES)) @ (shared if k < 4 else odd)) for k in range(N_SILOS)]
    first, cost, weight, _ = _two_sums(silos)
    deviation = silos[4].cost - np.mean([silo.cost for silo in silos[:4]], axis=0)
    along = float(np.corrcoef(first / N_SILOS - cost / weight, deviation)[0, 1])
    return [
        Finding(
            name="weighted/outlier",
            who="coordinator, other sites",
            holds="two sums (sums = 2)",
            attack="what sets one silo apart",
            measure="correlation",
            measured=along,
            low=0.95,
            high=1.0,
            broken=along >= 0.95,
            protected=False,
        )
    ]


def common_weight(scene: Scene) -> list[Finding]:
    """Where the others' weight is known, as at a public cap or from one of several alike: the last silo's costs."""
    rng = np.random.default_rng(scene.seed)
    shared, odd = (rng.normal(size=(400, N_NODES)) @ rng.normal(size=(N_NODES, N_NODES)) for _ in range(2))
    silos = [silo_of(f"{k}", shared if k < 4 else odd) for k in range(N_SILOS)]
    first, cost, weight, known = _two_sums(silos)  # one of the four tells its weight, and the others have the same
    found = (cost - known * first) / (weight - 4 * known - known)
    error = relative_error(found, silos[4].cost)
    return [
        recovered(
            "weighted/cap",
            "two sums, the others' weight",
            "the last silo's z/N",
            error,
            who="coordinator, one site",
            most=1e-9,
        )
    ]


def refused(scene: Scene) -> list[Finding]:
    """So two sums are refused where sums are masked or noisy."""
    answered = 0
    for privacy in (Privacy(sums="masked"), Privacy(epsilon=1.0, delta=1e-5)):
        try:
            StudySettings(method="oneshot", sums=2, privacy=privacy)
            answered += 1
        except ParameterError:
            continue
    return [
        Finding(
            name="weighted/refused",
            who="coordinator",
            holds="a study with sums = 2",
            attack="two sums, masked or with noise",
            measure="studies accepted",
            measured=float(answered),
            low=0.0,
            high=0.0,
            broken=answered > 0,
            protected=True,
            trials=2,
        )
    ]


def published(scene: Scene) -> list[Finding]:
    """A published exact graph with its α and β: optimality gives back the mean of all z/N on its edges."""
    silos = [silo_of(name, table) for name, table in zip(scene.sites, scene.tables(), strict=True)]
    total = sum_of(answers_of(silos))
    u = pooled_model(TWO, total, PAIRS, len(silos)).pooled
    free = LocalProblem(cost=np.zeros(u.size), pairs=PAIRS, quadratic=4.0, alpha=1.0, zeta=0.0)
    edges = u > 0
    error = relative_error(-free.gradient(u)[edges], total[edges] / len(silos))
    return [
        recovered(
            "published/edges",
            "the consensus, α and β",
            "the mean of all z/N on its edges",
            error,
            who="readers",
            most=1e-6,
            note="with noise in the sum, the noisy mean, which the guarantee covers",
        )
    ]


def _two_sums(silos: list[Silo]) -> tuple[Vector, Vector, float, float]:
    """The first sum, the second, the sum of its weights, and the first silo's weight."""
    first = sum_of(answers_of(silos))
    header = Header(run="audit", method="oneshot", step="weigh", round=1)
    task = Task(header=header, parts={"cost": first, "weight": float(len(silos))})
    method = OneShot(TWO, pooled_model(TWO, first, PAIRS, len(silos)))
    terms = [parts_of(answer_task(method, silo, SiloState(), task, report=False)[0]) for silo in silos]
    cost = np.sum([np.asarray(term["cost"]) for term in terms], axis=0)
    weights = [float(term["weight"]) for term in terms]
    return first, cost, sum(weights), weights[0]
