"""The statistics of a comparison: against other implementations, and as mathematics."""

import itertools

import numpy as np
import pytest
from scipy import stats

from silograph.analysis.comparing.columns import compare_columns, false_discovery
from silograph.analysis.comparing.design import bases_of, make_design
from silograph.analysis.comparing.measures import PairWeights, likeness, measures_of
from silograph.analysis.comparing.relabelling import Relabellings, restricted
from silograph.analysis.comparing.statistic import Separation
from silograph.analysis.comparing.study import compare_graphs
from silograph.errors import SilosError
from silograph.graph.graph import Graph


def design_of(n_first, n_second, **more):
    groups = ["a"] * n_first + ["b"] * n_second
    return make_design([f"s{k}" for k in range(len(groups))], groups, "a", **more)


def relabellings(design, asked=999, seed=0, labels_only=None):
    by_labels = design.covariates.shape[1] == 0 if labels_only is None else labels_only
    return Relabellings(design=design, labels_only=by_labels, asked=asked, seed=seed)


def words(values):
    return [repr(float(value)) for value in values]


# --- one column, against others ---------------------------------------------------------------------------------------


def test_the_statistic_and_the_difference_are_those_of_welch(rng):
    y = rng.normal(size=(25, 4)) * np.repeat([1.0, 3.0], [10, 15])[:, None]
    found = compare_columns(y, relabellings(design_of(10, 15)))
    theirs = stats.ttest_ind(y[:10], y[10:], equal_var=False)
    assert found.statistic == pytest.approx(theirs.statistic)
    assert found.difference == pytest.approx(y[:10].mean(axis=0) - y[10:].mean(axis=0))


def test_few_relabellings_are_all_looked_at_and_give_the_exact_p_of_scipy(rng):
    y = rng.normal(size=(9, 3)) + np.repeat([1.0, 0.0], [4, 5])[:, None]

    def welch(one, other, axis):
        return np.abs(stats.ttest_ind(one, other, axis=axis, equal_var=False).statistic)

    design = relabellings(design_of(4, 5))
    assert design.exhaustive
    assert design.count == design.possible == 126
    theirs = stats.permutation_test((y[:4], y[4:]), welch, alternative="greater", n_resamples=np.inf, vectorized=True)
    assert compare_columns(y, design).p == pytest.approx(theirs.pvalue)


def test_numbers_that_are_often_equal_are_counted_right(rng):
    y = rng.integers(30, 33, size=(9, 5)).astype(float)

    def size(column, chosen):
        one, other = column[np.isin(np.arange(9), chosen)], column[~np.isin(np.arange(9), chosen)]
        apart, error = abs(one.mean() - other.mean()), np.sqrt(one.var(ddof=1) / 4 + other.var(ddof=1) / 5)
        return apart / error if error > 0 else (np.inf if apart > 1e-9 else 0.0)

    labellings = list(itertools.combinations(range(9), 4))
    sizes = np.array([[size(column, chosen) for column in y.T] for chosen in labellings])
    expected = (sizes >= sizes[labellings.index((0, 1, 2, 3))] * (1 - 1e-9)).mean(axis=0)
    assert compare_columns(y / 3, relabellings(design_of(4, 5))).p == pytest.approx(expected)


def test_random_relabellings_come_near_the_exact_p(rng):
    y = rng.normal(size=(14, 5)) + np.repeat([0.8, 0.0], [7, 7])[:, None]
    exact = compare_columns(y, relabellings(design_of(7, 7), asked=10_000))
    random = compare_columns(y, relabellings(design_of(7, 7), asked=3000))
    assert random.p == pytest.approx(exact.p, abs=4 * 0.5 / np.sqrt(3000))


def test_with_covariates_the_statistic_is_the_t_of_least_squares(rng):
    n, n_first = 30, 12
    age, sex = rng.normal(size=n), rng.integers(0, 2, n)
    y = rng.normal(size=n) + 0.5 * age
    design = design_of(
        n_first,
        n - n_first,
        covariates={"age": words(age), "sex": ["fm"[one] for one in sex]},
        sites=["x", "y", "z"] * 10,
    )
    found = compare_columns(y[:, None], relabellings(design, asked=99))
    site = np.arange(n) % 3
    X = np.column_stack([np.arange(n) < n_first, site == 0, site == 1, site == 2, age, sex]).astype(float)
    beta, (rss,), *_ = np.linalg.lstsq(X, y, rcond=None)
    error = np.sqrt(rss / (n - 6) * np.linalg.inv(X.T @ X)[0, 0])
    assert found.difference[0] == pytest.approx(beta[0])
    assert found.statistic[0] == pytest.approx(beta[0] / error)


def test_every_relabelled_statistic_is_that_of_freedman_and_lane(rng):
    n = 12
    age = rng.normal(size=n)
    y = rng.normal(size=n)
    design = design_of(5, 7, covariates={"age": words(age)})
    test = relabellings(design, asked=50)
    (orders,) = test.batches(50)
    Z = np.column_stack([np.ones(n), age])
    rest = y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]
    X = np.column_stack([design.is_first.astype(float), Z])

    def t(values):
        beta, (rss,), *_ = np.linalg.lstsq(X, values, rcond=None)
        return beta[0] / np.sqrt(rss / (n - 3) * np.linalg.inv(X.T @ X)[0, 0])

    # A silo's place in the design is taken by another: the residuals move the other way
    by_hand = []
    for order in orders:
        moved = np.empty(n)
        moved[order] = rest
        by_hand.append(abs(t(moved + Z @ np.array([3.0, 2.0]))))
    seen = abs(t(y))
    p = (1 + sum(one >= seen * (1 - 1e-9) for one in by_hand)) / 51
    assert compare_columns(y[:, None], test).p[0] == pytest.approx(p)


def test_hedges_g_and_its_interval_follow_the_formulas(rng):
    y = rng.normal(size=30) + np.repeat([1.0, 0.0], [14, 16])
    found = compare_columns(y[:, None], relabellings(design_of(14, 16), asked=19))
    one, other = y[:14], y[14:]
    pooled = np.sqrt((13 * one.var(ddof=1) + 15 * other.var(ddof=1)) / 28)
    d, j = (one.mean() - other.mean()) / pooled, 1 - 3 / (4 * 28 - 1)
    half = 1.959964 * np.sqrt(1 / 14 + 1 / 16 + d**2 / 56)
    assert (found.effect[0], found.low[0], found.high[0]) == pytest.approx((j * d, j * (d - half), j * (d + half)))


@pytest.mark.parametrize("covariates", [{}, {"age": words(np.arange(8) ** 2 % 7)}], ids=["plain", "covariate"])
def test_groups_without_spread_have_no_effect_of_a_hundred_million(covariates):
    y = np.repeat([[0.1], [0.7]], 4, axis=0) * np.array([[1.0, 3.0]])
    found = compare_columns(y, relabellings(design_of(4, 4, covariates=covariates)))
    assert np.isinf(found.statistic).all()
    assert np.isnan([found.effect, found.low, found.high]).all()
    assert found.difference == pytest.approx([-0.6, -1.8])


def test_one_degree_of_freedom_tells_no_effect_rather_than_zero(rng):
    covariates = {"age": words([0, 1, 1, 0, 1]), "motion": words([0, 1, 3, 2, 4])}
    found = compare_columns(rng.normal(size=(5, 3)), relabellings(design_of(2, 3, covariates=covariates)))
    assert np.isfinite(found.difference).all()
    assert np.isnan([found.effect, found.low, found.high]).all()


def test_q_is_that_of_scipy(rng):
    p = rng.random(40) ** 2
    assert false_discovery(p) == pytest.approx(stats.false_discovery_control(p))


# --- many columns -----------------------------------------------------------------------------------------------------


def test_the_family_wise_p_compares_with_the_largest_statistic(rng):
    y = rng.normal(size=(9, 6)) + np.repeat([1.0, 0.0], [4, 5])[:, None]
    found = compare_columns(y, relabellings(design_of(4, 5)))
    largest = []
    for chosen in itertools.combinations(range(9), 4):
        first = np.isin(np.arange(9), chosen)
        largest.append(np.abs(stats.ttest_ind(y[first], y[~first], equal_var=False).statistic).max())
    expected = (np.array(largest)[:, None] >= np.abs(found.statistic) * (1 - 1e-9)).mean(axis=0)
    assert found.p_family == pytest.approx(expected)
    assert (found.p_family >= found.p).all()


def test_beside_sites_and_a_covariate_it_does_so_for_what_these_leave_of_every_column(rng):
    n, n_first, site, age = 18, 8, np.arange(18) % 2, rng.normal(size=18)
    y = rng.normal(size=(n, 4)) + np.repeat([1.0, 0.0], [8, 10])[:, None] * [1.2, 0, 0, 0] + age[:, None]
    design = design_of(n_first, n - n_first, covariates={"age": words(age)}, sites=[str(one) for one in site])
    test = relabellings(design, asked=60)
    (orders,) = test.batches(60)
    Z = np.column_stack([site == 0, site == 1, age]).astype(float)
    X = np.column_stack([design.is_first, Z]).astype(float)
    fitted = Z @ np.linalg.lstsq(Z, y, rcond=None)[0]

    def largest(values):
        beta = np.linalg.lstsq(X, values, rcond=None)[0]
        spread = ((values - X @ beta) ** 2).sum(axis=0) / (n - X.shape[1])
        return np.abs(beta[0]) / np.sqrt(spread * np.linalg.inv(X.T @ X)[0, 0])

    rest, seen, as_large = y - fitted, largest(y), np.ones(4)
    for order in orders:
        moved = np.empty_like(y)
        moved[order] = rest
        as_large += largest(moved + fitted).max() >= seen * (1 - 1e-9)
    assert compare_columns(y, test).p_family == pytest.approx(as_large / 61)


def test_exchanging_the_groups_turns_signs_and_leaves_every_p(rng):
    y = rng.normal(size=(9, 5))
    groups = ["a"] * 4 + ["b"] * 5
    one, other = (
        compare_columns(y, relabellings(make_design(list("123456789"), groups, first))) for first in ("a", "b")
    )
    assert one.difference == pytest.approx(-other.difference)
    assert (one.low, one.high) == (pytest.approx(-other.high), pytest.approx(-other.low))
    for name in ("p", "p_family", "q"):
        assert getattr(one, name) == pytest.approx(getattr(other, name))


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(rng):
    y, design = rng.normal(size=(40, 7)), design_of(20, 20)
    one, same, other = (compare_columns(y, relabellings(design, seed=seed)) for seed in (3, 3, 4))
    assert np.array_equal(one.p, same.p)
    assert np.array_equal(one.p_family, same.p_family)
    assert not np.array_equal(one.p, other.p)


def test_units_and_batches_change_no_p(rng, monkeypatch):
    y, test = rng.normal(size=(30, 6)), relabellings(design_of(10, 20))
    one = compare_columns(y, test)
    monkeypatch.setattr("silograph.analysis.comparing.columns.BATCH", 60)
    assert compare_columns(1e-6 * y + 3e-5, test).p_family == pytest.approx(one.p_family)


def test_columns_without_variation_are_not_tested_and_perfect_ones_are_surest():
    y = np.column_stack([np.full(10, 0.3), np.repeat([1.0, 0.0], 5), np.arange(10) % 2])
    found = compare_columns(y, relabellings(design_of(5, 5)))
    assert np.isnan(found.p[0])
    assert found.n_tested == 2
    assert found.statistic[1] == np.inf
    assert found.p[1] == pytest.approx(2 / 252)
    assert np.isnan(found.effect[1])
    assert np.isfinite(found.effect[2])


# --- sites and missing values -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [80, 20_000])
def test_relabellings_within_sites_never_mix_sites(asked):
    site = ["x", "y", "x", "y", "y", "x", "y", "x", "x", "y"]
    design = design_of(5, 5, sites=site)
    test = relabellings(design, asked=asked, labels_only=True)
    orders = np.concatenate(list(test.batches(64)))
    assert test.exhaustive == (asked == 20_000)
    assert (design.site[orders] == design.site).all()
    assert (np.sort(orders, axis=1) == np.arange(10)).all()
    if test.exhaustive:  # each labelling once
        assert len({tuple(row) for row in design.is_first[orders]}) == len(orders) == test.possible == 10 * 10


def test_an_effect_of_the_site_alone_is_no_difference_of_groups(rng):
    site = np.repeat([0, 1], 20)
    groups = ["a"] * 16 + ["b"] * 4 + ["a"] * 4 + ["b"] * 16
    y = 5.0 * site[:, None] + rng.normal(size=(40, 3))
    names = [f"s{k}" for k in range(40)]
    naive = compare_columns(y, relabellings(make_design(names, groups, "a")))
    within = compare_columns(y, relabellings(make_design(names, groups, "a", sites=[str(one) for one in site])))
    assert naive.p.max() < 0.05 < within.p_family.min()


def test_of_some_silos_a_relabelling_keeps_the_order_and_the_site(rng):
    design = design_of(6, 6, sites=["x", "y", "y"] * 4)
    kept = rng.random(12) < 0.7
    (orders,) = relabellings(design, asked=100).batches(100)
    some = restricted(orders, design.site, kept)
    assert (np.sort(some, axis=1) == np.arange(kept.sum())).all()
    assert (design.site[kept][some] == design.site[kept]).all()


def test_a_pair_that_some_silos_lack_is_compared_in_the_others(rng):
    y = rng.normal(size=(30, 3))
    y[[2, 17], 1] = np.nan
    y[:8, 2] = np.nan  # half of a group: too few are left
    design = design_of(14, 16)
    found = compare_columns(y, relabellings(design, asked=199, labels_only=False))
    kept = np.isfinite(y[:, 1])
    theirs = stats.ttest_ind(y[:14, 1][kept[:14]], y[14:, 1][kept[14:]], equal_var=False)
    assert found.statistic[1] == pytest.approx(theirs.statistic)
    assert np.isfinite(found.p[1])
    assert np.isnan(found.p[2])
    assert np.isfinite(found.mean_first[2])


# --- many studies without a difference --------------------------------------------------------------------------------


def null_study(rng, confounded, n=24, n_pairs=12):
    """Weights that depend on age, and groups that do as well, but on each other no further; skewed as weights are."""
    age, site = rng.normal(size=n), np.arange(n) % 3
    lean = rng.normal(size=n) + (1.2 * age + 0.8 * (site == 0) if confounded else 0)
    groups = np.where(lean > np.median(lean), "a", "b").tolist()
    y = rng.exponential(size=(n, n_pairs)) @ (np.eye(n_pairs) + 0.3)
    if confounded:
        y += 0.8 * age[:, None] + 1.5 * (site == 1)[:, None]
    return groups, age, site, y


def smallest_p(rng, confounded, adjusted):
    groups, age, site, y = null_study(rng, confounded)
    more = {"covariates": {"age": words(age)}, "sites": [str(one) for one in site]} if adjusted else {}
    design = make_design([f"s{k}" for k in range(len(groups))], groups, "a", **more)
    return np.nanmin(compare_columns(y, relabellings(design, asked=99, seed=int(rng.integers(2**31)))).p_family)


@pytest.mark.parametrize(("confounded", "adjusted"), [(False, False), (False, True), (True, True)])
def test_where_nothing_differs_the_smallest_adjusted_p_is_not_too_small(rng, confounded, adjusted):
    ps = [smallest_p(rng, confounded, adjusted) for _ in range(150)]
    assert stats.kstest(ps, "uniform", alternative="greater").pvalue > 0.01


def test_unadjusted_a_confounder_makes_it_too_small(rng):
    ps = [smallest_p(rng, confounded=True, adjusted=False) for _ in range(100)]
    assert stats.kstest(ps, "uniform", alternative="greater").pvalue < 1e-6


# --- whole graphs -----------------------------------------------------------------------------------------------------


def random_graphs(rng, n_silos, n_nodes=8):
    names = [f"n{k}" for k in range(n_nodes)]
    out = {}
    for number in range(n_silos):
        half = np.triu(rng.random((n_nodes, n_nodes)) * (rng.random((n_nodes, n_nodes)) < 0.5), 1)
        out[f"s{number}"] = Graph.from_adjacency(half + half.T, names)
    return out


def test_without_covariates_the_separation_is_the_pseudo_f_of_distances(rng):
    d = rng.random((9, 9))
    alike = 1 - (d + d.T) / 2
    np.fill_diagonal(alike, 1)
    design = design_of(4, 5)
    bases = bases_of(design)
    seen = float(Separation.of(bases, alike)(np.arange(9)[None])[0, 0])
    far, first = 1 - alike, design.is_first
    total = far.sum() / 2 / 9
    within = far[np.ix_(first, first)].sum() / 2 / 4 + far[np.ix_(~first, ~first)].sum() / 2 / 5
    assert seen == pytest.approx((total - within) / (within / 7))


def test_beside_sites_and_covariates_it_is_that_of_the_projections(rng):
    d = rng.random((12, 12))
    alike = 1 - (d + d.T) / 2
    np.fill_diagonal(alike, 1)
    age, site = rng.normal(size=12), np.arange(12) % 3
    design = design_of(5, 7, covariates={"age": words(age)}, sites=[str(one) for one in site])
    seen = float(Separation.of(bases_of(design), alike)(np.arange(12)[None])[0, 0])
    reduced = np.column_stack([site == 0, site == 1, site == 2, age]).astype(float)
    hats = [A @ np.linalg.pinv(A) for A in (reduced, np.column_stack([reduced, design.is_first]))]
    centring = np.eye(12) - 1 / 12
    products = centring @ (-(1 - alike) / 2) @ centring
    told, rest = np.trace((hats[1] - hats[0]) @ products), np.trace((np.eye(12) - hats[1]) @ products)
    assert seen == pytest.approx(told / (rest / (12 - 5)))


def test_the_table_of_weights_knows_a_missing_node_from_a_missing_edge(rng):
    graphs = random_graphs(rng, 4)
    consensus = graphs["s0"]
    kept = [name for name in consensus.names if name != "n3"]
    adjacency = np.delete(np.delete(graphs["s2"].adjacency(), 3, axis=0), 3, axis=1)
    graphs["s2"] = Graph.from_adjacency(adjacency, kept)
    table = PairWeights.of(graphs, consensus)
    at = (table.rows == 3) | (table.cols == 3)
    assert np.isnan(table.values[2, at]).all()
    assert np.isfinite(np.delete(table.values, 2, axis=0)).all()
    assert table.graph(table.values[1]) == graphs["s1"]


def test_measures_are_those_of_each_graph(rng):
    graphs = random_graphs(rng, 6)
    consensus = graphs["s0"]
    found, alike = measures_of(PairWeights.of(graphs, consensus))
    assert found[:, 0] == pytest.approx([graph.n_edges for graph in graphs.values()])
    assert found[:, 1] == pytest.approx([graph.weights.sum() for graph in graphs.values()])
    off = [(alike[k].sum() - 1) / 5 for k in range(6)]
    assert found[:, 3] == pytest.approx(off)
    apart = [np.linalg.norm(graph.adjacency() - consensus.adjacency()) / np.sqrt(2) for graph in graphs.values()]
    assert found[:, 4] == pytest.approx(apart)


def test_the_modularity_of_one_community_is_no_rounding_that_could_differ(rng):
    halves = [np.triu(1 + 0.1 * rng.random((5, 5)), 1) for _ in range(8)]
    graphs = {f"s{k}": Graph.from_adjacency(half + half.T, list("abcde")) for k, half in enumerate(halves)}
    told = compare_graphs(graphs, graphs["s0"], design_of(4, 4), ("a", "b"), permutations=99, seed=0)
    assert told.graphs.mean_first[2] == told.graphs.mean_second[2] == 0
    assert np.isnan(told.graphs.p[2])


def test_silos_that_resemble_their_group_are_told(rng):
    one, other = random_graphs(rng, 2).values()
    graphs = {}
    for k in range(10):
        base = one if k < 5 else other
        graphs[f"s{k}"] = Graph(base.names, base.rows, base.cols, base.weights * rng.uniform(0.8, 1.2, base.n_edges))
    told = compare_graphs(graphs, one, design_of(5, 5), ("a", "b"), permutations=999, seed=0)
    assert told.likeness.p == pytest.approx(2 / 252)
    assert min(told.likeness.within_first, told.likeness.within_second) > told.likeness.between
    assert told.likeness.explained > 0.5


def test_relabelled_silos_are_told_apart_by_chance_only(rng):
    graphs = random_graphs(rng, 12)
    design = design_of(6, 6)
    alike = measures_of(PairWeights.of(graphs, graphs["s0"]))[1]
    ps = []
    for _ in range(60):
        order = rng.permutation(12)
        ps.append(likeness(alike[np.ix_(order, order)], relabellings(design)).p)
    assert stats.kstest(ps, "uniform", alternative="greater").pvalue > 0.01


# --- what is said -----------------------------------------------------------------------------------------------------


def test_the_answer_is_a_sentence_also_where_nothing_differs(rng):
    told = compare_graphs(random_graphs(rng, 20), random_graphs(rng, 1)["s0"], design_of(10, 10), ("a", "b"),
                          permutations=199, seed=0)  # fmt: skip
    assert told.differing == []
    assert told.says.startswith(f"Of {told.edges.n_tested} pairs none differs between a (n = 10) and b (n = 10) after")
    assert "smallest adjusted p" in told.says


def test_groups_too_small_for_any_small_p_are_told_so(rng):
    told = compare_graphs(random_graphs(rng, 5), random_graphs(rng, 1)["s0"], design_of(2, 3), ("a", "b"),
                          permutations=199, seed=0)  # fmt: skip
    assert told.relabellings.smallest_p == pytest.approx(0.1)
    assert "No difference could have been shown: only 10 relabellings are possible" in told.says


def test_the_graph_of_differences_keeps_sizes_as_weights_and_signs_beside(rng):
    graphs = random_graphs(rng, 8)
    told = compare_graphs(graphs, graphs["s0"], design_of(4, 4), ("a", "b"), permutations=199, seed=0)
    graph, columns = told.difference_graph()
    one, other = (mean.adjacency() for mean in told.mean_graphs)
    assert graph.weights == pytest.approx(np.abs(columns["difference"]))
    assert (one - other)[graph.rows, graph.cols] == pytest.approx(columns["difference"])


def test_empty_graphs_are_compared_and_found_to_have_nothing_to_differ_in():
    nothing = Graph.from_adjacency(np.zeros((4, 4)), list("abcd"))
    told = compare_graphs({f"s{k}": nothing for k in range(8)}, nothing, design_of(4, 4), ("a", "b"),
                          permutations=199, seed=0)  # fmt: skip
    assert told.says.startswith("No pair of nodes can be compared between a (n = 4) and b (n = 4)")
    assert told.likeness.p == 1.0
    assert "Whole graphs cannot be compared: all silos have the same." in told.says


@pytest.mark.parametrize("permutations", [19, 199])
def test_silos_with_the_same_graph_are_not_told_apart_by_rounding(rng, permutations):
    same = random_graphs(rng, 1)["s0"]
    told = compare_graphs({f"s{k}": same for k in range(9)}, same, design_of(4, 5), ("a", "b"),
                          permutations=permutations, seed=0)  # fmt: skip
    assert (told.likeness.p, told.likeness.explained) == (1.0, 0.0)
    assert "Whole graphs cannot be compared: all silos have the same." in told.says


def test_graphs_without_a_pair_that_all_silos_have_are_not_called_alike(rng):
    graphs = random_graphs(rng, 8)
    names = graphs["s0"].names
    for node, (silo, graph) in enumerate(list(graphs.items())):
        kept = np.arange(8) != node
        graphs[silo] = Graph.from_adjacency(
            graph.adjacency()[np.ix_(kept, kept)], [n for n in names if n != names[node]]
        )
    told = compare_graphs(graphs, random_graphs(rng, 1)["s0"], design_of(4, 4), ("a", "b"), permutations=99, seed=0)
    assert "Whole graphs cannot be compared: no pair of nodes is in all silos." in told.says
    assert "No number of whole graphs differs" not in told.says


def test_groups_with_fewer_rows_are_told_so(rng):
    graphs, rows = random_graphs(rng, 12), np.repeat([60.0, 200.0], 6) + np.arange(12)
    some = {"permutations": 199, "seed": 0}
    told = compare_graphs(graphs, graphs["s0"], design_of(6, 6), ("a", "b"), rows=rows, **some)
    assert "Silos of a have 62 rows on average, those of b 208" in told.says
    for even in (np.full(12, 80.0), rows[rng.permutation(12)], None):
        assert (
            "rows on average"
            not in compare_graphs(graphs, graphs["s0"], design_of(6, 6), ("a", "b"), rows=even, **some).says
        )


# --- what cannot be compared ------------------------------------------------------------------------------------------


def test_a_design_that_cannot_tell_the_groups_from_the_rest_is_refused():
    with pytest.raises(SilosError, match="2 silos or more, got 1"):
        design_of(1, 5)
    with pytest.raises(SilosError, match="'age': is the same for all"):
        design_of(4, 4, covariates={"age": ["30"] * 8})
    years = [30, 41, 33, 50, 27, 36, 61, 44]
    with pytest.raises(SilosError, match="'months': follows from"):
        design_of(4, 4, covariates={"age": words(years), "months": words(12 * one for one in years)})
    with pytest.raises(SilosError, match=r"'age': expected a value for each silo, but 1 have none \('s2'\)"):
        design_of(4, 4, covariates={"age": ["1", "2", "n/a", "4", "5", "9", "7", "8"]})
    with pytest.raises(SilosError, match=r"'age', silo 's1': expected a number as in other rows, got 'old'"):
        design_of(4, 4, covariates={"age": ["1", "old", "3", "4", "5", "9", "7", "8"]})
    with pytest.raises(SilosError, match=r"'age', silo 's0': expected a number as in other rows, got '1,5'"):
        design_of(4, 4, covariates={"age": [f"{one},5" for one in range(1, 9)]})
    with pytest.raises(SilosError, match=r"'iq': expected a value for each silo, but 1 have none \('s7'\)"):
        design_of(4, 4, covariates={"iq": ["99", "101", "98", "110", "105", "90", "120", "-9999"]})
    with pytest.raises(SilosError, match="do not tell already"):
        design_of(4, 4, sites=["x"] * 4 + ["y"] * 4)
    with pytest.raises(SilosError, match="almost as many classes"):
        design_of(4, 4, covariates={"who": list("abcdefgh")})
