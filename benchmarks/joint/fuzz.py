"""Random problems: does every one end with a certificate, and after how many rounds?

`python -m benchmarks.joint.fuzz --problems 4000` takes some minutes. Half of the problems have two silos, the others
three to ten. α is drawn over two decades, β over three, λ over four, ν over three, N from 3 to 200, nodes from 4 to 40.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from silograph.engine.study import StudyResult, learn_silos
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo
from testing.silo_problems import KINDS, silo_costs

PROMISED = 25  # rounds

Problem = tuple[str, list[np.ndarray], dict[str, float]]  # label, one cost vector per silo, parameters


def main() -> None:
    """Solve them all, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=400)
    parser.add_argument("--seed", type=int, default=20260)
    options = parser.parse_args()
    rounds: dict[str, list[int]] = {"two": [], "more": []}
    for label, costs, parameters in problems(options.problems, options.seed):
        study = solve(costs, parameters)
        rounds["two" if len(costs) == 2 else "more"].append(study.n_rounds)
        if not study.converged or study.n_rounds > PROMISED:
            print(
                f"{study.n_rounds} rounds, gap {study.gap:.1e}{'' if study.converged else ', NOT CERTIFIED'}: {label}"
            )
    for silos, counts in (*rounds.items(), ("all", rounds["two"] + rounds["more"])):
        share = np.mean(np.array(counts) <= PROMISED)
        quantiles = np.quantile(counts, [0.5, 0.9, 0.99, 1])
        print(
            f"{silos}: {len(counts)} problems, {share:.2%} within {PROMISED} rounds; 50, 90, 99 and 100 %: {quantiles}"
        )


def problems(number: int, seed: int) -> Iterator[Problem]:
    """The problems."""
    for k in range(number):
        rng = np.random.default_rng([seed, k])
        n_silos = 2 if k % 2 == 0 else int(rng.integers(3, 11))
        n_nodes, n_samples = (int(np.exp(rng.uniform(np.log(low), np.log(high)))) for low, high in ((4, 41), (3, 201)))
        kind = str(rng.choice([*KINDS, "shuffled"]))
        alpha, beta, lam, nu = 10 ** rng.uniform([-1, -1.5, -3, -1], [1, 1.5, 1, 2])
        label = f"{kind}, I={n_silos}, d={n_nodes}, N={n_samples}, α={alpha:.3g}, β={beta:.3g}, λ={lam:.3g}, ν={nu:.3g}"
        parameters = {"alpha": float(alpha), "beta": float(beta), "lam": float(lam), "nu": float(nu)}
        yield f"{label} (problem {k})", silo_costs(rng, kind, n_silos, n_nodes, n_samples), parameters


def solve(costs: list[np.ndarray], parameters: dict[str, float]) -> StudyResult:
    """The exact method's answer."""
    n_nodes = round((1 + np.sqrt(1 + 8 * costs[0].size)) / 2)
    pairs = Pairs.all(n_nodes)
    silos = [Silo(name=f"silo {i}", pairs=pairs, cost=cost) for i, cost in enumerate(costs)]
    return learn_silos(silos, StudySettings(tol=1e-6, **parameters))


if __name__ == "__main__":
    main()
