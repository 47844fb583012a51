"""What the paper claims of its synthetic experiments, each put to a test; a verdict follows from the numbers alone.

Comparisons are paired: two methods on the same draws. A difference counts where Wilcoxon's signed-rank test gives
p < 0.05 after Holm's correction over all comparisons of the claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from silograph._types import Vector

Verdict = Literal["held", "held in part", "held in the mean only", "did not hold", "too few draws", "not tested"]
LEVEL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim, what became of it, and the evidence in Markdown."""

    says: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """One set of scores against another on the same draws."""

    label: str
    n: int
    mean: float  # first minus second
    low: float  # 95 % interval of the mean
    high: float
    p: float  # Wilcoxon's signed-rank test, two-sided; 1 where nothing differs

    @property
    def is_clear(self) -> bool:
        """Whether the difference counts, its p-value being corrected already."""
        return self.p < LEVEL


def paired(label: str, first: Vector, second: Vector) -> Paired:
    """Compare draw by draw."""
    apart = first - second
    mean, n = float(apart.mean()), apart.size
    if n < 2 or not apart.any():
        return Paired(label=label, n=n, mean=mean, low=mean, high=mean, p=1.0)
    half = float(stats.t.ppf(0.975, n - 1) * apart.std(ddof=1) / np.sqrt(n))
    p = float(stats.wilcoxon(apart, method="approx" if n > 50 else "auto").pvalue)
    return Paired(label=label, n=n, mean=mean, low=mean - half, high=mean + half, p=p)


def holm(comparisons: Sequence[Paired]) -> list[Paired]:
    """The same with p-values corrected for their number."""
    order = np.argsort([c.p for c in comparisons], kind="stable")
    out, worst = list(comparisons), 0.0
    for rank, index in enumerate(order):
        c = comparisons[index]
        worst = max(worst, min(1.0, (len(order) - rank) * c.p))
        out[index] = Paired(label=c.label, n=c.n, mean=c.mean, low=c.low, high=c.high, p=worst)
    return out


def better_than(says: str, pairs: Mapping[str, tuple[Vector, Vector]], unit: str = "FS") -> Claim:
    """A claim that the first is better than the second in every comparison."""
    tests = holm([paired(label, first, second) for label, (first, second) in pairs.items()])
    wins = sum(test.is_clear and test.mean > 0 for test in tests)
    losses = sum(test.is_clear and test.mean < 0 for test in tests)
    above = sum(test.mean > 0 for test in tests)
    verdict: Verdict = "did not hold"
    if not can_tell(tests[0].n, len(tests)):
        verdict = "too few draws"
    elif wins == len(tests):
        verdict = "held"
    elif wins > 0:
        verdict = "held in part"
    elif above == len(tests):
        verdict = "held in the mean only"
    tally = f"Clearly better in {wins} of {len(tests)} comparisons, clearly worse in {losses}; higher mean in {above}."
    return Claim(says=says, verdict=verdict, evidence=f"{tally}\n\n{table_of(tests, unit)}")


def can_tell(n_draws: int, n_tests: int = 1) -> bool:
    """Whether so many draws could show a difference at all: the least p of a signed-rank test is 2/2ⁿ."""
    return n_tests * 2 / 2.0**n_draws < LEVEL


def table_of(tests: Sequence[Paired], unit: str) -> str:
    """Comparisons as a Markdown table."""
    lines = [f"| | mean difference in {unit} | 95 % interval | p (Holm) |", "|---|--:|--:|--:|"]
    lines += [
        f"| {test.label} | {signed(test.mean)} | {signed(test.low)} … {signed(test.high)} | {p_value(test.p)} |"
        for test in tests
    ]
    return "\n".join(lines)


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign."""
    return f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def p_value(p: float) -> str:
    """A p-value as people write it."""
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}" if p < 0.01 else f"{p:.2f}"


def trend(label: str, x: Sequence[float], values: np.ndarray) -> tuple[float, float, str]:
    """Mean rank correlation (Spearman) of each draw's values with x, the p-value of its sign, and a sentence."""
    per_draw = np.array([stats.spearmanr(x, row).statistic for row in values])
    p = float(stats.wilcoxon(per_draw).pvalue) if per_draw.size > 1 and per_draw.any() else 1.0
    mean = float(per_draw.mean())
    return mean, p, f"{label}: rank correlation {signed(mean, 2)} on average over draws (p {p_value(p)})."


def verdict_of(parts: Sequence[bool], *, n_draws: int | None = None) -> Verdict:
    """Held if all parts did, in part if some; `n_draws` where it takes a test to tell."""
    if n_draws is not None and not can_tell(n_draws):
        return "too few draws"
    return "held" if all(parts) else "held in part" if any(parts) else "did not hold"


def markdown(claims: Sequence[Claim]) -> str:
    """Claims as sections, after a list of verdicts."""
    lines = ["| claim | verdict |", "|---|---|", *(f"| {claim.says} | **{claim.verdict}** |" for claim in claims), ""]
    for number, claim in enumerate(claims, start=1):
        lines += [f"### {number}. {claim.says}", "", f"**{claim.verdict.capitalize()}.** {claim.evidence}", ""]
    return "\n".join(lines)
