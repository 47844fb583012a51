"""Many studies at once: the same bits as one by one, in order, whatever the number of threads."""

import numpy as np
import pytest

from silograph.engine.batch import Study, learn_batch
from silograph.engine.study import learn_silos
from silograph.errors import ParameterError, SilographError
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo
from testing.silo_problems import pair_costs, silo_signals

SETTINGS = StudySettings(degree=3, coupling=0.7, tol=1e-6)


def half_samples(number: int, *, silos: int = 3, nodes: int = 10) -> list[Study]:
    rng = np.random.default_rng(5)
    signals = silo_signals(rng, "different", silos, nodes, 40)
    made = []
    for _ in range(number):
        halves = [pair_costs(x[rng.permutation(40)[:20]]) for x in signals]
        own = tuple(Silo(name=f"silo {i}", pairs=Pairs.all(nodes), cost=cost) for i, cost in enumerate(halves))
        made.append(Study(silos=own, settings=SETTINGS))
    return made


@pytest.mark.parametrize("workers", [None, 1, 2, 5])
def test_a_batch_has_the_bits_of_its_studies_in_order(workers):
    studies = half_samples(7)
    alone = [learn_silos(study.silos, study.settings, workers=1) for study in half_samples(7)]
    together = list(learn_batch(studies, workers=workers))
    assert len(together) == 7
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.consensus, other.consensus)
        for name, graph in one.graphs.items():
            np.testing.assert_array_equal(graph, other.graphs[name])


def test_studies_may_differ_in_parameters_and_in_where_they_start():
    first = half_samples(1)[0]
    reached = learn_silos(first.silos, first.settings)
    couplings = (0.3, 0.7, 1.2)
    path = [
        Study(silos=half_samples(1)[0].silos, settings=StudySettings(degree=3, coupling=c), start=reached.consensus)
        for c in couplings
    ]
    learned = list(learn_batch(path, workers=2))
    assert [study.coupling for study in learned] == list(couplings)
    assert all(study.converged for study in learned)


def test_studies_are_made_as_they_are_needed():
    made = []

    def making():
        for number, study in enumerate(half_samples(20)):
            made.append(number)
            yield study

    batch = learn_batch(making(), workers=2)
    next(batch)
    assert len(made) <= 5
    batch.close()
    assert len(made) <= 6


def test_an_error_comes_in_its_turn_and_ends_the_batch():
    good, bad = half_samples(2)
    bad = Study(silos=bad.silos, settings=StudySettings(degree=50))
    batch = learn_batch([good, bad, *half_samples(2)], workers=2)
    assert next(batch).converged
    with pytest.raises(SilographError, match="degree"):
        next(batch)
    assert list(batch) == []


def test_a_batch_needs_a_worker():
    with pytest.raises(ParameterError, match="workers"):
        list(learn_batch([], workers=0))
