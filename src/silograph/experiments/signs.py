"""Signed partial correlations on the same draws: how well they rank pairs, and when the smooth model is called wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from silograph.analysis.partial.judgement import ERRORS, WORTH
from silograph.estimators.partial import PartialCorrelationGraph
from silograph.experiments.contest import precisions, ranking
from silograph.experiments.families import Family, draw
from silograph.experiments.lab import SECONDS, Arrays

PARTIAL = "partial correlation"
Values = Mapping[str, np.ndarray]  # by method, (draws, 2): personal and consensus


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedDraw:
    """Which draw."""

    family: Family
    seed: int


def run_signed(job: SignedDraw) -> Arrays:
    """[mean personal AP, consensus AP] where there is an edge to find, and [gain, its error, whether it is called wrong]."""
    drawn, began = draw(job.family, job.seed), perf_counter()
    model = PartialCorrelationGraph().fit(list(drawn.signals))
    out = {PARTIAL + SECONDS: np.array(perf_counter() - began)}
    judged = model.judgement_
    out["judged"] = np.array([judged.gain, judged.error, judged.is_wrong])
    if drawn.consensus.any():
        out[PARTIAL] = precisions(drawn, *ranking(job.family, list(model.partial_correlations_), model.consensus_))
    return out


def signs_text(values: Mapping[Family, Values], signed: Mapping[Family, Sequence[Arrays]], peers: Sequence[str]) -> str:
    """The section on signs, without its tables' maker."""
    lines = [
        line
        for family, by_method in values.items()
        if family.has_negative
        for line in _beside(family, by_method, peers)
    ]
    rows = [_judged(family, [one["judged"] for one in found]) for family, found in signed.items()]
    said = (
        "`PartialCorrelationGraph()` ranks pairs by the size of their partial correlation. On families with negative ones, "
        "beside the best of the peers (± standard error, paired over draws):"
    )
    judgement = (
        "Its judgement calls the smooth model wrong where rows that were held out gain more than "
        f"{WORTH} in log likelihood per row, and more than {ERRORS} standard errors, from negative partial correlations. It "
        "should where there are any, and should not elsewhere:"
    )
    head = "| family | negative ones | draws | gain per row (mean) | called wrong |\n| --- | --- | --- | --- | --- |"
    return "\n\n".join(("## Signs", said, "\n".join(lines), judgement, "\n".join([head, *rows])))


def _beside(family: Family, by_method: Values, peers: Sequence[str]) -> list[str]:
    there = [name for name in peers if name in by_method]
    lines = []
    for place, graphs in enumerate(("personal", "consensus") if there else ()):
        best = max(there, key=lambda name: by_method[name][:, place].mean())
        apart = by_method[PARTIAL][: len(by_method[best]), place] - by_method[best][:, place]
        error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else float("nan")
        lines.append(
            f"- {family.label}, {graphs}: {by_method[PARTIAL][:, place].mean():.3f}, which is {apart.mean():+.3f} ± {error:.3f} "
            f"against {best} ({len(apart)} draws)."
        )
    return lines


def _judged(family: Family, judged: Sequence[np.ndarray]) -> str:
    gain, _, wrong = np.array(judged).T
    kind = "yes" if family.has_negative else "no"
    return f"| {family.label} | {kind} | {len(gain)} | {gain.mean():.3f} | {int(wrong.sum())} |"
