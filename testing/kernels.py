"""Compile the loops that most tests need, once, before workers that run side by side would each do so.

Run as `python -m testing.kernels`; it takes fifteen seconds where nothing is cached, and two where all is.
"""

from __future__ import annotations

import numpy as np

from silograph import ConsensusGraph, SmoothGraph


def main() -> None:
    """Learn small graphs in the main ways."""
    rng = np.random.default_rng(0)
    silos = [rng.normal(size=(20, 8)) for _ in range(3)]
    for solver in ("newton", "gradient"):
        SmoothGraph(degree=3, solver=solver).fit(silos[0])
    for method in ("exact", "algorithm1", "fedavg"):
        ConsensusGraph(degree=3, method=method, tol=1e-3).fit(silos)


if __name__ == "__main__":
    main()
