import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.data.alignment import check_silo_names, order_of
from silograph.errors import SilosError

names_of_nodes = st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=12, unique=True)


@given(names=names_of_nodes)
def test_nodes_in_the_same_order_need_no_new_one(names):
    assert order_of(names, tuple(names), first="a", silo="b") is None


@given(data=st.data(), names=names_of_nodes)
def test_taking_the_columns_in_the_new_order_brings_them_into_the_order_of_the_first(data, names):
    mine = data.draw(st.permutations(names))
    order = order_of(names, mine, first="a", silo="b")
    assert (mine if order is None else [mine[column] for column in order]) == names


def test_a_table_is_reordered_by_indexing_its_columns():
    order = order_of(["x", "y", "z"], ["z", "x", "y"], first="a", silo="b")
    np.testing.assert_array_equal(np.array([[30.0, 10.0, 20.0]])[:, order], [[10.0, 20.0, 30.0]])


def test_a_missing_node_is_named_with_both_silos_and_what_to_do():
    with pytest.raises(
        SilosError, match=r"^b\.csv: expected the nodes of a\.csv \(3\), got 2; missing: 'y'\. .*rename columns"
    ) as refusal:
        order_of(["x", "y", "z"], ["z", "x"], first="a.csv", silo="b.csv")
    assert "extra" not in str(refusal.value)


def test_an_extra_node_is_named():
    with pytest.raises(SilosError, match=r"got 3; extra: 'w'\."):
        order_of(["x", "y"], ["x", "w", "y"], first="a", silo="b")


def test_a_renamed_node_is_named_on_both_sides():
    with pytest.raises(SilosError, match=r"missing: 'Thalamus_L'; extra: 'thalamus_l'\."):
        order_of(["Thalamus_L", "y"], ["thalamus_l", "y"], first="a", silo="b")


def test_of_many_missing_nodes_some_are_named_and_the_rest_counted():
    with pytest.raises(SilosError, match=r"missing: 'n0', .*'n7' and 92 more\.") as refusal:
        order_of([f"n{k}" for k in range(100)] + ["x"], ["x"], first="a", silo="b")
    assert "'n8'" not in str(refusal.value)


def test_a_node_that_is_there_twice_is_refused():
    with pytest.raises(SilosError, match="'y'"):
        order_of(["x", "y"], ["y", "x", "y"], first="a", silo="b")


def test_the_work_grows_no_faster_than_the_number_of_nodes():
    class Name(str):
        looked_up = 0

        def __hash__(self):
            Name.looked_up += 1
            return super().__hash__()

    names = [Name(f"n{k}") for k in range(300)]
    np.testing.assert_array_equal(order_of(names, names[::-1], first="a", silo="b"), np.arange(300)[::-1])
    assert Name.looked_up <= 10 * len(names)


@given(names=names_of_nodes)
def test_silos_with_names_of_their_own_are_welcome(names):
    check_silo_names(names)
    check_silo_names(tuple(names))


@given(data=st.data(), names=names_of_nodes)
def test_a_silo_named_twice_is_refused_by_its_name(data, names):
    twice = data.draw(st.sampled_from(names))
    with pytest.raises(SilosError) as refusal:
        check_silo_names(data.draw(st.permutations([*names, twice])))
    assert f"got {twice!r} twice. Rename one." in str(refusal.value)


def test_no_silos_are_refused():
    with pytest.raises(SilosError, match="at least one silo, got none"):
        check_silo_names([])


def test_a_silo_without_a_name_is_refused():
    with pytest.raises(SilosError, match="got an empty one"):
        check_silo_names(["a", ""])
