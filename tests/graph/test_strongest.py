"""The strongest edges: as many as asked for, none stronger left out, and no node lost."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from silograph.graph.pairs import Pairs
from silograph.graph.strongest import keep_strongest


@given(n=st.integers(2, 25), degree=st.floats(0.5, 30), present=st.floats(0.05, 1), seed=st.integers(0, 2**32 - 1))
def test_the_strongest_edges_stay_and_every_node_keeps_one(n, degree, present, seed):
    rng, pairs = np.random.default_rng(seed), Pairs.all(n)
    w = np.where(rng.random(pairs.size) < present, rng.random(pairs.size), 0.0)
    kept = keep_strongest(pairs, w, degree)
    assert ((kept == w) | (kept == 0)).all()
    assert (pairs.degrees(kept) > 0).tolist() == (pairs.degrees(w) > 0).tolist()
    wanted, n_kept = round(min(degree, n) * n / 2), np.count_nonzero(kept)
    assert n_kept == np.count_nonzero(w) if np.count_nonzero(w) <= wanted else n_kept >= wanted
    left_out = w[(w > 0) & (kept == 0)].max(initial=0.0)
    forced = np.flatnonzero((kept > 0) & (kept < left_out))  # kept for the sake of a node alone
    rows, cols = pairs.at(forced.astype(np.int32))
    for e, ends in zip(forced, zip(rows, cols, strict=True), strict=True):
        strongest = [w[(pairs.rows == v) | (pairs.cols == v)].max() for v in ends]
        assert w[e] in strongest


def test_a_graph_with_fewer_edges_stays_as_it_is():
    pairs, w = Pairs.all(4), np.array([1.0, 0, 0, 0, 0, 2.0])
    assert keep_strongest(pairs, w, 2.0) is w
