"""Newcomers: how often one drawn like the others is called unusual, and how often one that is not.

    python -m benchmarks.newcomers [DRAWS [CASE…]]

Synthetic silos of the paper, 25 and a newcomer, 15 nodes, standardised, coupling .5. The newcomer is drawn like the
others, has none of the edges that they share, or is of another graph.
"""

import sys
import warnings

import numpy as np

from silograph import ConsensusGraph
from silograph.datasets import make_silos
from silograph.runs.placing import Newcomer

N_SILOS, N_NODES = 25, 15
CASES = (  # rows of silos, of the newcomer, alike, newcomer
    (100, 100, 0.5, "alike"),
    (100, 100, 0.5, "own"),
    (100, 100, 0.5, "other"),
    (100, 100, 0.8, "alike"),
    (100, 100, 0.8, "own"),
    (100, 100, 0.8, "other"),
    ((40, 400), None, 0.5, "alike"),
    ((40, 400), None, 0.5, "other"),
    (200, 40, 0.5, "alike"),
    (200, 40, 0.5, "other"),
    (60, 600, 0.5, "alike"),
    (60, 600, 0.5, "other"),
)
Rows = int | tuple[int, int]


def draw(seed: int, rows: Rows, of_newcomer: int | None, shared: float, kind: str) -> list[np.ndarray]:
    """The silos' tables, the newcomer's last."""
    rng = np.random.default_rng([seed, 7])
    n_rows = [rows] * (N_SILOS + 1) if isinstance(rows, int) else rng.integers(*rows, N_SILOS + 1).tolist()
    n_rows[-1] = of_newcomer or n_rows[-1]
    parts = [shared] * N_SILOS + [0.0 if kind == "own" else shared]
    drawn = make_silos(seed=seed, n_silos=N_SILOS + 1, n_samples=n_rows, n_nodes=N_NODES, shared=parts)
    tables = list(drawn.signals.values())
    if kind == "other":
        other = make_silos(seed=[seed, 1], n_silos=1, n_samples=n_rows[-1], n_nodes=N_NODES, shared=shared)
        (tables[-1],) = other.signals.values()
    return tables


def place(tables: list[np.ndarray]) -> Newcomer:
    """The newcomer beside the consensus of the others."""
    model = ConsensusGraph(coupling=0.5, standardize=True, newcomers=True)
    return model.fit(tables[:-1]).place(tables[-1])


def main(n_draws: int = 200, *cases: int) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| rows of silos | of the newcomer | shared | the newcomer is | unusual | mean p |")
    print("|---|---|---|---|---|---|")
    for rows, of_newcomer, shared, kind in [CASES[k] for k in cases] or CASES:
        found = [place(draw(seed, rows, of_newcomer, shared, kind)) for seed in range(n_draws)]
        n_rows = rows if isinstance(rows, int) else f"{rows[0]} to {rows[1]}"
        print(
            f"| {n_rows} | {of_newcomer or 'as the silos'} | {shared:g} | {kind} | "
            f"{np.mean([not one.usual for one in found]):.1%} | {np.mean([one.p for one in found]):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
