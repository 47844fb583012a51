"""What the paper proves, as functions: step sizes (Proposition 1), the estimation error (Theorem 1), and their repair.

    L_i = 4β + 2α(d − 1)/ζ² + ργ_i                      the gradient of a silo's problem changes no faster than this
    S_i = 4β + ργ_i                                     … and no slower
    C_r = ν√(I·ω) + √p,   ω = I + 1                     ω the largest eigenvalue of the star Laplacian L_m
    λ  ≥ (C_z√I + σ√(pI + δ))/(C_r N)                   Theorem 1's floor
    ‖Ŵ − W*‖ ≤ C_r λ/β + C_h√I/(2β)                     its bound, with probability
    1 − exp(−½(δ − pI·log(1 + δ/pI)))

`pull` is ργ_i = λν/‖w_i − u‖ throughout, and 0 for a silo alone. docs/explanation/theory.md says what of this
holds and what does not; `local_error_bound` is what we put in Theorem 1's place.
"""

from collections.abc import Sequence

import numpy as np

from silograph._util.checks import check_not_negative, check_positive
from silograph._util.types import Vector
from silograph.errors import ParameterError
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem


def lipschitz_constant(
    *, alpha: float, beta: float, n_nodes: int, zeta: float, pull: float = 0.0, smallest_degree: float = 0.0
) -> float:
    """L_i, the largest curvature of a silo's problem where every degree is at least `smallest_degree` (Proposition 1).

    It is exact: attained in the direction of all weights together, where all degrees are the smallest. It needs degrees
    that are not negative, and momentum leads to points where some are. Infinite when ζ and the smallest degree are both
    0, since then the curvature of the logarithm has no bound.
    """
    _check_model(alpha=alpha, beta=beta, n_nodes=n_nodes, pull=pull)
    check_not_negative("zeta", zeta)
    check_not_negative("smallest_degree", smallest_degree)
    argument = zeta + smallest_degree
    steepest = 2 * alpha * (n_nodes - 1) / argument**2 if argument > 0 else np.inf
    return strong_convexity(beta=beta, pull=pull) + steepest


def strong_convexity(*, beta: float, pull: float = 0.0) -> float:
    """S_i, the smallest curvature of a silo's problem (Proposition 1); needs no assumption.

    From four nodes on it is exact at every graph: some change of the weights leaves all degrees as they are.
    """
    check_positive("beta", beta)
    check_not_negative("pull", pull)
    return 4 * beta + pull


def largest_step(
    *, alpha: float, beta: float, n_nodes: int, zeta: float, pull: float = 0.0, smallest_degree: float = 0.0
) -> float:
    """1/L, the longest step of Assumption 4: without momentum, no local step then raises a silo's objective.

    `pull` must be the largest of all silos and rounds. Where a silo fuses with the consensus it grows without bound.
    """
    largest = lipschitz_constant(
        alpha=alpha, beta=beta, n_nodes=n_nodes, zeta=zeta, pull=pull, smallest_degree=smallest_degree
    )
    if largest == np.inf:
        raise ParameterError(
            "zeta: expected a number > 0, got 0. At degree 0 the curvature of the logarithm has no bound, and no step "
            "is safe. Set zeta, or give the smallest degree that is met (see degree_floor)."
        )
    return 1 / largest


def smallest_zeta(*, step: float, alpha: float, beta: float, n_nodes: int, pull: float = 0.0) -> float:
    """The least ζ for which `step` is at most 1/L (Assumption 4)."""
    _check_model(alpha=alpha, beta=beta, n_nodes=n_nodes, pull=pull)
    check_positive("step", step)
    spare = 1 / step - strong_convexity(beta=beta, pull=pull)
    if spare <= 0:
        raise ParameterError(
            f"step: expected less than 1/(4·beta + pull) = {1 / (4 * beta + pull):g}, got {step:g}. "
            "Shorten it: no zeta makes it safe."
        )
    return float(np.sqrt(2 * alpha * (n_nodes - 1) / spare))


def degree_floor(problem: LocalProblem, w: Vector, y: Vector) -> float:
    """A degree below which no node is, at any weights that are as good as `w` or better.

    With it there is a safe step for ζ = 0 too, and a method that never rises stays where it is safe. Any multipliers
    y > 0 will do; a solver's give the highest floor. Why: the duality gap is a sum of terms ≥ 0, of which node v's is
    α(r − 1 − log r) with r = (degree + ζ)·y_v/α, and none can be larger than the gap at `w`.
    """
    ratio = _root(problem.gap(w, y) / problem.alpha, above_one=False)
    return float(max((problem.alpha / y).min() * ratio - problem.zeta, 0.0))


def star_eigenvalue(n_silos: int) -> float:
    """ω_max(L_m) = I + 1: the largest eigenvalue of the Laplacian that ties every silo to the consensus."""
    _check_count("n_silos", n_silos, least=1)
    return float(n_silos + 1)


def regularizer_constant(*, nu: float, n_nodes: int, n_silos: int) -> float:
    """C_r, with which R(W) ≤ C_r‖W‖ for every W (Lemma 2); needs no assumption."""
    check_not_negative("nu", nu)
    return float(nu * np.sqrt(n_silos * star_eigenvalue(n_silos)) + np.sqrt(_n_pairs(n_nodes)))


def lambda_floor(
    *,
    nu: float,
    n_nodes: int,
    n_silos: int,
    n_samples: int,
    distance_norm: float,
    noise: float = 0.0,
    delta: float = 0.0,
) -> float:
    """The least λ that Theorem 1 admits, given C_z = `distance_norm` and σ_e = `noise`.

    Assumes equal sample sizes and distances z = z* + e with e normal, independent from pair to pair, of standard
    deviation `noise`, and ‖z*‖ ≤ `distance_norm` (Assumption 1). Distances are sums over samples, as in the paper:
    they, and so C_z, grow with `n_samples`, and the floor does not vanish.
    """
    _check_count("n_samples", n_samples, least=1)
    for name, value in (("distance_norm", distance_norm), ("noise", noise), ("delta", delta)):
        check_not_negative(name, value)
    constant = regularizer_constant(nu=nu, n_nodes=n_nodes, n_silos=n_silos)
    spread = noise * np.sqrt(_n_pairs(n_nodes) * n_silos + delta)
    return float((distance_norm * np.sqrt(n_silos) + spread) / (constant * n_samples))


def error_bound(*, lam: float, nu: float, beta: float, n_nodes: int, n_silos: int, gradient_norm: float) -> float:
    """The right side of Theorem 1, given C_h = `gradient_norm`: holds for the local graphs, not for the consensus.

    Assumes what `lambda_floor` assumes and λ at or above it, ζ = 0, no isolated node in the true graphs, and an exact
    solution of the joint problem. `local_error_bound` is sharper and assumes nothing of the data or of λ.
    """
    check_positive("beta", beta)
    check_not_negative("lam", lam)
    check_not_negative("gradient_norm", gradient_norm)
    constant = regularizer_constant(nu=nu, n_nodes=n_nodes, n_silos=n_silos)
    return float(constant * lam / beta + gradient_norm * np.sqrt(n_silos) / (2 * beta))


def probability(*, delta: float, n_nodes: int, n_silos: int) -> float:
    """The probability that Theorem 1 claims for its bound, for `delta` > 0.

    A Chernoff bound on the tail of a χ² variable with pI degrees of freedom: true, provided the errors of the distances
    are normal and independent. Those of signals are neither.
    """
    check_not_negative("delta", delta)
    freedom = _n_pairs(n_nodes) * _check_count("n_silos", n_silos, least=1)
    exponent = max(delta - freedom * float(np.log1p(delta / freedom)), 0.0)  # rounding may take it below
    return float(-np.expm1(-0.5 * exponent))


def delta_for(*, probability: float, n_nodes: int, n_silos: int) -> float:
    """The δ for which Theorem 1 claims this probability: the inverse of `probability`."""
    if not 0 <= probability < 1:
        raise ParameterError(f"probability: expected a number from 0 to below 1, got {probability}.")
    freedom = _n_pairs(n_nodes) * _check_count("n_silos", n_silos, least=1)
    return (_root(-2 * float(np.log1p(-probability)) / freedom, above_one=True) - 1) * freedom


def largest_distance_norm(distances: Sequence[Vector]) -> float:
    """C_z of Assumption 1: the largest ‖z_i‖ over the silos, z_i the squared distances summed over samples.

    `Moments` and `LocalProblem` hold means z/N; multiply them by N.
    """
    return max(float(np.linalg.norm(_check_vector(z, f"distances of silo {k + 1}"))) for k, z in enumerate(distances))


def largest_gradient_norm(graphs: Sequence[Vector], *, alpha: float, beta: float) -> float:
    """C_h of Assumption 2: the largest ‖∇h(w_i*)‖ over the true graphs, h(w) = −α Σ log(Sw) + 2β‖w‖².

    Assumes graphs without isolated nodes, given as one weight per pair in the order of the upper triangle.
    """
    return max(_gradient_norm(w, k + 1, alpha, beta) for k, w in enumerate(graphs))


def local_error_bound(problem: LocalProblem, truth: Vector, *, rho: float = 0.0) -> float:
    """How far one silo's graph in the joint optimum can be from `truth`: (‖v‖ + ρ)/q, for any data and ρ = λν ≥ 0.

    v is the gradient of the silo's own `problem` at the truth, without its positive part where the truth has no edge
    (a weight can only grow there). Assumes that no node is isolated in the truth, or ζ > 0. It follows from q-strong
    convexity alone: whatever the consensus is, its pull on a silo is never stronger than ρ.
    """
    check_not_negative("rho", rho)
    w = _check_vector(truth, "truth")
    if w.size != problem.pairs.size or (w < 0).any():
        raise ParameterError(f"truth: expected {problem.pairs.size} weights ≥ 0, one per pair of the problem.")
    if (problem.pairs.degrees(w) + problem.zeta).min() <= 0:
        raise ParameterError("truth: expected an edge at every node, as zeta is 0. Use a problem with zeta > 0.")
    gradient = problem.gradient(w)
    felt = np.where(w > 0, gradient, np.minimum(gradient, 0.0))
    return (float(np.linalg.norm(felt)) + rho) / float(np.min(problem.quadratic))


def _root(excess: float, *, above_one: bool) -> float:
    """The x > 0 with x − 1 − log x = excess, on the side of 1 that is asked for."""
    if excess < 1e-10:  # where Lambert's function loses its digits
        return float(1 + np.sqrt(2 * excess) if above_one else 1 - np.sqrt(2 * excess))
    from scipy.special import lambertw  # slow to import, for those who ask

    return float(-lambertw(-np.exp(-1 - excess), -1 if above_one else 0).real)


def _gradient_norm(graph: Vector, silo: int, alpha: float, beta: float) -> float:
    w = _check_vector(graph, f"graph of silo {silo}")
    n_nodes = round((1 + np.sqrt(1 + 8 * w.size)) / 2)
    if _n_pairs(n_nodes) != w.size:
        raise ParameterError(f"graph of silo {silo}: expected one weight per pair of nodes, got {w.size} numbers.")
    pairs = Pairs.all(n_nodes)
    isolated = np.flatnonzero(pairs.degrees(w) <= 0)
    if isolated.size:
        raise ParameterError(
            f"graph of silo {silo}: expected an edge at every node, got none at node {isolated[0]}. "
            "The gradient is infinite there; drop the node."
        )
    regularizer = LocalProblem(cost=np.zeros(w.size), pairs=pairs, quadratic=4 * beta, alpha=alpha)
    return float(np.linalg.norm(regularizer.gradient(w)))


def _n_pairs(n_nodes: int) -> int:
    return _check_count("n_nodes", n_nodes, least=2) * (n_nodes - 1) // 2


def _check_vector(values: Vector, name: str) -> Vector:
    vector = np.ascontiguousarray(values, dtype=np.float64)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise ParameterError(
            f"{name}: expected one finite number per pair, got shape {vector.shape}, or NaN or inf in it."
        )
    return vector


def _check_model(*, alpha: float, beta: float, n_nodes: int, pull: float) -> None:
    check_positive("alpha", alpha)
    check_positive("beta", beta)
    _check_count("n_nodes", n_nodes, least=2)
    check_not_negative("pull", pull)


def _check_count(name: str, value: int, *, least: int) -> int:
    if value != int(value) or value < least:
        raise ParameterError(f"{name}: expected a whole number ≥ {least}, got {value}.")
    return int(value)
