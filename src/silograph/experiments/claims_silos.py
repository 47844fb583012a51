"""Unequal silos: the paper's claims about sizes, contribution weights and Table III."""

import numpy as np

from silograph.experiments.claims import Claim, better_than, format_signed, trends, verdict_of
from silograph.experiments.comparison import format_point
from silograph.experiments.evidence import CONSENSUS_ROW, LOCAL_ROW, Evidence, Pairs
from silograph.experiments.outcome import EXACT
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
        + ", ".join(
            f"{format_signed(float(g))} (N = {n})" for n, g in zip(UNEQUAL.n_samples, gain.mean(axis=0), strict=True)
        )
        for row, gain in gains.items()
    )
    says = "Silos with few samples gain most from the others"
    verdict = verdict_of([test.loses for test in tests], n_draws=evidence.n_draws)
    return Claim(says=says, verdict=verdict, evidence=f"Gain in FS of PPGL-L {each}. {text}")


def weights_follow(evidence: Evidence) -> Claim:
    """γ by N_i and by closeness; the silo that should have the largest has it, or not."""
    rows, first, words = {}, [], []
    for scenario, x, what in (
        (UNEQUAL, UNEQUAL.n_samples, "γ against number of samples (case 1)"),
        (NESTED, NESTED.shared, "γ against q, the closeness to the consensus (case 2)"),
    ):
        trials, places = evidence.trials[scenario.label], np.array(x, dtype=np.float64)
        for row in (CONSENSUS_ROW, LOCAL_ROW):
            index = choose(row, scenario, trials, evidence.recipe).index
            gamma = np.stack([t["ppgl/gamma"][index] for t in trials])
            rows[f"{what}, where {row.label} is best"] = (places.tolist(), gamma)
            relative = (gamma / gamma.mean(axis=1, keepdims=True)).mean(axis=0)
            first.append(int(np.argmax(relative)) == int(np.argmax(places)))
            words.append(f"{scenario.label}, {row.label}: {', '.join(f'{value:.2f}' for value in relative)}")
    tests, text = trends(rows)
    says = "Silos with more data, and silos closer to the consensus, get larger weights"
    parts = [test.wins and is_first for test, is_first in zip(tests, first, strict=True)]
    text += (
        f"\n\nMean γ of silos C1 to C5, relative to their mean: {'; '.join(words)}. Held where the correlation is "
        "clear and "
        "the silo with most data, or the one that is the consensus, has the largest weight."
    )
    return Claim(says=says, verdict=verdict_of(parts, n_draws=evidence.n_draws), evidence=text)


def adaptive_weights_help(evidence: Evidence) -> Claim:
    """Table III, iterated."""
    edges = [
        f"{s.label}, {row} {format_point(chosen.at_edge)}"
        for s in (UNEQUAL, NESTED)
        for row, chosen in evidence.choices[s.label].items()
        if chosen.at_edge and row.startswith("PPGL") and not row.endswith(EXACT)
    ]
    after = (
        "Equal weights have a grid of ν of their own: with γ = 1/I, a ν of the adaptive grid pulls about ten times "
        f"less. Still at an edge of a grid: {'; '.join(edges) or 'none'}."
    )
    says = "Removing the adaptive weights degrades the performance (Table III, Algorithm 1)"
    return better_than(says, _ablation(evidence, ""), after=after)


def adaptive_weights_help_at_the_optimum(evidence: Evidence) -> Claim:
    """The same between exact optima."""
    return better_than("The same between exact optima of both models", _ablation(evidence, EXACT))


def _ablation(evidence: Evidence, way: str) -> Pairs:
    return {
        f"{s.label}: {row}{way}, adaptive − equal": (
            evidence.held_out(s.label, f"{row}{way}"),
            evidence.held_out(s.label, f"{row}, equal weights{way}"),
        )
        for s in (UNEQUAL, NESTED)
        for row in ("PPGL-L", "PPGL-C")
    }


MAKERS = (
    large_silos_do_better,
    small_silos_gain,
    weights_follow,
    adaptive_weights_help,
    adaptive_weights_help_at_the_optimum,
)
