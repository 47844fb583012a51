"""How many people a study needs, by simulation."""

import time

import numpy as np
import pytest

from silograph import ParameterError
from silograph.audit.plan import Trial, plan, simulate_noise, try_people
from silograph.graph.pairs import Pairs
from silograph.privacy.noise import plan_noise
from silograph.privacy.settings import Privacy

PRIVACY = Privacy(sums="masked", epsilon=2.0, delta=1e-5)


@pytest.fixture(scope="module")
def found():
    return plan(10, 4, 2.0, 1e-5, draws=4)


def test_noise_takes_away_more_than_it_may_just_below_the_number_found(found):
    by_people = {trial.people: trial for trial in found.trials}
    assert by_people[found.people].is_useful()
    below = [trial for trial in found.trials if trial.people < found.people]
    assert not below[-1].is_useful()
    assert found.people <= 1.2 * below[-1].people


def test_it_is_found_again(found):
    assert plan(10, 4, 2.0, 1e-5, draws=4) == found


def test_less_noise_needs_fewer_people(found):
    assert plan(10, 4, 8.0, 1e-5, draws=4).people < found.people < plan(10, 4, 2.0, 1e-5, masked=False, draws=4).people


def test_progress_is_told_of_every_trial():
    told: list[Trial] = []
    found = plan(6, 3, 8.0, 1e-5, draws=1, on_progress=told.append)
    assert sorted(told, key=lambda trial: trial.people) == list(found.trials)


def test_a_plan_that_no_number_serves_says_so(monkeypatch):
    monkeypatch.setattr("silograph.audit.plan.MOST", 50)
    found = plan(6, 3, 0.1, 1e-5, draws=2, within=-1.0)
    assert found.people is None
    assert [trial.people for trial in found.trials] == [25, 50]


def test_simulated_noise_is_of_the_size_of_the_real_one():
    pairs, rng = Pairs.all(5), np.random.default_rng(0)
    noise = plan_noise(PRIVACY, n_nodes=5, n_sites=6, min_samples=100, shared=True)
    simulated = np.array([simulate_noise(noise, pairs, 6, rng) for _ in range(2000)])
    real = np.array([sum(noise.add(np.zeros(10), pairs) for _ in range(6)) for _ in range(500)])
    assert simulated.std(axis=0) == pytest.approx(np.full(10, real.std()), rel=0.12)
    assert np.corrcoef(simulated[:, :2].T)[0, 1] == pytest.approx(0.25, abs=0.08)


def test_what_cannot_be_planned_is_refused():
    with pytest.raises(ParameterError, match="masks need 3 sites"):
        plan(10, 2, 1.0, 1e-5)
    with pytest.raises(ParameterError, match="nodes"):
        plan(2, 3, 1.0, 1e-5)


def test_so_few_nodes_that_some_silos_share_no_edge_can_be_planned_for():
    tried = try_people(200, 5, 3, PRIVACY, draws=30, seed=0)  # some of the first 30 draws share none
    assert 0 < tried.with_noise <= tried.without + 0.1 <= 1.1


def test_one_trial_is_quick():
    began = time.perf_counter()
    try_people(1000, 20, 5, PRIVACY, draws=2, seed=0)
    assert time.perf_counter() - began < 20
