"""What missing regions do to the graphs of ABIDE's people: `SILOGRAPH_DATA=… python -m benchmarks.missing_nodes`.

From one person in five, between 1 and 11 regions are taken, of a fifth of the regions that may be lost, as those at the
edge of a field of view are: of any, nearly all would be lost by somebody. Learned is from all data, from what is left
(missing_nodes="allow"), and without those regions for everybody. The latter two are compared with the first on the
regions that all kept, and "allowed" also on all that a person has. "dropped" has α and β of the complete data: asked
for the same degree among fewer regions, it would have more edges than what it is compared with.
"""

from __future__ import annotations

import time

import numpy as np

from silograph import ConsensusGraph
from silograph.datasets.abide import load_abide

LACKING, LOSABLE, MOST, SEEDS = 5, 5, 11, (0, 1, 2)  # one person, and one region, in five; regions taken; draws


def take_away(series: dict[str, np.ndarray], rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Tables with empty columns, and the regions that nobody lost."""
    out = {name: table.astype(np.float64) for name, table in series.items()}
    n_regions = next(iter(series.values())).shape[1]
    losable = rng.choice(n_regions, n_regions // LOSABLE, replace=False)
    kept = np.ones(n_regions, dtype=bool)
    for name in rng.choice(list(series), len(series) // LACKING, replace=False):
        gone = rng.choice(losable, rng.integers(1, MOST + 1), replace=False)
        out[str(name)][:, gone] = np.nan
        kept[gone] = False
    return out, np.flatnonzero(kept)


def learned(tables: dict[str, np.ndarray], **settings) -> tuple[str, np.ndarray, ConsensusGraph]:
    """What the run took, the weights of all people and, last, of the consensus, and the model."""
    began = time.perf_counter()
    model = ConsensusGraph(standardize=True, **settings).fit(tables)
    took = f"{model.gap_:8.1e} {model.n_rounds_:7d} {time.perf_counter() - began:8.1f}"
    return took, np.concatenate([model.adjacencies_, model.consensus_[None]]), model


def agreement(ours: np.ndarray, due: np.ndarray) -> str:
    """F-score of edges and correlation of weights, over the pairs of regions that were observed; means over graphs."""
    rows, cols = np.triu_indices(due.shape[-1], 1)
    scores = []
    for mine, full in zip(ours[:, rows, cols], due[:, rows, cols], strict=True):
        seen = ~np.isnan(mine)
        x, y = mine[seen], full[seen]
        n_edges = (x > 0).sum() + (y > 0).sum()
        if n_edges and np.ptp(x) and np.ptp(y):  # among few regions, there may be no edge at all
            scores.append((2 * ((x > 0) & (y > 0)).sum() / n_edges, np.corrcoef(x, y)[0, 1]))
    return "{:.3f}, {:.3f}".format(*np.mean(scores, axis=0)) if scores else f"{'no edges':12s}"


def main() -> None:
    """Print the table."""
    series = load_abide().series
    n_regions = next(iter(series.values())).shape[1]
    print(f"{len(series)} people, {n_regions} regions. F-score and correlation of weights with the complete data's:")
    print(
        f"{'':24s}{'gap':>8s} {'rounds':>7s} {'seconds':>8s}    consensus       people          of those who lack some"
    )
    took, complete, model = learned(series, degree=5)
    print(f"{'complete':24s}{took}")
    for seed in SEEDS:
        tables, kept = take_away(series, np.random.default_rng(seed))
        lacking = np.flatnonzero([np.isnan(table).any() for table in tables.values()])
        took, every, _ = learned(tables, degree=5, missing_nodes="allow")
        fewer = {name: table[:, kept] for name, table in tables.items()}
        took_dropped, dropped, _ = learned(fewer, alpha=model.alpha_, beta=model.beta_)
        due = complete[:, kept][:, :, kept]
        for name, cost, ours, full in (
            (f"allowed, all {n_regions}", took, every, complete),
            (f"allowed, the {len(kept)} kept", "", every[:, kept][:, :, kept], due),
            (f"dropped, the {len(kept)} kept", took_dropped, dropped, due),
        ):
            groups = (slice(-1, None), slice(0, -1), lacking)
            cells = "    ".join(agreement(ours[group], full[group]) for group in groups)
            print(f"{name:24s}{cost:25s}    {cells}", flush=True)


if __name__ == "__main__":
    main()
