"""Tables that are doubtful are noticed by name, with numbers and a cure; others are not."""

import numpy as np
import pytest

from silograph.analysis.tables import TableFacts, doubts_about_tables


def facts(scales, **more):
    return [TableFacts(name=name, n_nodes=30, n_samples=200, scale=scale, **more) for name, scale in scales.items()]


def only(tables, *, standardize=False):
    (doubt,) = doubts_about_tables(tables, standardize=standardize)
    return doubt


def silos(**counts):
    return [TableFacts(name=name, n_nodes=30, n_samples=count) for name, count in counts.items()]


@pytest.mark.parametrize("scale", [1e6, 1e-6, 0.0, 31.0])
@pytest.mark.parametrize("n_others", [2, 3, 4, 7])
def test_a_silo_in_other_units_is_named_and_no_other(scale, n_others):
    doubt = only(facts({f"s{k}": 0.9 + 0.02 * k for k in range(n_others)} | {"lima": scale}))
    assert (doubt.kind, doubt.silos) == ("scale", ("lima",))
    assert f"'lima' ({scale:.3g})" in doubt.text
    assert "same units" in doubt.text


def test_of_two_silos_neither_is_the_usual_one():
    doubt = only(facts({"oslo": 2.0, "lima": 2e6}))
    assert set(doubt.silos) == {"oslo", "lima"}
    assert "'oslo' (2), 'lima' (2e+06)" in doubt.text


def test_as_many_silos_in_one_unit_as_in_another_are_all_named():
    doubt = only(facts({"a": 1.0, "b": 1.1, "c": 1e6, "d": 1.1e6}))
    assert doubt.silos == ("a", "b", "c", "d")
    assert "far apart: 'a' (1), 'd' (1.1e+06)" in doubt.text


def test_amplitudes_within_bounds_are_no_matter_and_standardised_ones_never():
    assert doubts_about_tables(facts({"a": 1.0, "b": 5.0, "c": 25.0}), standardize=False) == ()
    assert doubts_about_tables(facts({"a": 1.0, "b": 1e9}), standardize=True) == ()
    assert doubts_about_tables(facts({"a": 1.0, "b": None, "c": 2.0}), standardize=False) == ()  # b does not tell
    assert doubts_about_tables(facts({"a": 1.0}), standardize=False) == ()


def test_two_tables_of_the_same_bytes_or_numbers_are_both_named(rng):
    cost, other = rng.random(435), rng.random(435)
    one = {"n_nodes": 30, "n_samples": 200}
    same = [
        TableFacts(name="a", cost=cost, scale=cost.mean(), sha256="0", **one),
        TableFacts(name="b", cost=other, scale=other.mean(), sha256="1", **one),
        TableFacts(name="in float32", cost=cost * (1 + 1e-7), scale=cost.mean() * (1 + 1e-7), sha256="2", **one),
        TableFacts(name="copy", cost=other, scale=other.mean(), sha256="1", **one),
    ]
    doubt = only(same)
    assert (doubt.kind, doubt.silos) == ("duplicate", ("a", "b", "copy", "in float32"))
    assert "'a', 'in float32'" in doubt.text
    assert "'b', 'copy'" in doubt.text


def test_few_pairs_may_agree_by_chance():
    cost = np.array([0.25, 0.5, 0.5])
    two = [TableFacts(name=name, n_nodes=3, n_samples=8, cost=cost, scale=cost.mean()) for name in "ab"]
    assert doubts_about_tables(two, standardize=False) == ()


def test_few_samples_are_counted():
    doubt = only(silos(oslo=200, lima=8, kyoto=29, quito=30))
    assert (doubt.kind, doubt.silos) == ("samples", ("lima", "kyoto"))
    assert "'lima' (8 samples for 30 nodes), 'kyoto' (29 samples for 30 nodes)" in doubt.text


def test_a_pair_that_gaps_leave_few_samples_is_told():
    """Of two rows, every correlation is 1 or −1: as an edge, it would be among the strongest."""
    gappy = TableFacts(name="lima", n_nodes=30, n_samples=200, fewest_rows=2)
    fine = TableFacts(name="quito", n_nodes=30, n_samples=200, fewest_rows=140)
    doubt = only([*silos(oslo=200), gappy, fine])
    assert (doubt.kind, doubt.silos) == ("samples", ("lima",))
    assert "'lima' (gaps leave a pair 2 of 200 samples, for 30 nodes)" in doubt.text


def test_where_every_table_is_flat_rows_may_be_nodes():
    doubt = only(silos(oslo=8, lima=14))
    assert (doubt.kind, doubt.silos) == ("transposed", ("oslo", "lima"))
    assert "other way round" in doubt.text


def test_many_silos_are_one_sentence():
    doubt = only([*silos(**{f"s{k}": 8 for k in range(56)}), *silos(long=200)])
    assert len(doubt.silos) == 56
    assert "'s7' and 48 more (8 samples for 30 nodes each)" in doubt.text
    assert len(doubt.text) < 300


@pytest.mark.parametrize(
    ("serial", "n_samples", "told"),
    [(0.9, 200, True), (-0.9, 200, True), (0.5, 50, False), (0.9, 400, False), (None, 200, False)],
)
def test_serial_correlation_is_told_where_it_leaves_fewer_samples_than_nodes(serial, n_samples, told):
    found = doubts_about_tables(
        [TableFacts(name="scan", n_nodes=30, n_samples=n_samples, serial=serial)], standardize=False
    )
    assert [doubt.kind for doubt in found] == ["serial"] * told
    if told:
        assert "'scan', whose 200 samples are worth about 21 independent ones" in found[0].text


def test_a_counter_of_rows_is_named_with_its_column():
    doubt = only([TableFacts(name=name, n_nodes=30, row_counter="subject") for name in ("oslo", "lima")])
    assert doubt.kind == "row_counter"
    assert "'subject' in 'oslo', 'lima'" in doubt.text
    assert "drop=['subject']" in doubt.text


def test_columns_that_never_change_are_named_with_their_silos():
    fine = TableFacts(name="oslo", n_nodes=30)
    doubt = only([fine, TableFacts(name="lima", n_nodes=30, constant=("Thalamus_L", "Thalamus_R"))])
    assert (doubt.kind, doubt.silos) == ("constant", ("lima",))
    assert "'lima' ('Thalamus_L', 'Thalamus_R')" in doubt.text


def test_nodes_far_louder_than_the_others_are_noticed_unless_standardised(rng):
    signals = rng.normal(size=(50, 8)) * np.array([1e6, 1, 1, 1, 1, 1, 1, 1])
    rows, cols = np.triu_indices(8, 1)
    cost = ((signals[:, rows] - signals[:, cols]) ** 2).mean(axis=0)
    quiet = [TableFacts(name="oslo", n_nodes=8, n_samples=50, scale=1.0, cost=cost[7:])]
    loud = [TableFacts(name="lima", n_nodes=8, n_samples=50, scale=1.0, cost=cost)]
    doubt = only(quiet + loud)
    assert (doubt.kind, doubt.silos) == ("amplitudes", ("lima",))
    assert "'lima' (" in doubt.text
    assert "standardize" in doubt.text
    assert doubts_about_tables(quiet + loud, standardize=True) == ()
