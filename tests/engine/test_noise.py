"""Noise in one process: its size, what carries it, and that a run that is resumed has the same."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from silograph.data.blocks import moments_of_blocks
from silograph.data.bounded import RowBounds
from silograph.data.costs import table_costs
from silograph.data.pairwise import moments_of
from silograph.engine.checkpoint import Checkpoint
from silograph.engine.inprocess import InProcess
from silograph.engine.noise import plan_for, with_min_samples
from silograph.engine.study import learn_silos, run_identity
from silograph.errors import CheckpointError, ParameterError, SilosError
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import build_setup
from silograph.privacy.settings import Privacy
from silograph.protocol.messages import Header, Task
from silograph.protocol.silo import Silo

N_NODES, N_SAMPLES = 6, 200
PAIRS, NAMES = Pairs.all(N_NODES), tuple("abcdef")
PRIVACY = Privacy(sums="masked", epsilon=2.0, delta=1e-5)
ONESHOT = StudySettings(method="oneshot", degree=2.0, privacy=PRIVACY)
EXACT = StudySettings(method="exact", alpha=1.0, beta=0.5, privacy=replace(PRIVACY, sums="open"))


def silos(number: int = 4, seed: int = 0) -> list[Silo]:
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(N_NODES, N_NODES))
    out = []
    for k in range(number):
        table = rng.normal(size=(N_SAMPLES + k, N_NODES)) @ mix
        read = table_costs(
            moments_of(table, PAIRS, RowBounds()),
            moments_of_blocks(table, PAIRS, RowBounds()),
            standardize=False,
            names=NAMES,
            source="t",
        )
        out.append(Silo(name=f"s{k}", pairs=PAIRS, cost=read.cost, n_samples=read.n_samples, blocks=read.blocks))
    return out


def opened(settings: StudySettings, some: list[Silo]) -> np.ndarray:
    """One sum of the set-up, as the coordinator's half gets it."""
    settings = with_min_samples(settings, some)
    engine, setup = InProcess(some, noise=plan_for(settings, PAIRS, len(some))), build_setup(settings, PAIRS)
    task = Task(header=Header(run="r", method="setup", step="costs", round=1), parts={})
    return engine.exchange(setup, task).vector("cost")


@pytest.mark.parametrize(("sums", "times"), [("masked", 4 / 3), ("open", 4)])
def test_the_sum_has_the_noise_of_all_shares_or_all_of_it_from_each_silo(sums, times):
    some = silos()
    settings = replace(ONESHOT, privacy=replace(PRIVACY, sums=sums))
    noise = plan_for(with_min_samples(settings, some), PAIRS, 4)
    exact = np.sum([silo.cost for silo in some], axis=0)
    off = np.array([opened(settings, some) - exact for _ in range(400)]) / (2 * noise.sigma)
    low, high = chi2.ppf([1e-5, 1 - 1e-5], 400) / 400
    assert (low * times < (off**2).mean(axis=0)).all()
    assert ((off**2).mean(axis=0) < high * times).all()


def test_no_sum_that_the_coordinator_works_with_is_below_zero():
    settings = replace(ONESHOT, privacy=replace(PRIVACY, epsilon=0.02))
    assert any((opened(settings, silos()) < 0).any() for _ in range(20))
    study = learn_silos(silos(), settings)
    assert np.isfinite(study.consensus).all()
    assert study.converged


@pytest.mark.parametrize("epsilon", [0.02, 1.0, 50.0])
@pytest.mark.parametrize("method", ["oneshot", "pooled", "exact", "independent", "ditto", "fedavg"])
def test_every_method_learns_with_any_noise(method, epsilon):
    open_sums = replace(PRIVACY, sums="open", epsilon=epsilon)
    study = learn_silos(silos(), StudySettings(method=method, degree=2.0, privacy=open_sums))
    assert all(np.isfinite(w).all() for w in (study.consensus, *study.graphs.values()))


def test_little_noise_changes_little_and_much_noise_much():
    exact = learn_silos(silos(), replace(ONESHOT, privacy=Privacy())).consensus

    def off(epsilon: float) -> float:
        settings = replace(ONESHOT, privacy=replace(PRIVACY, epsilon=epsilon))
        return float(np.linalg.norm(learn_silos(silos(), settings).consensus - exact) / np.linalg.norm(exact))

    assert off(1000.0) < 0.05 < 0.3 < off(0.05)


def test_own_graphs_of_one_shot_are_of_exact_costs_and_those_of_other_methods_are_not():
    some, exact_sum = silos(), np.sum([silo.cost for silo in silos()], axis=0)
    engine_sum = opened(EXACT, some)
    assert engine_sum == pytest.approx(exact_sum, rel=1e-12)  # there it is the silos that are noisy, not their sum
    with_noise, without = (
        learn_silos(some, replace(s, pull=0.0)) for s in (ONESHOT, replace(ONESHOT, privacy=Privacy()))
    )
    # Without a pull, and with α and β as good as alike, own graphs are of the silos' own data
    assert np.corrcoef(with_noise.graphs["s0"], without.graphs["s0"])[0, 1] > 0.95
    noisy = [learn_silos(some, replace(EXACT, method="independent")).graphs["s0"] for _ in range(2)]
    assert (noisy[0] != noisy[1]).any()


class KilledError(Exception):
    pass


def learn_until(stage: str, some, settings, folder):
    def stop(name: str, record) -> None:
        if name == stage:
            raise KilledError

    with pytest.raises(KilledError):
        learn_silos(some, settings, checkpoint=folder, on_round=stop)


@pytest.mark.parametrize("settings", [ONESHOT, EXACT], ids=["one sum", "own costs"])
def test_a_run_that_is_resumed_after_its_noise_was_drawn_has_the_same_bits(settings, tmp_path):
    some = silos()
    learn_until("setup", some, settings, tmp_path / "run")
    ends = []
    for copy in ("one", "other"):
        shutil.copytree(tmp_path / "run", tmp_path / copy)
        ends.append(learn_silos(some, settings, checkpoint=tmp_path / copy))
    assert ends[0].consensus.tobytes() == ends[1].consensus.tobytes()
    assert all(ends[0].graphs[name].tobytes() == ends[1].graphs[name].tobytes() for name in ends[0].graphs)
    fresh = learn_silos(some, settings, checkpoint=tmp_path / "fresh")
    assert fresh.consensus.tobytes() != ends[0].consensus.tobytes()


def test_the_noisy_sum_is_what_the_checkpoint_keeps(tmp_path):
    some = silos()
    learn_until("setup", some, ONESHOT, tmp_path)
    settings = replace(with_min_samples(ONESHOT, some), cost_unit=1.0)
    kept = Checkpoint(tmp_path / "setup", run_id=run_identity(some, settings)).load()
    cost = kept["coordinator"]["outcome"]["cost_sum"]
    exact = np.sum([silo.cost for silo in some], axis=0)
    assert (cost != exact).all()
    assert np.abs(cost - exact).max() < 10 * 2 * plan_for(settings, PAIRS, 4).sigma


def test_a_run_with_other_privacy_does_not_go_on_with_this_one(tmp_path):
    some = silos()
    learn_until("setup", some, ONESHOT, tmp_path)
    with pytest.raises(CheckpointError, match="other settings"):
        learn_silos(some, replace(ONESHOT, privacy=replace(PRIVACY, epsilon=2.5)), checkpoint=tmp_path)


def test_the_least_number_of_rows_is_the_smallest_table_s_unless_another_is_known():
    assert with_min_samples(ONESHOT, silos()).privacy.min_samples == N_SAMPLES
    known = replace(ONESHOT, privacy=replace(PRIVACY, min_samples=50))
    assert with_min_samples(known, silos()).privacy.min_samples == 50
    with pytest.raises(SilosError, match="s0: expected at least 201 rows"):
        with_min_samples(replace(ONESHOT, privacy=replace(PRIVACY, min_samples=201)), silos())


def test_what_cannot_be_protected_is_refused():
    with pytest.raises(ParameterError, match="masked: shares of noise need 3 silos at least, got 2"):
        learn_silos(silos(2), ONESHOT)
    with pytest.raises(ParameterError, match="collusion"):
        learn_silos(silos(), replace(ONESHOT, privacy=replace(PRIVACY, collusion=4)))
    with pytest.raises(ParameterError, match="without rows"):
        learn_silos([replace(silo, n_samples=None) for silo in silos()], ONESHOT)


def test_the_unit_of_costs_comes_from_the_bound_and_not_from_the_data():
    some = [replace(silo, cost=silo.cost * 1e-30) for silo in silos()]
    assert learn_silos(some, ONESHOT).cost_unit == 1.0
    longer = replace(ONESHOT, privacy=replace(PRIVACY, rows=1e6))
    assert longer.cost_unit_used == 2.0**40
