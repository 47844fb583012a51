"""Compile the loops that learning needs before somebody waits for them; `python -m silograph.engine.warm_up`."""

import numpy as np

from silograph.data.moments import Moments
from silograph.engine.study import learn_silos
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo


def warm_up() -> None:
    """Learn from a few random numbers by the default method, so that its loops are compiled and kept on disk."""
    rng = np.random.default_rng(0)
    tables = [Moments.of(rng.normal(size=(12, 6))) for _ in range(3)]
    silos = [Silo(name=str(k), pairs=t.pairs, cost=t.costs(), n_samples=12) for k, t in enumerate(tables)]
    learn_silos(silos, StudySettings())


if __name__ == "__main__":
    warm_up()
