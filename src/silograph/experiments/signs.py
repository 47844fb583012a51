"""Signed partial correlations on the same draws: how they rank pairs, and when the smooth model is called wrong."""

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
    """[mean personal AP, consensus AP] where there is an edge, and [gain, its error, whether the model is wrong]."""
    drawn, began = draw(job.family, job.seed), perf_counter()
    model = PartialCorrelationGraph().fit(list(drawn.signals))
    out = {PARTIAL + SECONDS: np.array(perf_counter() - began)}
    judged = model.judgement_
    out["judged"] = np.array([judged.gain, judged.error, judged.is_wrong])
    if drawn.consensus.any():
        out[PARTIAL] = precisions(drawn, *ranking(job.family, list(model.partial_correlations_), model.consensus_))
    return out


def signs_text(values: Mapping[Family, Values], signed: Mapping[Family, Sequence[Arrays]], peers: Sequence[str]) -> str:
    """The section on signs."""
    negative = [family for family in values if family.has_negative]
    lines = [line for family in negative for line in _beside(family, values[family], peers)]
    said = (
        "`PartialCorrelationGraph()` ranks pairs by the size of their partial correlation. On families with negative "
        "ones, beside the best of the peers (± standard error, paired over draws):"
    )
    judgement = (
        "Its judgement calls the smooth model wrong where rows that were held out gain, from negative partial "
        f"correlations, more than {WORTH} in log likelihood per row and more than {ERRORS} standard errors. It should "
        "where there are any, and should not elsewhere:"
    )
    parts = ["## Signs", *([said, "\n".join(lines)] if lines else []), judgement, _judgements(signed)]
    return "\n\n".join(parts)


def _beside(family: Family, by_method: Values, peers: Sequence[str]) -> list[str]:
    there = [name for name in peers if name in by_method]
    lines = []
    for place, graphs in enumerate(("personal", "consensus") if there else ()):
        best = there[int(np.argmax([by_method[name][:, place].mean() for name in there]))]
        apart = by_method[PARTIAL][: len(by_method[best]), place] - by_method[best][:, place]
        error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else float("nan")
        mean = by_method[PARTIAL][:, place].mean()
        beside = f"{apart.mean():+.3f} ± {error:.3f} against {best}"
        lines.append(f"- {family.label}, {graphs}: {mean:.3f}, which is {beside} ({len(apart)} draws).")
    return lines


def _judgements(signed: Mapping[Family, Sequence[Arrays]]) -> str:
    rows = ["| family | negative | draws | gain per row (mean) | called wrong |", "| --- | --- | --- | --- | --- |"]
    for family, found in signed.items():
        gain, _, wrong = np.array([one["judged"] for one in found]).T
        kind = "yes" if family.has_negative else "no"
        rows.append(f"| {family.label} | {kind} | {len(gain)} | {gain.mean():.3f} | {int(wrong.sum())} |")
    return "\n".join(rows)
