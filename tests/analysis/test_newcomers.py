"""How far a silo is from a consensus that it had no part in."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph import ConsensusGraph, ParameterError, SilosError
from silograph.analysis import newcomers
from silograph.analysis.beside import Beside, graph_beside
from silograph.analysis.choosing import learn_study
from silograph.analysis.newcomers import LEAST_FOR_LEVEL, compare, distance_of, leave_out
from silograph.data.blocks import blocks_of, moments_of_blocks
from silograph.data.moments import Moments
from silograph.datasets import make_silos
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo
from testing.silo_problems import silo_signals

SETTINGS = StudySettings(coupling=0.5)


def silos_of(signals) -> list[Silo]:
    out = []
    for number, table in enumerate(signals):
        whole, parts = Moments.of(table), moments_of_blocks(table, Moments.of(table).pairs)
        blocks = blocks_of(parts, whole, standardize=True)
        cost = whole.costs(standardize=True)
        out.append(Silo(name=f"s{number}", pairs=whole.pairs, cost=cost, n_samples=len(table), blocks=blocks))
    return out


@pytest.fixture(scope="module")
def study():
    silos = silos_of(make_silos(seed=2, n_silos=6, n_nodes=12, n_samples=80).signals.values())
    return silos, learn_study(silos, SETTINGS)


@given(st.lists(st.floats(-2, 2), max_size=60), st.floats(-2, 2))
def test_the_place_among_others_is_a_conformal_p_from_nineteen_on(others, distance):
    found = compare(distance, others)
    as_far = sum(other >= distance for other in others)
    assert (found.n, found.farther_than) == (len(others), len(others) - as_far)
    if len(others) < LEAST_FOR_LEVEL:
        assert (found.p, found.usual) == (None, None)
    else:
        assert found.p == (1 + as_far) / (len(others) + 1)
        assert found.usual == (found.p > 0.05)


def test_of_nineteen_the_farthest_alone_is_unusual():
    assert compare(20.0, range(19)).usual is False
    assert compare(17.5, range(19)).usual is True


def test_a_silo_beside_its_own_study_has_the_graph_that_it_had_there(study):
    silos, learned = study
    beside = Beside(
        consensus=learned.whole_consensus, alpha=learned.alpha, beta=learned.beta, zeta=0.0, rho=learned.rho
    )
    for silo in silos:
        own = graph_beside(replace(silo), beside)
        np.testing.assert_allclose(own.w, learned.optimum.graphs[silo.name], atol=2e-3)


def test_the_plain_distance_is_that_of_whole_graphs(study):
    silos, learned = study
    u = learned.whole_consensus
    beside = Beside(consensus=u, alpha=learned.alpha, beta=learned.beta, zeta=0.0)
    w = solve_to_rounding(silos[0].problem(alpha=learned.alpha, beta=learned.beta, zeta=0.0), None).w
    plain = distance_of(silos[0], beside, None, rows=None)
    assert plain == pytest.approx(np.linalg.norm(w - u) / np.linalg.norm(u))


def test_halves_take_the_part_away_that_few_rows_have():
    """Of samples of one graph, the plain distance to it is ten times larger with few rows; that of halves is not."""
    signals, *_ = make_silos(seed=1, n_silos=1, n_nodes=12, n_samples=40_000).signals.values()
    (truth,) = silos_of([signals])
    problem = truth.problem(alpha=0.5, beta=0.25, zeta=0.0)
    beside = Beside(consensus=solve_to_rounding(problem, None).w, alpha=0.5, beta=0.25, zeta=0.0)
    some = silos_of(np.split(signals[:4000], 40))  # 100 rows each
    squares = [
        [np.sign(d) * d**2 for one in some if (d := distance_of(one, beside, None, rows=n))] for n in (None, 100)
    ]
    plain, halves = (np.mean(one) for one in squares)
    assert abs(halves) < 0.25 * plain


def test_of_a_table_with_many_rows_halves_have_as_many_as_others():
    (long,) = silos_of(make_silos(seed=2, n_silos=1, n_nodes=12, n_samples=800).signals.values())
    few, *_ = newcomers._splits(long, 100)
    assert few[0].cost == pytest.approx(long.blocks.cost([int(np.random.default_rng([0, 0]).permutation(16)[0])]))


def test_leaving_a_silo_out_compares_it_with_the_others_alone(study):
    silos, learned = study
    found = leave_out(silos, SETTINGS, learned)
    assert [one.silo for one in found] == [silo.name for silo in silos]
    inside = Beside(consensus=learned.whole_consensus, alpha=learned.alpha, beta=learned.beta, zeta=0.0)
    within = [distance_of(silo, inside, None, rows=80) for silo in silos]
    assert np.mean([one.distance for one in found]) > np.mean(within)  # who made it lies nearer
    assert found == leave_out(silos, SETTINGS, learned, workers=2)


def test_of_many_silos_some_are_drawn_by_a_fixed_seed(study, monkeypatch):
    silos, learned = study
    every = {one.silo: one for one in leave_out(silos, SETTINGS, learned)}
    monkeypatch.setattr(newcomers, "MOST_LEFT_OUT", 3)
    some = leave_out(silos, SETTINGS, learned)
    assert len(some) == 3
    assert all(one == every[one.silo] for one in some)
    assert some == leave_out(silos, SETTINGS, learned)


# --- the estimator ----------------------------------------------------------------------------------------------------


def test_a_silo_of_another_graph_is_unusual_and_one_drawn_alike_is_not():
    drawn = list(make_silos(seed=4, n_silos=26, n_nodes=15, n_samples=150, shared=0.8).signals.values())
    (other,) = make_silos(seed=77, n_silos=1, n_nodes=15, n_samples=150).signals.values()
    model = ConsensusGraph(degree=3, coupling=0.5, standardize=True, newcomers=True).fit(drawn[:25])
    alike, apart = model.place(drawn[25]), model.place(other)
    assert (alike.usual, apart.usual, apart.n) == (True, False, 25)
    assert apart.p == pytest.approx(1 / 26)
    assert apart.says.startswith("Unusual: it is farther from the consensus than 25 of 25 silos")
    assert apart.gap <= 1e-8
    assert apart.graph.names == model.consensus_graph_.names
    assert apart.graph.mean_degree == pytest.approx(3, abs=0.3)


@pytest.mark.parametrize("method", ["exact", "oneshot", "independent", "mrmtl", "ditto"])
def test_few_silos_tell_a_rank_alone_by_every_exact_method(method, rng):
    signals = silo_signals(rng, "different", 5, 9, 80)
    solver = {"solver": "newton"} if method in ("mrmtl", "ditto") else {}
    model = ConsensusGraph(method=method, newcomers=True, **solver).fit(signals[:4])
    found = model.place(signals[4])
    assert (found.n, found.p, found.usual) == (4, None, None)
    assert "can be told from 19 silos on" in found.says
    assert found.gap <= 1e-8


def test_without_left_out_silos_there_is_a_graph_and_a_distance(rng):
    signals = silo_signals(rng, "different", 4, 9, 80)
    found = ConsensusGraph(coupling=0.5).fit(signals[:3]).place(signals[3])
    assert found.n == 0
    assert "cannot be told" in found.says
    assert found.graph.n_edges > 0


@pytest.mark.parametrize("settings", [{"method": "pooled"}, {"method": "fedavg"}, {"epsilon": 5.0, "delta": 1e-5}])
def test_what_leaves_nothing_to_be_learned_beside_says_so(rng, settings):
    signals = silo_signals(rng, "different", 3, 9, 80)
    with pytest.raises(ParameterError, match="newcomers: "):
        ConsensusGraph(newcomers=True, **settings).fit(signals)
    if "epsilon" not in settings:
        model = ConsensusGraph(**settings).fit(signals)
        with pytest.raises(ParameterError, match="no consensus beside which"):
            model.place(signals[0])


def test_a_newcomer_may_lack_nodes_where_silos_may():
    import pandas as pd

    names = list("abcdefghi")
    frames = [pd.DataFrame(x, columns=names) for x in silo_signals(np.random.default_rng(0), "different", 5, 9, 80)]
    model = ConsensusGraph(coupling=0.5, missing_nodes="allow", newcomers=True).fit(frames[:4])
    found = model.place(frames[4][names[:0:-1]])
    assert found.graph.names == tuple(names[1:])
    strict = ConsensusGraph(coupling=0.5, newcomers=True).fit(frames[:4])
    assert strict.place(frames[4][names[::-1]]).graph == strict.place(frames[4]).graph
    for model_, table in ((strict, frames[4].drop(columns=["b"])), (model, frames[4].rename(columns={"b": "z"}))):
        with pytest.raises(SilosError, match=r"newcomer: expected the nodes of the consensus \(9\)"):
            model_.place(table)
