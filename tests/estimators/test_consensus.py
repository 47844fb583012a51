"""ConsensusGraph: what it accepts, what it refuses, what it tells."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from silograph import ConsensusGraph, DegreeWarning, NodesWarning, ParameterError, SignalError, SilosError, SmoothGraph
from testing.silo_problems import silo_signals


@pytest.fixture
def signals(rng) -> dict[str, np.ndarray]:
    return dict(zip(("oslo", "lima", "kyoto"), silo_signals(rng, "different", 3, 9), strict=True))


@pytest.fixture
def frames(signals) -> dict[str, pd.DataFrame]:
    return {name: pd.DataFrame(x, columns=[f"node {k}" for k in range(9)]) for name, x in signals.items()}


def test_it_learns_a_graph_for_each_silo_and_what_they_share(signals):
    model = ConsensusGraph(degree=3).fit(signals)
    assert list(model.graphs_) == model.silo_names_ == ["oslo", "lima", "kyoto"]
    assert model.adjacencies_.shape == (3, 9, 9)
    assert model.consensus_.shape == (9, 9)
    np.testing.assert_array_equal(model.adjacencies_[1], model.graphs_["lima"].adjacency())
    assert model.contributions_.shape == (3,)
    assert model.shares_.sum() == pytest.approx(1)
    assert model.gap_ <= 1e-6
    assert model.converged_
    assert len(model.history_) == model.n_rounds_
    assert model.history_[-1]["gap"] == model.gap_
    assert model.n_samples_seen_ == [len(x) for x in signals.values()]
    assert model.rho_ == pytest.approx(model.nu_ * model.lam_)


def test_contributions_are_the_paper_s_weights(signals):
    model = ConsensusGraph(alpha=0.5, beta=0.25, coupling=0.3).fit(signals)
    rows, cols = np.triu_indices(9, 1)
    apart = [np.linalg.norm((a - model.consensus_)[rows, cols]) for a in model.adjacencies_]
    np.testing.assert_allclose(model.contributions_, 1 / np.array(apart), rtol=1e-9)


def test_lists_dicts_frames_and_groups_are_the_same(signals, frames):
    model = ConsensusGraph(degree=3).fit(signals)
    labels = np.repeat(list(signals), [len(x) for x in signals.values()])
    together = np.vstack(list(signals.values()))
    for other in (
        ConsensusGraph(degree=3).fit(list(signals.values())),
        ConsensusGraph(degree=3).fit(frames),
        ConsensusGraph(degree=3).fit({name: pl.from_pandas(frame) for name, frame in frames.items()}),
        ConsensusGraph(degree=3).fit(together, groups=labels),
        ConsensusGraph(degree=3).fit(pd.DataFrame(together), groups=pd.Series(labels)),
    ):
        np.testing.assert_array_equal(other.consensus_, model.consensus_)
        np.testing.assert_array_equal(other.adjacencies_, model.adjacencies_)


@pytest.mark.parametrize("seed", range(8))
def test_a_graph_has_the_same_bits_wherever_its_data_lie_in_memory(seed):
    """With few nodes, vectors lie so near each other that compiled loops may take them for overlapping."""
    rng = np.random.default_rng(seed)
    signals = silo_signals(rng, "similar", 3, 6, 40)
    first = ConsensusGraph(degree=2).fit(signals).consensus_
    held = []  # memory that others take, so that the next fit gets other places
    for size in rng.integers(1, 60, size=6):
        held.append(np.ones(size))
        again = ConsensusGraph(degree=2).fit([x.copy() for x in signals]).consensus_
        np.testing.assert_array_equal(first, again)


def test_an_array_of_three_dimensions_is_a_list_of_silos(rng):
    signals = np.stack(silo_signals(rng, "similar", 3, 6, 40))
    np.testing.assert_array_equal(
        ConsensusGraph(degree=2).fit(signals).consensus_, ConsensusGraph(degree=2).fit(list(signals)).consensus_
    )


def test_silos_with_nodes_in_another_order_are_aligned_by_name(frames):
    model = ConsensusGraph(degree=3).fit(frames)
    mixed = dict(frames, lima=frames["lima"][[f"node {k}" for k in (3, 1, 4, 0, 5, 8, 2, 6, 7)]])
    other = ConsensusGraph(degree=3).fit(mixed)
    np.testing.assert_allclose(other.consensus_, model.consensus_, atol=1e-10)
    assert list(other.feature_names_in_) == [f"node {k}" for k in range(9)]


def test_missing_and_extra_nodes_are_listed(frames):
    wrong = dict(frames, lima=frames["lima"].rename(columns={"node 3": "node x", "node 5": "node y"}))
    with pytest.raises(SilosError, match=r"lima.*missing: 'node 3', 'node 5'; extra: 'node x', 'node y'"):
        ConsensusGraph().fit(wrong)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda s: s["oslo"], SilosError, "several silos"),
        (lambda s: [], SilosError, "at least one silo"),
        (lambda s: [s["oslo"][:, 0]], SilosError, "1 dimensions"),
        (lambda s: ["a.csv", "b.csv"], SignalError, "got the path"),
        (lambda s: [s["oslo"], s["lima"][:, :5]], SilosError, "expected the nodes of silo_1"),
        (lambda s: [s["oslo"], s["lima"][:1]], ValueError, "silo_2|minimum"),
        (lambda s: [s["oslo"], np.where(s["lima"] > 2, np.nan, s["lima"])], SignalError, "silo_2, row"),
        (lambda s: {1: s["oslo"], "1": s["lima"]}, SilosError, "same name"),
        (lambda s: {"": s["oslo"]}, SilosError, "empty"),
    ],
)
def test_what_makes_no_silos_is_refused_with_a_word(signals, make, error, words):
    with pytest.raises(error, match=words):
        ConsensusGraph().fit(make(signals))


def test_groups_need_a_label_for_each_sample(signals):
    with pytest.raises(SilosError, match="one label per sample"):
        ConsensusGraph().fit(signals["oslo"], groups=["a", "b"])
    with pytest.raises(SilosError, match="missing one"):
        ConsensusGraph().fit(signals["oslo"], groups=[None] * len(signals["oslo"]))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"degree": 9}, "less than the number of nodes"),
        ({"degree": 3, "alpha": 1, "beta": 1}, "contradict"),
        ({"coupling": 0.5, "nu": 1, "lam": 1}, "contradict"),
        ({"metric": "cosine"}, "metric"),
        ({"metric": "precomputed", "standardize": True}, "standardised"),
        ({"local_steps": [1, 2]}, "local_steps"),
        ({"local_steps": {"oslo": 1, "lima": 1, "rome": 1}}, "local_steps"),
        ({"local_steps": [1, 2, 0]}, "local_steps"),
        ({"method": "algorithm1", "coupling": 0.0}, "divides by rho"),
    ],
)
def test_parameters_out_of_range_are_refused(signals, parameters, words):
    with pytest.raises(ParameterError, match=words):
        ConsensusGraph(**parameters).fit(signals)


def test_one_silo_is_a_smooth_graph(signals):
    model, alone = ConsensusGraph(degree=3).fit([signals["oslo"]]), SmoothGraph(degree=3).fit(signals["oslo"])
    np.testing.assert_allclose(model.adjacencies_[0], alone.adjacency_, atol=1e-10)
    np.testing.assert_allclose(model.consensus_, alone.adjacency_, atol=1e-10)


def test_two_silos_and_a_hundred_work(rng):
    for n_silos in (2, 100):
        model = ConsensusGraph(degree=2).fit(silo_signals(rng, "groups", n_silos, 8, 20))
        assert model.converged_
        assert model.adjacencies_.shape == (n_silos, 8, 8)


def test_precomputed_distances_give_the_same_graphs(signals):
    distances = {name: squareform(pdist(x.T, "sqeuclidean")) / len(x) for name, x in signals.items()}
    whole = {"degree": 3, "coupling": 0.5, "whole": True}  # which edges are the strongest, numbers of rows decide, too
    model = ConsensusGraph(**whole, metric="precomputed").fit(distances)
    from_rows = ConsensusGraph(**whole).fit(signals)
    np.testing.assert_allclose(model.consensus_, from_rows.consensus_, atol=1e-8)
    assert model.n_samples_seen_ == [None] * 3


def test_standardising_undoes_units_in_each_silo(signals, rng):
    units = 10.0 ** rng.uniform(-3, 3, size=9)
    model = ConsensusGraph(degree=3, standardize=True).fit(signals)
    other = ConsensusGraph(degree=3, standardize=True).fit({name: x * units + 5 for name, x in signals.items()})
    np.testing.assert_allclose(other.consensus_, model.consensus_, atol=1e-6)


def test_forbidden_pairs_are_in_no_graph(signals):
    model = ConsensusGraph(degree=3, forbidden=[(0, 1), (4, 7)]).fit(signals)
    for adjacency in (*model.adjacencies_, model.consensus_):
        assert adjacency[0, 1] == adjacency[4, 7] == 0


def test_what_may_not_be_reported_stays_in_the_silos(signals):
    model = ConsensusGraph(degree=3, report=False).fit(signals)
    with pytest.raises(AttributeError, match="report=True"):
        _ = model.contributions_
    np.testing.assert_array_equal(model.consensus_, ConsensusGraph(degree=3).fit(signals).consensus_)


@pytest.mark.parametrize(
    "method", ["exact", "algorithm1", "independent", "pooled", "fedavg", "fedprox", "mrmtl", "ditto"]
)
def test_every_method_learns(signals, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ConsensusGraph(degree=3, method=method).fit(signals)
    assert model.adjacencies_.shape == (3, 9, 9)
    assert (model.adjacencies_ >= 0).all()
    assert (model.consensus_ >= 0).all()
    assert model.contributions_.shape == (3,)


def test_too_few_rounds_warn(signals):
    with pytest.warns(ConvergenceWarning, match="stopped after 4 rounds"):
        ConsensusGraph(degree=3, coupling=0.5, rounds=4, tol=1e-10).fit(signals)


@pytest.mark.filterwarnings("ignore::silograph.DoubtfulSilosWarning")
def test_a_degree_that_ties_forbid_warns():
    with pytest.warns(DegreeWarning, match="was not found"):
        ConsensusGraph(degree=3.5, method="independent").fit(
            [np.tile(np.arange(6.0)[:, None] % 2, (1, 8)) for _ in range(2)]
        )


def test_a_warm_start_ends_at_the_same_graphs_in_fewer_rounds(signals):
    model = ConsensusGraph(degree=3, coupling=0.6, warm_start=True, tol=1e-9).fit(signals)
    model.set_params(coupling=0.61).fit(signals)
    cold = ConsensusGraph(degree=3, coupling=0.61, tol=1e-9).fit(signals)
    assert model.n_rounds_ <= cold.n_rounds_
    np.testing.assert_allclose(model.consensus_, cold.consensus_, atol=1e-4)


def test_it_can_be_cloned_pickled_and_asked_only_when_fitted(signals):
    model = ConsensusGraph(degree=3, coupling=0.7)
    with pytest.raises(NotFittedError):
        _ = model.consensus_
    model.fit(signals)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.consensus_, model.consensus_)
    assert again.graphs_["lima"] == model.graphs_["lima"]


def test_the_caller_s_tables_are_not_altered(signals):
    before = {name: x.copy() for name, x in signals.items()}
    ConsensusGraph(degree=3, standardize=True).fit(signals)
    for name, x in signals.items():
        np.testing.assert_array_equal(x, before[name])


def test_numbers_of_numpy_are_numbers(signals):
    plain = ConsensusGraph(degree=3, coupling=0.5, method="algorithm1", local_steps=7, rounds=4)
    numpy = ConsensusGraph(
        degree=np.float64(3), coupling=np.float32(0.5), method="algorithm1", local_steps=np.int64(7), rounds=np.int32(4)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        np.testing.assert_array_equal(numpy.fit(signals).consensus_, plain.fit(signals).consensus_)


def test_one_number_of_local_steps_for_each_silo_is_that_number_for_all(signals):
    for options in ({"method": "independent", "solver": "gradient"}, {"method": "fedavg"}):
        alike = ConsensusGraph(degree=3, local_steps=4, **options).fit(signals)
        each = ConsensusGraph(degree=3, local_steps=[4, 4, 4], **options).fit(signals)
        np.testing.assert_array_equal(each.consensus_, alike.consensus_)


def test_all_cores_are_minus_one_and_nonsense_is_refused(signals):
    assert ConsensusGraph(degree=3, n_jobs=-1).fit(signals).converged_
    for n_jobs in (0, 1.5, "a", True):
        with pytest.raises(ParameterError, match="n_jobs"):
            ConsensusGraph(degree=3, n_jobs=n_jobs).fit(signals)


def test_labels_that_are_missing_or_look_alike_are_refused(signals):
    n = len(signals["oslo"])
    with pytest.raises(SilosError, match="missing one"):
        ConsensusGraph().fit(signals["oslo"], groups=[pd.NA] + ["a"] * (n - 1))
    with pytest.raises(SilosError, match="same when written as text"):
        ConsensusGraph().fit(signals["oslo"], groups=[1, "1"] * (n // 2) + [1] * (n % 2))


@pytest.mark.filterwarnings("ignore:.*ells are empty")
@pytest.mark.parametrize("method", ["exact", "oneshot"])
def test_silos_with_gaps_learn_by_rows_and_by_pairs(rng, method):
    common = rng.normal(size=(6, 6))
    silos = {name: rng.normal(size=(60, 6)) @ common for name in ("oslo", "lima")}
    gappy = silos | {"lima": np.where(rng.uniform(size=(60, 6)) < 0.05, np.nan, silos["lima"])}
    whole = silos | {"lima": gappy["lima"][~np.isnan(gappy["lima"]).any(axis=1)]}
    with pytest.raises(SignalError, match=r"lima, row \d+, column"):
        ConsensusGraph(degree=2, method=method).fit(gappy)
    dropped = 60 - len(whole["lima"])
    with pytest.warns(UserWarning, match=rf"left out \(lima: {dropped}\)"):
        rows = ConsensusGraph(degree=2, method=method, missing="rows").fit(gappy)
    assert rows.rows_dropped_ == [0, dropped]
    expected = ConsensusGraph(degree=2, method=method).fit(whole)
    assert rows.consensus_.tobytes() == expected.consensus_.tobytes()
    pairs = ConsensusGraph(degree=2, method=method, missing="pairs").fit(gappy)
    assert pairs.n_samples_seen_ == [60, 60]
    assert pairs.gap_ <= 1e-6
    same = ConsensusGraph(degree=2, method=method, missing="pairs").fit(silos)
    assert same.consensus_.tobytes() == ConsensusGraph(degree=2, method=method).fit(silos).consensus_.tobytes()


@pytest.mark.filterwarnings("ignore:.*ells are empty")
def test_gaps_and_missing_nodes_go_together(rng):
    frames = {name: pd.DataFrame(rng.normal(size=(50, 5)), columns=list("abcde")) for name in ("oslo", "lima")}
    frames["lima"] = frames["lima"].assign(e=np.nan, d=1.0)
    frames["lima"].iloc[2, 0] = np.nan
    with pytest.warns(NodesWarning, match="in one silo alone"):
        model = ConsensusGraph(degree=2, missing_nodes="allow", missing="pairs").fit(frames)
    assert model.graphs_["lima"].names == ("a", "b", "c")
    with pytest.raises(SignalError, match="lima, row 3, column 'a'"):
        ConsensusGraph(degree=2, missing_nodes="allow").fit(frames)


def test_empty_cells_are_told_of():
    tables = [np.random.default_rng(k).normal(size=(40, 6)) for k in range(3)]
    tables[1][3, 2] = np.nan
    with pytest.warns(UserWarning, match=r"Cells are empty \(silo_2: 1\)"):
        ConsensusGraph(degree=2, missing="pairs").fit(tables)
