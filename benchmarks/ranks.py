"""Ranks: what they save where values are not normal, and what they cost where they are.

    python -m benchmarks.ranks

One synthetic silo of the paper, 20 nodes, 200 samples, 40 draws: the mean average precision of pairs against the graph
that the samples were drawn from, standardised and by ranks.
"""

import numpy as np

from silograph import SmoothGraph
from silograph.datasets import make_silos
from silograph.metrics import average_precision

N_DRAWS = 40
FORMS = {
    "normal": lambda z: z,
    "cubed": lambda z: z**3,
    "exp(1.5 x)": lambda z: np.exp(1.5 * z),
    "five answers, even": lambda z: np.digitize(z, [-1.5, -0.5, 0.5, 1.5]).astype(float),
    "five answers, most say 1": lambda z: np.digitize(z, [0.0, 0.8, 1.4, 2.0]).astype(float),
}


def measure(seed: int, form: str) -> tuple[float, float]:
    """One draw."""
    drawn = make_silos(seed=seed, n_silos=1, n_samples=200)
    ((name, signals),) = drawn.signals.items()
    values = FORMS[form]((signals - signals.mean(axis=0)) / signals.std(axis=0))
    truth, models = drawn.graphs[name].adjacency(), (SmoothGraph(5, standardize=True), SmoothGraph(5, ranks=True))
    one, other = (average_precision(truth, model.fit(values).scores_) for model in models)
    return one, other


def main() -> None:
    """Print the table."""
    print("| values | standardised | ranks |")
    print("|---|---|---|")
    for form in FORMS:
        plain, ranks = np.mean([measure(seed, form) for seed in range(N_DRAWS)], axis=0)
        print(f"| {form} | {plain:.3f} | {ranks:.3f} |")


if __name__ == "__main__":
    main()
