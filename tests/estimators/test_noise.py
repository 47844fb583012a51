"""ConsensusGraph with epsilon: what it says, what it refuses, and that files and arrays are read alike."""

import warnings

import numpy as np
import pytest

from silograph import ConsensusGraph, ParameterError, learn_files, metrics
from silograph.datasets.synthetic import make_silos
from silograph.privacy.accounting import multiplier_for, rho_of

# A silo may stand apart by its noise, once in some hundred draws
pytestmark = pytest.mark.filterwarnings("ignore::silograph.errors.DoubtfulSilosWarning")
NOISE = {"method": "oneshot", "epsilon": 1, "delta": 1e-5}


@pytest.fixture(scope="module")
def drawn():
    return make_silos(n_samples=300, n_silos=4, n_nodes=8, seed=1)


def test_the_guarantee_is_said_in_numbers_and_in_words(drawn):
    model = ConsensusGraph(degree=3, **NOISE).fit(drawn.signals)
    told = model.privacy_
    assert (told.epsilon, told.delta, told.unit, told.masked, told.collusion) == (1, 1e-5, "row", True, 1)
    assert told.min_samples == 300
    assert told.multiplier == multiplier_for(1, 1e-5)
    assert told.rho == rho_of(told.multiplier)
    assert "own graphs are made of exact data; publishing them is outside the guarantee" in told.says
    assert ConsensusGraph(degree=3).fit(drawn.signals).privacy_ is None


def test_graphs_are_inside_the_guarantee_where_silos_own_costs_carry_noise(drawn):
    told = ConsensusGraph(degree=3, epsilon=1, delta=1e-5).fit(drawn.signals).privacy_
    assert told.graphs_inside
    assert not told.masked
    assert "outside" not in told.says


def test_the_graph_of_all_together_is_inside_too(drawn):
    model = ConsensusGraph(degree=3, **NOISE | {"method": "pooled"}).fit(drawn.signals)
    assert model.privacy_.graphs_inside
    assert model.privacy_.masked
    assert all(graph == model.consensus_graph_ for graph in model.graphs_.values())


def test_each_fit_has_noise_of_its_own(drawn):
    fits = [ConsensusGraph(degree=3, **NOISE).fit(drawn.signals).consensus_ for _ in range(2)]
    assert (fits[0] != fits[1]).any()


def test_without_masks_each_silo_adds_all_of_the_noise(drawn):
    told = ConsensusGraph(degree=3, **NOISE, masked=False).fit(drawn.signals).privacy_
    assert (told.masked, told.collusion) == (False, None)


def test_little_noise_leaves_the_graphs_of_unit_rows(drawn):
    little = ConsensusGraph(degree=3, **NOISE | {"epsilon": 1000}).fit(drawn.signals)
    for name, graph in little.graphs_.items():
        assert metrics.average_precision(drawn.graphs[name], graph) > 0.8
    plain = ConsensusGraph(degree=3, method="oneshot").fit(drawn.signals)
    assert np.corrcoef(plain.consensus_.ravel(), little.consensus_.ravel())[0, 1] > 0.9


def test_neither_a_common_mode_nor_the_size_of_a_row_matters(drawn):
    rng = np.random.default_rng(0)
    moved = {
        name: (X + rng.normal(size=(len(X), 1))) * rng.uniform(1, 9, (len(X), 1)) for name, X in drawn.signals.items()
    }
    graphs = [ConsensusGraph(degree=3, pull=0, **NOISE | {"epsilon": 1e4}).fit(some) for some in (drawn.signals, moved)]
    for name in drawn.graphs:
        one, other = (fit.graphs_[name].adjacency() for fit in graphs)
        assert np.linalg.norm(one - other) < 0.05 * np.linalg.norm(one)


@pytest.mark.filterwarnings("ignore::silograph.errors.DoubtfulSilosWarning")
def test_constant_nodes_and_tables_of_one_value_are_learned_from():
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(50, 5)) for _ in range(3)]
    tables[0][:, 2] = 4.0
    tables[1][:] = 7.0
    model = ConsensusGraph(degree=2, standardize=True, centres=[0.0] * 5, scales=[1.0] * 5, **NOISE).fit(tables)
    assert np.isfinite(model.consensus_).all()


def test_public_centres_and_scales_bring_units_together(drawn):
    units = np.array([1, 1000, 1, 1, 0.001, 1, 1, 1])
    scaled = {name: X * units + 5 for name, X in drawn.signals.items()}
    public = {"standardize": True, "centres": np.full(8, 5.0), "scales": list(units)}
    settings = {**NOISE, "epsilon": 1e4, "degree": 3}
    fits = [ConsensusGraph(**settings).fit(drawn.signals), ConsensusGraph(**settings, **public).fit(scaled)]
    assert np.linalg.norm(fits[0].consensus_ - fits[1].consensus_) < 0.02 * np.linalg.norm(fits[0].consensus_)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"standardize": True}, "standardize: a table's own means"),
        ({"centres": [0.0] * 8, "scales": [1.0] * 8}, "are what standardize means"),
        ({"centres": [0.0] * 8, "standardize": True}, "expected both or none"),
        ({"centres": [0.0] * 7, "scales": [1.0] * 7, "standardize": True}, "each of the 8 nodes, got 7"),
        ({"centres": 3, "scales": 4, "standardize": True}, "one number per node"),
        ({"missing": "pairs"}, "missing: gaps by pairs"),
        ({"metric": "precomputed"}, "precomputed distances have no rows"),
        ({"sums": 2}, "difference of two sums"),
        ({"missing_nodes": "allow"}, "missing_nodes"),
        ({"method": "exact", "masked": True}, "opens many sums"),
        ({"masked": False, "collusion": 2}, "collusion: without masks"),
        ({"collusion": 4}, "collusion: expected fewer"),
        ({"delta": None}, "needs delta"),
        ({"epsilon": None}, "needs epsilon"),
        ({"epsilon": None, "delta": None, "rows": 3.0}, "rows: is for noise alone"),
        ({"epsilon": None, "delta": None, "masked": True}, "masked: is for noise alone"),
        ({"rows": "short"}, "rows: expected 'unit'"),
        ({"unit": "person"}, "unit: expected 'row' or 'table'"),
    ],
)
def test_combinations_without_a_guarantee_are_refused_by_name(drawn, given, said):
    with pytest.raises(ParameterError, match=said):
        ConsensusGraph(degree=3, **{**NOISE, **given}).fit(drawn.signals)


def test_two_silos_are_too_few_for_shares(drawn):
    two = {name: drawn.signals[name] for name in ("C1", "C2")}
    with pytest.raises(ParameterError, match="masked: shares of noise need 3 silos at least, got 2"):
        ConsensusGraph(degree=3, **NOISE).fit(two)
    ConsensusGraph(degree=3, masked=False, **NOISE).fit(two)


def test_rows_with_gaps_may_be_left_out(drawn):
    gappy = {name: X.copy() for name, X in drawn.signals.items()}
    gappy["C1"][3, 2] = np.nan
    with pytest.warns(UserWarning, match="C1: 1"):
        model = ConsensusGraph(degree=3, missing="rows", **NOISE).fit(gappy)
    assert model.privacy_.min_samples == 299


def test_files_and_arrays_are_bounded_alike(drawn, tmp_path):
    for name, values in drawn.signals.items():
        np.save(tmp_path / f"{name}.npy", values)
    given = {"degree": 3, "pull": 0.0, **NOISE, "epsilon": 1e4}
    run = learn_files(sorted(tmp_path.glob("*.npy")), **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConsensusGraph(**given).fit(drawn.signals)
    for name in drawn.graphs:
        one, other = run.graphs[name].adjacency(), model.graphs_[name].adjacency()
        assert np.linalg.norm(one - other) < 1e-2 * np.linalg.norm(one)  # α and β come from sums with noise
