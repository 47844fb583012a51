"""Signed partial correlations in the accuracy experiment."""

from dataclasses import replace

import numpy as np

from silograph.experiments.contest import precisions, ranking
from silograph.experiments.families import draw, families, null
from silograph.experiments.peers import PEERS
from silograph.experiments.signs import PARTIAL, SignedDraw, run_signed, signs_text

SIGNED = next(family for family in families(20) if family.has_negative)


def test_partial_correlations_come_within_a_hundredth_of_the_best_linear_peers():
    ours, theirs = [], []
    for seed in range(3):
        drawn = draw(SIGNED, seed)
        ours.append(run_signed(SignedDraw(family=SIGNED, seed=seed))[PARTIAL])
        theirs.append([precisions(drawn, *ranking(SIGNED, *peer.learn(drawn.signals))) for peer in PEERS[:2]])
    assert (np.mean(ours, axis=0) > np.mean(theirs, axis=0).max(axis=0) - 0.01).all()


def test_the_text_says_who_is_compared_and_how_often_the_smooth_model_is_called_wrong():
    jobs = {family: run_signed(SignedDraw(family=family, seed=0)) for family in (SIGNED, null(8))}
    assert PARTIAL not in jobs[null(8)]
    values = {SIGNED: {PARTIAL: np.array([[0.7, 0.8], [0.72, 0.8]]), "pooled": np.array([[0.6, 0.9], [0.6, 0.9]])}}
    text = signs_text(values, {family: [one] for family, one in jobs.items()}, ["pooled", "absent"])
    assert "personal: 0.710, which is +0.110 ± 0.010 against pooled (2 draws)" in text
    assert "consensus: 0.800, which is -0.100" in text
    assert f"| {SIGNED.label} | yes | 1 |" in text
    assert f"| {null(8).label} | no | 1 |" in text


def test_rankings_are_by_size_where_some_edges_are_negative():
    own, shared = [np.array([[1.0, -0.5]])], np.array([[0.2, -0.7]])
    assert ranking(SIGNED, own, shared)[1].min() == 0.2
    assert ranking(replace(SIGNED, law="gaussian"), own, shared)[1].min() == -0.7
