"""What noise costs: zero-concentrated differential privacy (ρ), and the (ε, δ) that it amounts to.

A sum with Gaussian noise of σ₁ times its sensitivity costs ρ = 1/(2σ₁²) (Bun and Steinke 2016; for the discrete
Gaussian: Canonne, Kamath and Steinke 2020). Costs of several sums add up, whatever was asked in between. A total ρ is
(ε, δ)-differentially private for each order a > 1 with

    ε = aρ + log(1 − 1/a) − log(a δ)/(a − 1)            (Canonne, Kamath and Steinke 2020, Proposition 12)

We take the least over the orders that dp-accounting takes by default. So what is stated here is never below what that
library or OpenDP state, and one study at ε = 1 uses up a budget of 1: σ₁ comes from the same conversion.
"""

from math import inf, log, log1p, sqrt

from silograph.errors import ParameterError

ORDERS = tuple(1 + k / 10 for k in range(1, 100)) + tuple(map(float, range(11, 64))) + (128.0, 256.0, 512.0, 1024.0)
SAFE = 1 + 1e-12  # sums of logarithms may round down
MOST_EPSILON = 1e6


def rho_of(multiplier: float) -> float:
    """What a sum costs whose noise is so many times its sensitivity."""
    return 0.5 / multiplier**2


def epsilon_of(rho: float, delta: float) -> float:
    """The ε that a total cost amounts to at this δ; infinite where a sum without noise was opened (ρ = ∞)."""
    if rho == 0:
        return 0.0
    if rho == inf:
        return inf
    least = min(order * rho + log1p(-1 / order) - log(order * delta) / (order - 1) for order in ORDERS)
    return SAFE * max(least, 0.0)


def rho_for(epsilon: float, delta: float) -> float:
    """The largest total cost that (ε, δ) allows."""
    if not epsilon <= MOST_EPSILON:
        raise ParameterError(f"epsilon: expected at most {MOST_EPSILON:g}, got {epsilon:g}: so much promises nothing.")
    high = 1.0
    while epsilon_of(high, delta) < epsilon:
        high *= 2
    low = high
    while epsilon_of(low, delta) > epsilon:
        low /= 2
        if low < 1e-30:
            least = epsilon_of(1e-30, delta)
            raise ParameterError(f"epsilon: expected more than {least:.3g} at delta = {delta:g}, got {epsilon:g}.")
    from scipy.optimize import brentq  # slow to load, and only noise needs it

    found = float(brentq(lambda rho: epsilon_of(rho, delta) - epsilon, low, high, xtol=1e-300, rtol=1e-14))
    while epsilon_of(found, delta) > epsilon:
        found *= 1 - 1e-13
    return found


def multiplier_for(epsilon: float, delta: float) -> float:
    """σ₁: the standard deviation of the noise, in units of the sensitivity, that one sum at (ε, δ) needs."""
    return sqrt(0.5 / rho_for(epsilon, delta)) * SAFE
