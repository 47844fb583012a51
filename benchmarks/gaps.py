"""Gaps in tables: what is lost when cells are missing at random, by pairs and by rows, against complete tables.

    python -m benchmarks.gaps

Five synthetic silos of the paper, 20 nodes, 200 samples each, 20 draws. The bias is the mean of (cost − expected cost)
over the mean expected cost, with its standard error over draws; the error is the relative distance of costs to the
expected ones. F-scores are of silos' graphs (method exact): to those of complete tables, and, without weights below
0.001, to the true ones.
"""

import warnings

import numpy as np

from silograph import ConsensusGraph, SignalError, metrics
from silograph.data.costs import without_gaps
from silograph.data.pairwise import moments_of
from silograph.datasets.synthetic import laplacian, make_silos
from silograph.graph.pairs import Pairs

N_NODES, N_SAMPLES, N_DRAWS, NOISE = 20, 200, 20, 0.1
PAIRS = Pairs.all(N_NODES)


def with_gaps(signals: np.ndarray, part: float, rng: np.random.Generator) -> np.ndarray:
    """The table, a part of its cells missing at random."""
    return np.where(rng.uniform(size=signals.shape) < part, np.nan, signals)


def measure(seed: int, part: float, missing: str) -> dict[str, float]:
    """One draw: what is left of it, its costs and its graphs."""
    drawn, rng = make_silos(n_samples=N_SAMPLES, noise=NOISE, seed=seed), np.random.default_rng([seed, 1])
    tables = {name: with_gaps(signals, part, rng) for name, signals in drawn.signals.items()}
    used = {name: without_gaps(table)[0] if missing == "rows" else table for name, table in tables.items()}
    bias, error = [], []
    for name, table in used.items():
        covariance = np.linalg.pinv(laplacian(drawn.graphs[name])) + NOISE**2 * np.eye(N_NODES)
        expected = PAIRS.sums(np.diag(covariance).copy()) - 2 * covariance[PAIRS.rows, PAIRS.cols]
        off = moments_of(table, PAIRS).costs() - expected
        bias.append(off.mean() / expected.mean())
        error.append(np.linalg.norm(off) / np.linalg.norm(expected))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows left out, and of silos with few
        learned = ConsensusGraph(missing=missing).fit(tables)
        complete = ConsensusGraph().fit(drawn.signals)
    return {
        "rows": float(np.mean([len(table) for table in used.values()])),
        "bias": float(np.mean(bias)),
        "error": float(np.mean(error)),
        "to_complete": np.mean([metrics.f_score(complete.graphs_[n], learned.graphs_[n]) for n in tables]),
        "to_truth": np.mean([metrics.f_score(drawn.graphs[n], learned.graphs_[n], 1e-3) for n in tables]),
    }


def main() -> None:
    """Print the table."""
    print("| cells missing | treated by | rows | bias of costs | error of costs | F to complete | F to truth |")
    print("|---|---|---|---|---|---|---|")
    for part, missing in ((0.0, "error"), *((p, m) for p in (0.02, 0.1, 0.3) for m in ("pairs", "rows"))):
        try:
            draws = [measure(seed, part, missing) for seed in range(N_DRAWS)]
        except SignalError:  # some silo has hardly a row without a gap
            print(f"| {part:.0%} | {missing} | too few | | | | |")
            continue
        mean = {name: np.mean([draw[name] for draw in draws]) for name in draws[0]}
        spread = np.std([draw["bias"] for draw in draws], ddof=1) / np.sqrt(N_DRAWS)
        print(
            f"| {part:.0%} | {'nothing' if missing == 'error' else missing} | {mean['rows']:.0f} | "
            f"{mean['bias']:+.2%} ± {spread:.2%} | {mean['error']:.1%} | {mean['to_complete']:.2f} | "
            f"{mean['to_truth']:.2f} |"
        )


if __name__ == "__main__":
    main()
