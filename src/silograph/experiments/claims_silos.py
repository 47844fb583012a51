"""Unequal silos: the paper's claims about sizes, contribution weights and Table III."""

from __future__ import annotations

import numpy as np

from silograph.experiments.claims import (
    Claim,
    better_than,
    signed,
    trends,
    verdict_of,
)
from silograph.experiments.comparison import said
from silograph.experiments.evidence import CONSENSUS_ROW, LOCAL_ROW, Evidence
from silograph.experiments.scenarios import NESTED, UNEQUAL
from silograph.experiments.selection import Row, choose
from silograph.experiments.trials import FS


def _silo_scores(evidence: Evidence, method: str, row: Row) -> np.ndarray:
    """F-scores (draws, silos) of each silo in case 1."""
    trials, n_silos = evidence.trials[UNEQUAL.label], len(UNEQUAL.n_samples)
    index = choose(row, UNEQUAL, trials, evidence.recipe).index
    return np.stack([arrays[f"{method}/scores"][index, :n_silos, FS] for arrays in trials])


def large_silos_do_better(evidence: Evidence) -> Claim:
    """F-score by number of samples."""
    scores = _silo_scores(evidence, "ppgl", LOCAL_ROW)
    tests, text = trends({"FS of PPGL-L against number of samples": (UNEQUAL.n_samples, scores)})
    says = "Silos with more samples perform better (unequal sizes)"
    verdict = verdict_of([tests[0].wins], n_draws=evidence.n_draws)
    return Claim(says=says, verdict=verdict, evidence=text)


def small_silos_gain(evidence: Evidence) -> Claim:
    """Gain over learning alone by silo, when silos have 20 to 100 samples."""
    together = _silo_scores(evidence, "ppgl", LOCAL_ROW)
    gains = {
        "IGL": together - _silo_scores(evidence, "igl", Row(label="IGL", method="igl")),
        "IGL, own β": together - _silo_scores(evidence, "igl-own", Row(label="IGL, own β", method="igl-own")),
    }
    tests, text = trends({f"gain over {row} against N": (UNEQUAL.n_samples, gain) for row, gain in gains.items()})
    each = "; ".join(
        f"over {row}: "
        + ", ".join(f"{signed(float(g))} (N = {n})" for n, g in zip(UNEQUAL.n_samples, gain.mean(axis=0), strict=True))
        for row, gain in gains.items()
    )
    says = "Silos with few samples gain most from the others"
    verdict = verdict_of([test.loses for test in tests], n_draws=evidence.n_draws)
    return Claim(says=says, verdict=verdict, evidence=f"Gain in FS of PPGL-L {each}. {text}")


def weights_follow(evidence: Evidence) -> Claim:
    """γ by N_i and by closeness."""
    rows = {}
    for scenario, x, what in (
        (UNEQUAL, UNEQUAL.n_samples, "γ against number of samples (case 1)"),
        (NESTED, NESTED.shared, "γ against q, the closeness to the consensus (case 2)"),
    ):
        trials = evidence.trials[scenario.label]
        for row in (CONSENSUS_ROW, LOCAL_ROW):
            index = choose(row, scenario, trials, evidence.recipe).index
            places = [float(value) for value in (x if isinstance(x, tuple) else (x,))]
            rows[f"{what}, where {row.label} is best"] = (places, np.stack([t["ppgl/gamma"][index] for t in trials]))
    tests, text = trends(rows)
    says = "Silos with more data, and silos closer to the consensus, get larger weights"
    return Claim(says=says, verdict=verdict_of([t.wins for t in tests], n_draws=evidence.n_draws), evidence=text)


def adaptive_weights_help(evidence: Evidence) -> Claim:
    """Table III."""
    pairs = {
        f"{s.label}: {row}": (evidence.held_out(s.label, row), evidence.held_out(s.label, f"{row}, equal weights"))
        for s in (UNEQUAL, NESTED)
        for row in ("PPGL-L", "PPGL-C")
    }
    edges = [
        f"{s.label}, {row} {said(chosen.at_edge)}"
        for s in (UNEQUAL, NESTED)
        for row, chosen in evidence.choices[s.label].items()
        if chosen.at_edge and not row.endswith("exact")
    ]
    after = (
        "Equal weights have a grid of ν of their own: with γ = 1/I, a ν of the adaptive grid pulls about ten times "
        f"less. Still at an edge of a grid: {'; '.join(edges) or 'none'}."
    )
    return better_than("Removing the adaptive weights degrades the performance (Table III)", pairs, after=after)


MAKERS = (large_silos_do_better, small_silos_gain, weights_follow, adaptive_weights_help)
